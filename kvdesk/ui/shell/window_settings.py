"""The settings as the window shows them, and how a person changes them: hidden panes, theme, the page of settings.

The store owns the values; nothing here keeps any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.protocol.messages import Event
from kvdesk.session import SettingsStore
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.translation import tr
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.widgets.choose_file import last_folder
from kvdesk.ui.widgets.sizes import LEAST_FONT_PX, MOST_FONT_PX, ZOOMS

if TYPE_CHECKING:
    from kvdesk.ui.settings.page import SettingsPage


class WindowSettings(QObject):
    """Shows the settings of the store, and brings there what a person changes."""

    shown = Signal()
    """Other panes may be shown now."""
    rebuild_chosen = Signal(object, str)
    """(ContextSettings, keep): another context was applied on the page."""

    def __init__(self, parts: WindowParts, store: SettingsStore) -> None:
        super().__init__(parts.window)
        self._parts, self._store = parts, store
        parts.conversations.folders_collapsed.connect(self._on_folders_collapsed)
        parts.rooms.settings_made.connect(self._on_page_made)
        last_folder.settings = store

    @property
    def current(self) -> Settings:
        """The settings of the store."""
        return self._store.current

    def show_all(self) -> None:
        """Show all settings but the theme, with which the parts of the window were made."""
        self.show_changed(frozenset(Settings.model_fields) - {"theme"})

    def show_changed(self, changed: frozenset[str]) -> None:
        """Show the fields with these names as they are now."""
        parts, now = self._parts, self.current
        if "theme" in changed:
            parts.theme.set_theme(now.theme)
        parts.theme.set_size(now.zoom, now.font_px)
        parts.events.show_default_overflow(now.cache.overflow)
        parts.panes.fold()
        parts.conversations.show_collapsed(now.collapsed_folders)
        parts.status.show_engine(now.all_instruments)
        parts.chat.empty.offer_tour(not now.tour_seen)
        if (page := parts.rooms.settings) is not None:
            page.show_settings(changed)
        self.shown.emit()

    def apply_event(self, event: Event) -> None:
        """What the page shows of an event."""
        if (page := self._parts.rooms.settings) is not None:
            page.apply_event(event)

    @Slot()
    def toggle_sidebar(self) -> None:
        """Show or hide the conversations."""
        shown = self._parts.conversations.isHidden()
        beside = self.current.inspector_visible and not (shown and self._parts.panes.is_narrow)
        self._store.change(sidebar_visible=shown, inspector_visible=beside)

    @Slot()
    def toggle_inspector(self) -> None:
        """Show or hide the inspector; it is shown where the parameters were in its place."""
        shown = self._parts.panes.shows_parameters or not self.current.inspector_visible
        self._parts.panes.hide_parameters()
        self._store.change(inspector_visible=shown)

    @Slot()
    def toggle_instruments(self) -> None:
        """Show all of the inspector, or the cell map and four numbers."""
        self.show_instruments(not self.current.all_instruments or self._parts.inspector.isHidden())

    @Slot(bool)
    def show_instruments(self, shows_all: bool) -> None:
        """All of the inspector; else the cell map and four numbers."""
        self._parts.panes.hide_parameters()
        self._store.change(all_instruments=shows_all, inspector_visible=True)

    def zoom(self, steps: int) -> None:
        """The whole window larger or smaller by so many steps; 0: as the system has it."""
        now = self.current.zoom
        at = min(range(len(ZOOMS)), key=lambda i: abs(ZOOMS[i] - now))
        self._store.change(zoom=ZOOMS[min(max(at + steps, 0), len(ZOOMS) - 1)] if steps else 100)

    def change_font(self, by: int) -> None:
        """Text larger or smaller by so many pixels; 0: as the system has it."""
        px = (self.current.font_px or self._parts.theme.system_px) + by
        self._store.change(font_px=min(max(px, LEAST_FONT_PX), MOST_FONT_PX) if by else 0)

    def show_chat(self) -> None:
        """The chat is shown where the inspector or the parameters stand in its place."""
        if self._parts.chat.isHidden():
            self._parts.panes.hide_parameters()
        if self._parts.chat.isHidden():
            self._store.change(inspector_visible=False)

    def use_theme(self, theme: ThemeChoice) -> None:
        """Light, dark, or as the system has it."""
        self._store.change(theme=theme)

    @Slot()
    def keep_tour_seen(self) -> None:
        """An empty chat offers the tour no more."""
        self._store.change(tour_seen=True)

    def show_page(self, label: str) -> None:
        """Show a page of the inspector, which is opened for it."""
        self.show_instruments(True)
        self._parts.inspector.show_tab(label)

    @Slot()
    def open(self) -> None:
        """The page of settings."""
        self._parts.rooms.show_settings()

    @Slot()
    def open_context(self) -> None:
        """The settings, at the context: what a rebuild would make."""
        self._parts.rooms.show_settings().show_context()

    def open_setting(self, words: str) -> None:
        """The settings that have these words."""
        self._parts.rooms.show_settings().search_for(words)

    @Slot()
    def open_serving(self) -> None:
        """Where other programs are served."""
        self._parts.rooms.show_settings().show_serving()

    def open_connecting(self) -> None:
        """Where a server is connected."""
        self._parts.rooms.show_settings().show_connecting()

    @Slot(object)
    def _on_page_made(self, page: SettingsPage) -> None:
        page.rebuild_clicked.connect(self.rebuild_chosen)
        page.preview_asked.connect(self._parts.window.command_requested)
        page.left_unapplied.connect(self._on_left_unapplied)

    @Slot()
    def _on_left_unapplied(self) -> None:
        self._parts.activity.show_result(tr("The context that you edited in the settings is not applied."), "warning")

    @Slot(object)
    def _on_folders_collapsed(self, folders: frozenset[str]) -> None:
        self._store.change(collapsed_folders=tuple(sorted(folders)))
