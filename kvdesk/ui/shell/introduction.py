"""The tour: six steps, each a card that points at a part of the window. One can do anything else
meanwhile; Esc leaves it. (`kvdesk demo` is different: it operates the window.)
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, SignalInstance
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from kvdesk.translation import tr
from kvdesk.ui.shell.window import Window
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every
from kvdesk.values import dataclass

_FOLLOW_MS: Final = 150  # panes are moved and answers grow under the card
_WIDTH_PX: Final = 340
_GAP_PX: Final = 12


@dataclass(frozen=True, slots=True)
class Step:
    """A heading, one or two sentences, and the parts of the window that it may be about: the first that is seen.
    `done`: sent when a person has done what it asks for; the next step comes then. `can_show`: whether there is what
    it is about; otherwise it is left out.
    """

    title: str
    text: str
    targets: Callable[[], Sequence[QWidget | None]]
    done: SignalInstance | None = None
    can_show: Callable[[], bool] = lambda: True


def steps(window: Window) -> tuple[Step, ...]:
    """The six steps."""
    chat = window.chat

    def named(name: str) -> QWidget | None:
        """The last widget of that object name that is seen: of answers the newest."""
        seen = [widget for widget in window.findChildren(QWidget, name) if widget.isVisible()]
        return seen[-1] if seen else None

    return (
        Step(
            tr("Write a message"),
            tr("A model is open already: type here and press Enter. Everything is computed on this computer."),
            lambda: (chat.composer,),
            chat.composer.sent,
        ),
        Step(
            tr("What an answer cost"),
            tr(
                "Each answer shows how many tokens came from the cache, how many were computed, and how fast. "
                "Hover it for more."
            ),
            lambda: (named("answerStats"), *chat.view.widgets[-1:]),
            can_show=lambda: bool(chat.view.questions),
        ),
        Step(
            tr("The cell map"),
            tr("Each square is a cell of the KV cache: one token, in the colour of its chat. Grey cells are free."),
            lambda: (named("cellMap"), named("inspectorButton")),
        ),
        Step(
            tr("When the context is full"),
            tr("This menu has the choice: stop, or let the oldest messages go."),
            lambda: (named("menuButton"),),
        ),
        Step(
            tr("Models and settings"),
            tr("Here you open another model, a GGUF file. Ctrl+, opens the settings."),
            lambda: (named("modelButton"),),
        ),
        Step(
            tr("The laboratory"),
            tr(
                "It answers questions about the cache by experiments. Ctrl+Shift+P finds everything else, this tour "
                "too; F1 shows all keys."
            ),
            lambda: (named("labButton"), named("sidebarButton")),
            can_show=lambda: "view.lab" in window.kit.actions,
        ),
    )


class Introduction(QFrame):
    """The card, and a frame around the part it is about."""

    def __init__(
        self, window: QWidget, theme: Theme, steps: Sequence[Step], composer: QPlainTextEdit | None = None
    ) -> None:
        """`composer`: Enter in it goes on while it is empty; after the tour one types there."""
        super().__init__(window)
        self._composer = composer
        self.setProperty("card", "palette")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._window, self._steps, self._at = window, tuple(steps), 0
        self._ring = _Ring(window, theme)
        self._title = label("", weight="strong")
        self._text = label("", wrap=True)
        self._count = label("", tone="secondary", scale="small")
        self.leave_button = push_button(tr("Leave"), tip=tr("Leave the tour (Esc)"), clicked=self.leave)
        self.back_button = push_button(tr("Back"), clicked=lambda: self._go(-1))
        self.next_button = push_button("", primary=True, clicked=lambda: self._go(1))
        row = boxes.row((self._count, 1), spacing=8)
        for button in (self.leave_button, self.back_button, self.next_button):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus in the message box
            row.addWidget(button)
        boxes.column(self._title, self._text, row, on=self, margins=(16, 12, 16, 12), spacing=8)
        self._following = every(self, _FOLLOW_MS, self._place)
        for n, step in enumerate(self._steps):
            if step.done is not None:
                step.done.connect(partial(self._on_done, n))
        window.installEventFilter(self)
        if self._composer is not None:
            self._composer.installEventFilter(self)
        self.hide()

    @property
    def target(self) -> QWidget | None:
        """The part of the window that the step is about: the first that is seen."""
        return next((one for one in self._steps[self._at].targets() if one is not None and one.isVisible()), None)

    def start(self, *, focus: bool) -> None:
        """Show the first step. `focus`: a person asked for it, and goes on by keys."""
        self._at = 0
        self._following.start()
        self.show()
        self._show_step()
        if focus:
            self.next_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def leave(self) -> None:
        """End it."""
        if self.isVisible():
            self._following.stop()
            self._ring.hide()
            self.hide()
            if self._composer is not None:
                self._composer.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_done(self, step: int, *_values: object) -> None:
        """What a step asks for was done."""
        if self.isVisible() and step == self._at:
            self._go(1)

    def _go(self, by: int) -> None:
        """To the next step that can be shown in a direction."""
        at = self._at + by
        while 0 <= at < len(self._steps) and not self._steps[at].can_show():
            at += by
        if at >= len(self._steps):
            self.leave()
        elif at >= 0:
            self._at = at
            self._show_step()

    def _show_step(self) -> None:
        step, last = self._steps[self._at], self._at == len(self._steps) - 1
        shown = [n for n, one in enumerate(self._steps) if n == self._at or one.can_show()]
        count = tr("{n} of {all}").format(n=shown.index(self._at) + 1, all=len(shown))
        self._title.setText(step.title)
        self._text.setText(step.text)
        self._count.setText(count)
        self.back_button.setVisible(self._at > 0)
        self.leave_button.setVisible(not last)
        self.next_button.setText(tr("Done") if last else tr("Next"))
        self.setAccessibleName(tr("Tour"))
        self.setAccessibleDescription(f"{step.title}. {step.text}")
        announce(self, f"{count}. {step.title}. {step.text}")
        self._place()
        self.raise_()

    def _place(self) -> None:
        """Beside the target, if there is room."""
        area = self._window.rect()
        width = min(self._theme.px(_WIDTH_PX), area.width() - 2 * _GAP_PX)
        size = QSize(width, max(self.heightForWidth(width), self.sizeHint().height()))
        target = self.target
        if target is None:
            self._ring.hide()
            self.setGeometry(QRect(area.center() - QPoint(width // 2, size.height() // 2), size))
            return
        about = QRect(target.mapTo(self._window, QPoint()), target.size()).intersected(area)
        self._ring.show_around(about)
        self.setGeometry(placed(size, about, area))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._composer and self._composer is not None:
            is_enter = isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            goes_on = is_enter and event.type() == QEvent.Type.KeyPress and not self._composer.toPlainText().strip()
            if goes_on and self.isVisible():
                self.next_button.click()
                return True
            return False
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False


def placed(size: QSize, about: QRect, area: QRect) -> QRect:
    """Below `about`, above, right or left of it, the first that is whole inside of `area`; else in its middle."""
    middle_x = about.center().x() - size.width() // 2
    x = max(_GAP_PX, min(middle_x, area.right() - size.width() - _GAP_PX))
    y = max(_GAP_PX, min(about.center().y() - size.height() // 2, area.bottom() - size.height() - _GAP_PX))
    for corner in (
        QPoint(x, about.bottom() + _GAP_PX),
        QPoint(x, about.top() - _GAP_PX - size.height()),
        QPoint(about.right() + _GAP_PX, y),
        QPoint(about.left() - _GAP_PX - size.width(), y),
    ):
        if area.contains(box := QRect(corner, size)):
            return box
    return QRect(QPoint(x, y), size)


class _Ring(QWidget):
    """A frame around a part of the window, which can be used through it."""

    def __init__(self, window: QWidget, theme: Theme) -> None:
        super().__init__(window)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_around(self, about: QRect) -> None:
        box = about.adjusted(-3, -3, 3, 3)
        if box != self.geometry():
            self.setGeometry(box)
        if self.isHidden():
            self.show()
            self.raise_()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.colours.accent), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
