"""The place of the window on the screens there are, its frame included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QMargins, QObject, QPoint, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow, QSplitter

from kvdesk.settings import WindowPlace
from kvdesk.ui.widgets.controls import FRAME

FIRST_SIZE: Final = QSize(1280, 800)
TELL_MS: Final = 500  # after the last move or change of size
FRAMED_MS: Final = 250  # by then a window manager has put its frame around it
_TITLE: Final = QSize(120, 24)  # so much of a title bar must be on a screen for a hand to reach it


def fitted(place: WindowPlace, screens: Sequence[QRect], frame: QMargins = FRAME) -> tuple[QSize, QPoint | None]:
    """The size inside of its frame, and where the frame begins; None leaves that to the window manager.

    `screens` are the areas free for windows, the primary one first. A window that was on a screen that is gone, or is
    larger than its screen, comes onto one whole.
    """
    size = QSize(place.width, place.height) if place.width and place.height else FIRST_SIZE
    if not screens:
        return size, None
    where = QPoint(place.x, place.y)
    title = QRect(where, QSize(size.width(), _TITLE.height()))
    seen = [screen.intersected(title) for screen in screens]
    best = max(range(len(screens)), key=lambda i: seen[i].width() * seen[i].height())
    is_kept = bool(place.width) and seen[best].width() >= _TITLE.width() and seen[best].height() == _TITLE.height()
    screen = screens[best] if is_kept else screens[0]
    size = size.boundedTo(screen.marginsRemoved(frame).size())
    if not is_kept:
        return size, None
    whole = QRect(QPoint(), size).marginsAdded(frame).size()
    x = max(screen.left(), min(where.x(), screen.right() + 1 - whole.width()))
    y = max(screen.top(), min(where.y(), screen.bottom() + 1 - whole.height()))
    return size, QPoint(x, y)


class WindowPlacement(QObject):
    """Puts the window and its panes where they were, inside of their screen; tells when a person changes that. `use`
    comes first.
    """

    changed = Signal(object)  # WindowPlace

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._place = WindowPlace()
        self._given = QSize()  # by `restore`
        self._at: QPoint | None = None  # where `restore` put it
        self._put: QPoint | None = None  # where the window manager says that it is, once it has been put there
        self._telling = QTimer(self, singleShot=True, interval=TELL_MS)
        self._telling.timeout.connect(self.tell)
        window.installEventFilter(self)

    def use(self, splitter: QSplitter) -> None:
        """These are the panes from now on."""
        self._splitter = splitter
        splitter.splitterMoved.connect(lambda *_: self._telling.start())

    def restore(self, place: WindowPlace) -> None:
        """Before the window is shown; its frame is looked at afterwards."""
        self._place = place
        own = self._window.screen()
        screens = [own, *(screen for screen in QGuiApplication.screens() if screen is not own)]
        size, at = fitted(place, [screen.availableGeometry() for screen in screens])
        self._splitter.refresh()  # panes that were folded away since hold nothing up any more
        for holder in (self._splitter.parentWidget(), self._window):
            if holder is not None and (layout := holder.layout()) is not None:
                layout.activate()
        self._window.resize(size)
        self._given, self._at, self._put = size, at, None
        if at is not None:
            self._window.move(at)
        if place.maximized:
            self._window.setWindowState(Qt.WindowState.WindowMaximized)
        whole = max(size.width(), FIRST_SIZE.width())  # in a smaller window all three are narrower
        share = (
            min(whole / place.width, 1.0) if place.width else 1.0
        )  # what was on a larger screen is not all of this one
        sidebar, inspector = round(place.sidebar_width * share), round(place.inspector_width * share)
        self._splitter.setSizes([sidebar, max(whole - sidebar - inspector, 0), inspector])

    @Slot()
    def settle(self) -> None:
        """Once the frame is known: a window manager may have added it to the place that was asked for."""
        window = self._window
        is_placed = window.isVisible() and not (window.isMaximized() or window.isFullScreen())
        if self._at is not None and self._put is None and is_placed:
            if window.pos() != self._at:
                window.move(self._at)
            QTimer.singleShot(FRAMED_MS, self, self._on_put)
        self.keep_inside()

    @Slot()
    def _on_put(self) -> None:
        """What is reported now is the place that was asked for, however much it differs: it must not add up."""
        self._put = self._window.pos()

    @Slot()
    def tell(self) -> None:
        """Tell where the window is now, if that is news and it has been shown."""
        self._telling.stop()
        place = self.now()
        if self._window.isVisible() and place != self._place:
            self._place = place
            self.changed.emit(place)

    def keep_inside(self) -> None:
        """Once the frame is known: a window that reaches over the edge of its screen comes inside. One that got another
        size since stays as it is.
        """
        window = self._window
        if window.size() != self._given:
            return
        room, outer, inner = window.screen().availableGeometry(), window.frameGeometry(), window.geometry()
        if not window.isVisible() or window.isMaximized() or window.isFullScreen() or room.contains(outer):
            return
        frame = outer.size() - inner.size()
        window.resize(inner.size().boundedTo(room.size() - frame))
        outer = QRect(outer.topLeft(), window.size() + frame)
        x = max(room.left(), min(outer.x(), room.right() + 1 - outer.width()))
        y = max(room.top(), min(outer.y(), room.bottom() + 1 - outer.height()))
        window.move(x, y)

    def now(self) -> WindowPlace:
        """The place now. The width of a hidden pane is the last one it had."""
        window = self._window
        sidebar, _, inspector = self._splitter.sizes()
        found: dict[str, int | bool] = {"maximized": window.isMaximized()}
        if sidebar:
            found["sidebar_width"] = sidebar
        if inspector:
            found["inspector_width"] = inspector
        if not (window.isMaximized() or window.isFullScreen() or window.isMinimized()):
            at = self._at if self._at is not None and window.pos() == self._put else window.pos()
            found |= {"x": at.x(), "y": at.y(), "width": window.width(), "height": window.height()}
        return self._place.model_copy(update=found)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self._window.isVisible():
            self._telling.start()
        elif event.type() == QEvent.Type.Show:
            QTimer.singleShot(FRAMED_MS, self, self.settle)
        return super().eventFilter(watched, event)
