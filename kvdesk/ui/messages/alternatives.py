"""Several answers to one question side by side, each with what it cost, and the choice of one of them."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from kvdesk.message import Message, MessageId
from kvdesk.translation import tr
from kvdesk.ui.messages.branch_switch import show_branch
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.typing import presses
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, has_focus, label, push_button, show_text
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.viewmodel.cells.readout import stats_rows

COLUMN_PX: Final = 280  # the narrowest an answer can be
_RENDER_MS: Final = 100


class AlternativesView(QWidget):
    """Left and Right go from answer to answer, Enter keeps the one that has the focus. Others stay as branches."""

    closed = Signal()

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme = kit.theme
        self._kit, self._theme = kit, theme
        self._columns: list[_Column] = []
        self._grown: dict[MessageId, Message] = {}
        self._title = ElidedLabel(weight="strong")
        close = IconButton(theme, "close", tr("Back to the chat"), tr("Back to the chat (Esc)"), clicked=self.closed)
        holder = QWidget()
        holder.setObjectName("column")
        self._row = boxes.row(on=holder, margins=(12, 0, 12, 8), spacing=8)
        area = QScrollArea(widgetResizable=True)
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(holder)
        self._area = area
        head = boxes.row((self._title, 1), close, margins=(12, 4, 8, 4))
        boxes.column(head, (area, 1), on=self, margins=0, spacing=0)
        for key, by in ((Qt.Key.Key_Left, -1), (Qt.Key.Key_Right, 1)):  # buttons take the arrows for themselves
            keys = QShortcut(QKeySequence(key), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            keys.activated.connect(partial(self._step, by))
        self._rendering = Throttle(self, _RENDER_MS, self._render)

    def show_answers(self, question: str, answers: Sequence[Message], shown: MessageId | None) -> None:
        """The answers to a question, and the one that the chat shows."""
        self._title.setText(tr("Answers to “{question}”").format(question=" ".join(question.split())))
        self._grown.clear()
        boxes.drop(self._row, *self._columns)
        self._columns = []
        for number, answer in enumerate(answers):
            name = tr("Answer {i} of {n}").format(i=number + 1, n=len(answers))
            column = _Column(self._theme, name, answer, is_shown=answer.id == shown)
            column.keep.clicked.connect(partial(self._keep, answer))
            self._columns.append(column)
            self._row.addWidget(column, 1)
            column.show()  # now, so that it can get the focus
        self._show_running()
        first = next((column for column in self._columns if column.message.id == shown), None)
        if first is not None:
            first.keep.setFocus()

    def update_answers(self, answers: Sequence[Message]) -> None:
        """Answers that became longer, or ended."""
        names = {column.message.id for column in self._columns}
        self._grown |= {answer.id: answer for answer in answers if answer.id in names}
        if self._grown:
            self._rendering.request()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        here = self._here()
        if presses(self.focusWidget(), event):
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and here is not None:
            self._columns[here].keep.click()
        else:
            super().keyPressEvent(event)

    def _keep(self, answer: Message, _checked: bool = False) -> None:
        """The chat goes on from this answer; it is shown even where it is shown already."""
        self.closed.emit()
        show_branch(self._kit, answer.conversation, answer.id)

    def _here(self) -> int | None:
        """The answer in which the keyboard is."""
        return next((n for n, column in enumerate(self._columns) if has_focus(column)), None)

    def _step(self, by: int) -> None:
        """To the answer before or after."""
        here = self._here()
        if self._columns and here is not None:
            target = self._columns[min(max(here + by, 0), len(self._columns) - 1)]
            target.keep.setFocus()
            self._area.ensureWidgetVisible(target, 0, 0)

    def _render(self) -> None:
        for column in self._columns:
            if (answer := self._grown.pop(column.message.id, None)) is not None:
                column.show_message(answer)
        self._show_running()

    def _show_running(self) -> None:
        """No branch can be chosen while one of them is being written."""
        running = any(column.message.state == "streaming" for column in self._columns)
        for column in self._columns:
            column.keep.setEnabled(not running)
            column.keep.setToolTip(
                tr("Wait until all answers have ended")
                if running
                else tr("The chat goes on from this answer (Enter); the others stay as branches")
            )


class _Column(QFrame):
    """One answer."""

    def __init__(self, theme: Theme, name: str, message: Message, *, is_shown: bool) -> None:
        super().__init__()
        self.setProperty("card", "code")
        self.setMinimumWidth(COLUMN_PX)
        self.setAccessibleName(name)
        self.message = message
        self._body = MessageBody(theme)
        text = QWidget()
        text.setObjectName("column")
        boxes.column(self._body, boxes.Stretch(1), on=text, margins=(12, 4, 12, 4))
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(text)
        scroll.setAccessibleName(name)
        self._note = label("", tone="secondary", scale="small", wrap=True)
        self._stats = boxes.grid(12, 2, 0, 1, margins=0)
        self.keep = push_button(
            tr("Keep this one"), name=tr("Keep this one: {name}").format(name=name), primary=is_shown
        )
        title = label(name + "  ·  " + tr("shown") if is_shown else name, weight="strong", scale="small")
        model = ElidedLabel(message.model, tone="secondary", scale="small")
        head = boxes.row(title, (model, 1), margins=(12, 8, 12, 4), spacing=8)
        foot = boxes.column(self._note, self._stats, self.keep, margins=(12, 4, 12, 8), spacing=6)
        boxes.column(head, (scroll, 1), foot, on=self, margins=0, spacing=0)
        self.show_message(message)

    def show_message(self, message: Message) -> None:
        """The answer as it is now."""
        self.message = message
        self._body.marks = message.marks
        self._body.show_source(message.text, growing=message.state == "streaming")
        show_text(self._note, message.note or (tr("Being written…") if message.state == "streaming" else ""))
        if message.stats is not None and not self._stats.count():
            for line, (name, value) in enumerate(stats_rows(message.stats)):
                self._stats.addWidget(label(name, tone="secondary", scale="small"), line, 0)
                number = label(value, scale="small")
                number.setAlignment(Qt.AlignmentFlag.AlignRight)
                self._stats.addWidget(number, line, 1)
