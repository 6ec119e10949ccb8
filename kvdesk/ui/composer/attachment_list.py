"""What is attached to a draft, over its text: each with its cost, and what can be done with it."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollArea, QWidget

from kvdesk.attachments.encodings import CODECS
from kvdesk.message import Attachment
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, link_button
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.chat.attachment_facts import attachment_facts

_MOST_ROWS: Final = 3  # more are scrolled
_ROW_PX: Final = 28


class _Shown(NamedTuple):
    """As `AttachmentList.show_attachments`."""

    attachments: tuple[Attachment, ...]
    reading: Mapping[int, str]
    shortened: tuple[bool, ...]
    encodings: tuple[str, ...]
    can_change: bool


class AttachmentList(QScrollArea):
    """Hidden if there is nothing."""

    removed = Signal(int)  # which one
    as_text_clicked = Signal(int)  # a pasted text: into the message box
    whole_clicked = Signal(int)  # all of one that was shortened
    cancelled = Signal(int)  # the number of a file that is being read
    encoding_chosen = Signal(int, str)  # which one, and the name of the encoding

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.attachments: tuple[Attachment, ...] = ()
        self._shown: _Shown | None = None
        self._counted: tuple[Sequence[int], float | None] = (), None
        self._rows: list[QWidget] = []
        self._costs: list[ElidedLabel] = []
        self.setAccessibleName(tr("Attachments"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        holder.setObjectName("column")
        self._column = boxes.column(on=holder, margins=0, spacing=0)
        self.setWidget(holder)
        theme.changed.connect(self._make_rows)
        self.hide()

    @property
    def reading(self) -> str:
        """A file that is being read for it, "" for none."""
        return next(iter(self._shown.reading.values()), "") if self._shown is not None else ""

    def show_attachments(
        self,
        attachments: Sequence[Attachment],
        reading: Mapping[int, str],
        shortened: Sequence[bool],
        encodings: Sequence[str],
        *,
        can_change: bool,
    ) -> None:
        """Those there are, and the names of the files that are being read for it. `encodings`: of each the one it was
        read in, "" if no other can be chosen.
        """
        shown = _Shown(tuple(attachments), dict(reading), tuple(shortened), tuple(encodings), can_change)
        if shown != self._shown:
            self._shown, self.attachments, self._counted = shown, shown.attachments, ((), None)
            self._make_rows()

    def _make_rows(self) -> None:
        """As large, and in the colours, that the theme asks for."""
        if (shown := self._shown) is None:
            return
        boxes.drop(self._column, *self._rows)
        self._costs = []
        known = zip(shown.attachments, shown.shortened, shown.encodings, strict=True)
        self._rows = [self._row(i, *one, shown.can_change) for i, one in enumerate(known)]
        self._rows += [self._reading_row(number, name) for number, name in shown.reading.items()]
        for row in self._rows:
            self._column.addWidget(row)
        self.setFixedHeight(self._theme.px(_ROW_PX) * min(len(self._rows), _MOST_ROWS))
        self.setVisible(bool(self._rows))
        self.show_costs(*self._counted)

    def show_costs(self, n_tokens: Sequence[int], ms_per_token: float | None) -> None:
        """Tokens of each, () if nobody has counted them, and what one takes to be read."""
        self._counted = n_tokens, ms_per_token
        for i, (attachment, cost) in enumerate(zip(self.attachments, self._costs, strict=True)):
            n = n_tokens[i] if i < len(n_tokens) else attachment.n_tokens
            seconds = n * ms_per_token / 1e3 if n and ms_per_token else None
            cost.setText(attachment_facts(attachment, n, seconds))

    def _row(self, index: int, attachment: Attachment, is_short: bool, encoding: str, can_change: bool) -> QWidget:
        name = attachment.name
        row, layout = self._line(name)
        cost = ElidedLabel(tone="secondary", scale="small")
        cost.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._costs.append(cost)
        layout.addWidget(cost, 3)
        if not can_change:
            return row
        if encoding:
            layout.addWidget(self._choice(index, name, encoding))
        if is_short:
            tip = tr("Attach all of {name} again").format(name=name)
            whole = link_button(tr("All of it"), name=tip, tip=tip, clicked=lambda: self.whole_clicked.emit(index))
            layout.addWidget(whole)
        if attachment.kind == "pasted":
            tip = tr("Put {name} into the message box as text").format(name=name)
            as_text = link_button(tr("As text"), name=tip, tip=tip, clicked=lambda: self.as_text_clicked.emit(index))
            layout.addWidget(as_text)
        name = tr("Remove {name}").format(name=name)
        layout.addWidget(IconButton(self._theme, "close", name, clicked=lambda: self.removed.emit(index)))
        return row

    def _choice(self, index: int, name: str, encoding: str) -> Choice:
        """The encodings that the file can be read in again."""
        choice = Choice(scale="small", name=tr("Encoding of {name}").format(name=name))
        choice.setToolTip(tr("Read {name} in another encoding").format(name=name))
        choice.addItems(list(CODECS))
        choice.setCurrentText(encoding)

        def choose(chosen: str) -> None:
            if chosen != encoding:
                self.encoding_chosen.emit(index, chosen)

        choice.textActivated.connect(choose)
        return choice

    def _reading_row(self, number: int, name: str) -> QWidget:
        row, layout = self._line(tr("Reading {name}…").format(name=name))
        name = tr("Stop reading {name}").format(name=name)
        layout.addWidget(IconButton(self._theme, "close", name, clicked=lambda: self.cancelled.emit(number)))
        return row

    def _line(self, text: str) -> tuple[QWidget, QHBoxLayout]:
        row = QWidget()
        row.setFixedHeight(self._theme.px(_ROW_PX))
        icon = QLabel()
        side = self._theme.px(16)
        icon.setPixmap(self._theme.icon("file", self._theme.colours.secondary).pixmap(side, side))
        return row, boxes.row(icon, (ElidedLabel(text), 2), on=row, margins=0, spacing=8)
