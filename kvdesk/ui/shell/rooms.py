"""The rooms of the window: the conversations with their cache, the models, the settings, and those of its slices.

To add one: a line in `ROOMS`, with what makes its widget. `Rooms.show_room(name)` shows it; for keys and menus an
action of `action_table` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from kvdesk.ui.widgets.kit import Kit, Room

if TYPE_CHECKING:
    from kvdesk.ui.models.page import ModelsPage
    from kvdesk.ui.settings.page import SettingsPage


def _make_models(kit: Kit) -> ModelsPage:
    from kvdesk.ui.models.page import ModelsPage

    return ModelsPage(kit)


def _make_settings(kit: Kit) -> SettingsPage:
    from kvdesk.ui.settings.page import SettingsPage

    return SettingsPage(kit)


ROOMS: Final = {
    "models": Room(_make_models, lambda page: page.view, lambda page: page.leave()),
    "settings": Room(_make_settings, lambda page: page.sections),
}


class Rooms(QStackedWidget):
    """`switched` is sent after another room is shown."""

    switched = Signal()
    made = Signal(str)
    """(name): the widget of a room was made."""

    def __init__(self, kit: Kit, chats: QWidget) -> None:
        super().__init__()
        self._kit = kit
        self._made: dict[str, Any] = {}
        self._rooms = dict(ROOMS)
        for one in kit.slices:
            self._rooms |= one.rooms
        self.addWidget(chats)
        self.currentChanged.connect(lambda *_: self.updateGeometry())

    def minimumSizeHint(self) -> QSize:
        """That of the room that is shown; the others may need more."""
        room = self.currentWidget()
        return room.minimumSizeHint() if room is not None else super().minimumSizeHint()

    def get(self, name: str) -> Any:
        """The widget of a room; None until it was shown."""
        return self._made.get(name)

    @property
    def models(self) -> ModelsPage | None:
        """None until it was shown."""
        return self._made.get("models")

    @property
    def settings(self) -> SettingsPage | None:
        """None until it was shown."""
        return self._made.get("settings")

    @property
    def shown(self) -> str:
        """The name of the room that is shown; "" for the conversations."""
        return next((name for name, room in self._made.items() if self.currentWidget() is room), "")

    @property
    def shows_chats(self) -> bool:
        return self.currentIndex() == 0

    def toggle(self, name: str) -> None:
        """Show a room, or the conversations."""
        if self.shown == name:
            self.show_chats()
        else:
            self.show_room(name)

    def show_room(self, name: str) -> QWidget:
        """Show a room, its first part with the keys unless it is shown already."""
        if name not in self._made:
            self._made[name] = self._rooms[name].make(self._kit)
            self.addWidget(self._made[name])
            self.made.emit(name)
        page: QWidget = self._made[name]
        if self.currentWidget() is not page:
            self.setCurrentWidget(page)
            self.focus_first()
            self.switched.emit()
        return page

    def show_models(self, *, get: bool = False) -> None:
        """`get`: where they are downloaded."""
        self.show_room("models")
        assert self.models is not None
        if get:
            self.models.show_part(get=True)

    def show_settings(self) -> SettingsPage:
        """The page, which shows one of its sections."""
        self.show_room("settings")
        assert self.settings is not None
        return self.settings

    def show_section(self, table: str) -> None:
        """The section of the settings with this table."""
        self.show_settings().show_part(table)

    def when_made(self, name: str, hear: Callable[[Any], object]) -> None:
        """Call it with the widget of a room when that is made, or at once if it is already."""
        if name in self._made:
            hear(self._made[name])
        self.made.connect(lambda made: hear(self._made[made]) if made == name else None)

    def focus_first(self) -> None:
        """Where one begins in a room other than the conversations."""
        if name := self.shown:
            self._rooms[name].first(self._made[name]).setFocus()

    def leave(self) -> None:
        """Esc."""
        leave = self._rooms[self.shown].leave if self.shown else None
        if leave is not None and not leave(self._made[self.shown]):
            self.show_chats()

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
