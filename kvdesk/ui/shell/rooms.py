"""The two rooms of the window: the conversations with their cache, and the laboratory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from kvdesk.ui.widgets.theme import Theme

if TYPE_CHECKING:
    from kvdesk.ui.lab.page import LabPage


class Rooms(QStackedWidget):
    """The laboratory is made when it is first shown: importing its plots takes 0.4 s.

    Signals: `lab_made` with the LabPage, once; `switched` after another room is shown.
    """

    lab_made = Signal(object)
    switched = Signal()

    def __init__(self, theme: Theme, chats: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._lab: LabPage | None = None
        self.addWidget(chats)

    @property
    def lab(self) -> LabPage | None:
        """None until it was shown."""
        return self._lab

    @property
    def shows_lab(self) -> bool:
        return self._lab is not None and self.currentWidget() is self._lab

    @Slot()
    def toggle_lab(self) -> None:
        if self.shows_lab:
            self.show_chats()
        else:
            self.show_lab()

    @Slot()
    def show_lab(self) -> None:
        if self._lab is None:
            from kvdesk.ui.lab.page import LabPage

            self._lab = LabPage(self._theme)
            self._lab.back_clicked.connect(self.show_chats)
            self.addWidget(self._lab)
            self.lab_made.emit(self._lab)
        if not self.shows_lab:
            self.setCurrentWidget(self._lab)
            self._lab.list.setFocus()
            self.switched.emit()

    @Slot()
    def show_chats(self) -> None:
        if self.shows_lab:
            self.setCurrentIndex(0)
            self.switched.emit()

    def in_chats(self, act: Callable[[], object]) -> Callable[[], None]:
        """Show the conversations and do something there."""

        def go() -> None:
            self.show_chats()
            act()

        return go
