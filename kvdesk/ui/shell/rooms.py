"""The rooms of the window: the conversations with their cache, the laboratory, the models, and the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from kvdesk.session import SettingsStore
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState

if TYPE_CHECKING:
    from kvdesk.ui.lab.page import LabPage
    from kvdesk.ui.models.page import ModelsPage
    from kvdesk.ui.settings.page import SettingsPage


class Rooms(QStackedWidget):
    """Each but the first is made when it is first shown: importing the laboratory's plots takes 0.4 s.

    Signals: `lab_made` with the LabPage, `models_made` with the ModelsPage and `settings_made` with the SettingsPage,
    once; `switched` after another room is shown.
    """

    lab_made = Signal(object)
    models_made = Signal(object)
    settings_made = Signal(object)
    switched = Signal()

    def __init__(self, theme: Theme, chats: QWidget, store: SettingsStore, state: CacheState) -> None:
        super().__init__()
        self._theme, self._store, self._state = theme, store, state
        self._lab: LabPage | None = None
        self._models: ModelsPage | None = None
        self._settings: SettingsPage | None = None
        self._first: QWidget = chats
        self.addWidget(chats)

    @property
    def lab(self) -> LabPage | None:
        """None until it was shown."""
        return self._lab

    @property
    def models(self) -> ModelsPage | None:
        """None until it was shown."""
        return self._models

    @property
    def settings(self) -> SettingsPage | None:
        """None until it was shown."""
        return self._settings

    @property
    def shows_lab(self) -> bool:
        return self._lab is not None and self.currentWidget() is self._lab

    @property
    def shows_models(self) -> bool:
        return self._models is not None and self.currentWidget() is self._models

    @property
    def shows_settings(self) -> bool:
        return self._settings is not None and self.currentWidget() is self._settings

    @property
    def shows_chats(self) -> bool:
        return self.currentIndex() == 0

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
        self._show(self._lab, self._lab.list)

    @Slot()
    def toggle_models(self) -> None:
        if self.shows_models:
            self.show_chats()
        else:
            self.show_models()

    @Slot()
    def show_models(self) -> None:
        if self._models is None:
            from kvdesk.ui.models.page import ModelsPage

            self._models = ModelsPage(self._theme)
            self._models.back_clicked.connect(self.show_chats)
            self.addWidget(self._models)
            self.models_made.emit(self._models)
        self._show(self._models, self._models.view)

    @Slot()
    def show_get_models(self) -> None:
        """Where models are downloaded."""
        self.show_models()
        assert self._models is not None
        self._models.show_part(get=True)

    def when_lab(self, hear: Callable[[LabPage], object]) -> None:
        """Give it the page when it is made, or at once where it is already."""
        if self._lab is not None:
            hear(self._lab)
        self.lab_made.connect(hear)

    def when_models(self, hear: Callable[[ModelsPage], object]) -> None:
        """The same of the models."""
        if self._models is not None:
            hear(self._models)
        self.models_made.connect(hear)

    def show_settings(self) -> SettingsPage:
        """The page, which shows one of its sections."""
        if self._settings is None:
            from kvdesk.ui.settings.page import SettingsPage

            self._settings = SettingsPage(self._theme, self._store, self._state)
            self._settings.back_clicked.connect(self.show_chats)
            self.addWidget(self._settings)
            self.settings_made.emit(self._settings)
        self._show(self._settings, self._settings.sections)
        return self._settings

    def _show(self, room: QWidget, first: QWidget) -> None:
        """`first` has the keys, unless the room is shown already."""
        if self.currentWidget() is not room:
            self.setCurrentWidget(room)
            self._first = first
            self.focus_first()
            self.switched.emit()

    def focus_first(self) -> None:
        """Where one begins in a room other than the conversations."""
        self._first.setFocus()

    @Slot()
    def leave(self) -> None:
        """Esc: a question of the room is answered with no, else the conversations are shown again. In the laboratory it
        does nothing: a result that one reads is not to be lost by a key that closes other things.
        """
        if self.shows_lab:
            return
        if not (self._models is not None and self.shows_models and self._models.leave()):
            self.show_chats()

    @Slot()
    def show_chats(self) -> None:
        if not self.shows_chats:
            self.setCurrentIndex(0)
            self.switched.emit()

    def in_chats(self, act: Callable[[], object]) -> Callable[[], None]:
        """Show the conversations and do something there."""

        def go() -> None:
            self.show_chats()
            act()

        return go
