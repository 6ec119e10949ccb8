"""The effect of one operation: its call, figures before and after, and the changes of each conversation's cells.

Decode speed is measured before the operation and again with the next answer: until then it is left out.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from kvdesk.protocol import calls
from kvdesk.protocol.cache import OperationDone, SpeedSample
from kvdesk.protocol.operations import Operate, Undo
from kvdesk.session import Commands
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, label, plain_tip, push_button, set_tone, show_text
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.cells.effect_text import EffectRow, Titles, effect_rows, figures, remarks, took
from kvdesk.viewmodel.graphs.cell_metrics import GAPS, HIGH_WATER, READ, SHARED, USED

_NAMES: Final = (USED, HIGH_WATER, READ, GAPS, SHARED, "tok/s")
_HEADS: Final = (marked("Chat"), marked("Cells"), marked("Next token"), marked("KL, nats"))
_DISTINCT_CHARS: Final = 12
"""Titles of chats that differ only after this many characters are shown from their end."""
_MEASURED_TOKENS: Final = 16  # decode speed is the mean of this many tokens


class EffectView(QFrame):
    """A card. Hidden while there is nothing to show."""

    dismissed = Signal()

    def __init__(self, theme: Theme, commands: Commands, closable: bool = True) -> None:
        super().__init__()
        self._commands = commands
        self.setProperty("card", "effect")
        self.setAccessibleName(tr("What did that do?"))
        self._done: OperationDone | None = None
        self._samples: deque[tuple[int, float]] = deque(maxlen=_MEASURED_TOKENS)
        self._since: list[tuple[int, float]] | None = None  # decode samples after the operation
        self._title = label(tr("What did that do?"), weight="strong", scale="small")
        self._took = label("", tone="secondary", scale="small")
        self.undo_button = push_button(
            tr("Undo"),
            scale="small",
            tip=tr("Puts the whole cache back as it was before this operation") + f"\n{calls.state_set()}",
            clicked=self._on_undo_clicked,
        )
        close = IconButton(theme, "close", tr("Dismiss this comparison"), clicked=self._on_dismissed)
        if not closable:
            close.hide()
        head = boxes.row((self._title, 1), self.undo_button, close, spacing=8)
        self._call = label("", family="mono", wrap=True, selectable=True)
        self._values: dict[str, tuple[QLabel, QLabel]] = {}
        self._figures = QWidget()
        grid = boxes.grid(8, 0, *[1] * len(_NAMES), on=self._figures, margins=0)
        for column, name in enumerate(_NAMES):
            before, after = label("", tone="secondary", family="mono"), label("", family="mono")
            self._values[name] = before, after
            caption = label(tr(name), tone="secondary", scale="small", wrap=True)
            for row, widget in enumerate((caption, before, after)):
                grid.addWidget(widget, row, column)
        self._speed_caption = caption
        self._rows: tuple[EffectRow, ...] = ()
        self._table = QWidget()
        self._table_grid = boxes.grid(12, 2, 2, 3, 3, on=self._table, margins=(0, 4, 0, 4))
        self._words = label("", scale="small", wrap=True, selectable=True)
        boxes.column(
            head,
            self._call,
            self._took,
            self._figures,
            self._table,
            self._words,
            on=self,
            margins=(12, 8, 8, 12),
            spacing=4,
        )
        self.hide()

    @property
    def offers_undo(self) -> bool:
        """Whether the operation that is shown can be undone here."""
        return not self.isHidden() and not self.undo_button.isHidden()

    def show_effect(self, done: OperationDone, titles: Titles, texts: dict[int, str]) -> None:
        """Show what an operation did; `done.effect` must be there."""
        assert done.effect is not None
        again = self._done is not None and done.operation == self._done.operation
        self._done = done
        self._took.setText(
            tr("operation {operation}  ·  {took}").format(operation=f"{done.operation:,}", took=took(done.ms))
        )
        self._call.setText(done.call)
        self._call.show()
        for figure in figures(done.effect.comparison):
            before, after = self._values[figure.name]
            before.setText(figure.before)
            after.setText(f"→ {figure.after}")
            after.setToolTip(plain_tip(figure.tip))
            set_tone(after, "" if figure.changed else "secondary")
        self._figures.show()
        self._show_rows(effect_rows(done, titles, texts))
        self._show_words(remarks(done))
        if not again:
            self._since = []
            self._show_speed()
        self.show()

    def show_sentences(self, title: str, *said: str) -> None:
        """What was done that is no operation with numbers before and after, such as a rebuild."""
        self._done, self._since = None, None
        self._took.setText(title)
        self._call.setText("")
        self._call.hide()
        self.undo_button.hide()
        self._figures.hide()
        self._show_rows(())
        self._show_words(said)
        self.show()

    def _show_words(self, said: Sequence[str]) -> None:
        show_text(self._words, "\n".join(said))

    def _show_rows(self, rows: tuple[EffectRow, ...]) -> None:
        """A line for each conversation, under heads; columns of which nothing is known are left out."""
        self._rows = rows
        boxes.clear(self._table_grid)
        self._table.setVisible(bool(rows))
        measured = any(row.token for row in rows)
        for column, head in enumerate(_HEADS[: len(_HEADS) if measured else 2]):
            self._table_grid.addWidget(label(tr(head), tone="secondary", scale="small"), 0, column)
        distinct = {row.title[:_DISTINCT_CHARS] for row in rows}
        alike = len(distinct) < len(rows)  # branches of one chat end in their sequence
        for i, row in enumerate(rows, start=1):
            texts = (row.title, row.cells, row.token, row.kl) if measured else (row.title, row.cells)
            for column, text in enumerate(texts):
                cell = ElidedLabel(text, from_end=alike) if column == 0 else label(text, scale="small")
                cell.setProperty("scale", "small")
                cell.setWordWrap(0 < column < 3)
                cell.setToolTip(plain_tip(row.tip) if row.tip else "")
                self._table_grid.addWidget(cell, i, column, Qt.AlignmentFlag.AlignTop)

    def _on_dismissed(self) -> None:
        self.hide()
        self.dismissed.emit()

    def forget(self) -> None:
        """Another context: what is shown was done to the one before, and its speed was not this one's."""
        self._done, self._since = None, None
        self._samples.clear()
        self.hide()

    def show_undoable(self, undoable: tuple[int, ...]) -> None:
        """Which operations can be undone now."""
        self.undo_button.setVisible(self._done is not None and self._done.operation in undoable)

    def add_speed(self, sample: SpeedSample) -> None:
        """A measured decode: the speed before, and after, the operation that is shown."""
        if sample.kind != "decode" or sample.ms <= 0 or sample.rc:
            return
        if self._since is not None and len(self._since) < _MEASURED_TOKENS:
            self._since.append((sample.n_tokens, sample.ms))
            if len(self._since) == _MEASURED_TOKENS:
                self._show_speed()
        else:
            self._samples.append((sample.n_tokens, sample.ms))

    def _show_speed(self) -> None:
        before, after = self._values["tok/s"]
        measured = self._since is not None and len(self._since) == _MEASURED_TOKENS
        for widget in (self._speed_caption, before, after):
            widget.setVisible(measured)  # with the next tokens of an answer
        before.setText(_rate(list(self._samples)) if measured else "")
        after.setText(f"→ {_rate(self._since or [])}" if measured else "")

    def _on_undo_clicked(self) -> None:
        if self._done is not None:
            self._commands.submit(Operate(Undo(self._done.operation)))


def _rate(samples: list[tuple[int, float]]) -> str:
    """Tokens per second of (tokens, milliseconds)."""
    ms = sum(time for _, time in samples)
    return f"{1000 * sum(n for n, _ in samples) / ms:.0f}" if ms else "–"
