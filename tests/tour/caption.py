"""A few words over the composer: what the guided tour is doing."""

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtWidgets import QLabel

from kvdesk.ui.shell.main_window import MainWindow


class Caption(QLabel):
    """Floats over the composer, so that all the rest can be seen; an empty text hides it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window.chat)
        self._theme = window.theme
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._over, self._cover = window.chat, window.chat.composer
        for widget in (self._over, self._cover):
            widget.installEventFilter(self)
        self._theme.follow(self._on_look_changed)

    def _on_look_changed(self) -> None:
        colours = self._theme.colours
        ground = f"background: {colours.text}; color: {colours.window}"
        self.setStyleSheet(f"{ground}; border-radius: 8px; padding: 10px 16px;")

    def show_text(self, text: str) -> None:
        self.setText(text)
        self.setVisible(bool(text))
        self._place()
        self.raise_()

    def _place(self) -> None:
        if self.isHidden():
            return
        width = self._cover.width()
        height = max(self._cover.height(), self.heightForWidth(width))
        top = self._cover.mapTo(self._over, QPoint(0, 0))
        self.setGeometry(top.x(), min(top.y(), self._over.height() - height), width, height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.LayoutRequest):
            self._place()
        return super().eventFilter(watched, event)
