"""The settings as the window shows them, and how a person changes them: hidden panes, theme, the settings dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.protocol.messages import Event
from kvdesk.settings import Preset, Settings, ThemeChoice, WindowPlace
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.widgets.choose_file import last_folder
from kvdesk.ui.widgets.sizes import LEAST_FONT_PX, MOST_FONT_PX, ZOOMS

if TYPE_CHECKING:
    from kvdesk.ui.settings.panel import SettingsPanel

_ELSEWHERE: Final = (
    *("sidebar_visible", "inspector_visible", "all_instruments", "collapsed_folders", "window"),
    *("context", "tour_seen", "zoom", "font_px", "last_folder"),
)
"""Settings that do not change with the dialog's others."""


class WindowSettings(QObject):
    """Holds the settings that are shown. What a person changes goes out by the window's `settings_changed`."""

    shown = Signal()
    """Other panes may be shown now."""
    rebuild_chosen = Signal(object, str)
    """(ContextSettings, keep): another context was applied in the dialog."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._panel: SettingsPanel | None = None
        self.current = Settings()
        parts.conversations.folders_collapsed.connect(self._on_folders_collapsed)
        last_folder.kept = self.current.last_folder
        last_folder.changed.connect(self._on_folder_used)

    @property
    def panel(self) -> SettingsPanel | None:
        """The settings dialog; None until it was opened."""
        return self._panel

    def show(self, settings: Settings) -> None:
        """Show these settings. Sends nothing."""
        self.current = settings
        last_folder.kept = settings.last_folder
        self._parts.events.show_default_overflow(settings.cache.overflow)
        self._parts.theme.set_theme(settings.theme)
        self._parts.theme.set_size(settings.zoom, settings.font_px)
        self._parts.panes.fold(settings)
        self._parts.conversations.show_collapsed(settings.collapsed_folders)
        if self._panel is not None:
            self._panel.show_settings(settings)
        self.shown.emit()

    def apply_event(self, event: Event) -> None:
        """What the open dialog shows of an event."""
        if self._panel is not None:
            self._panel.apply_event(event)

    @Slot()
    def toggle_sidebar(self) -> None:
        """Show or hide the conversations."""
        shown = self._parts.conversations.isHidden()
        beside = self.current.inspector_visible and not (shown and self._parts.panes.is_narrow)
        self._change(sidebar_visible=shown, inspector_visible=beside)

    @Slot()
    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self._change(inspector_visible=not self.current.inspector_visible)

    @Slot()
    def toggle_instruments(self) -> None:
        """Show all of the inspector, or the cell map and four numbers."""
        self.show_instruments(not self.current.all_instruments or self._parts.inspector.isHidden())

    @Slot(bool)
    def show_instruments(self, shows_all: bool) -> None:
        """All of the inspector; else the cell map and four numbers."""
        self._change(all_instruments=shows_all, inspector_visible=True)

    def zoom(self, steps: int) -> None:
        """The whole window larger or smaller by so many steps; 0: as the system has it."""
        now = self.current.zoom
        at = min(range(len(ZOOMS)), key=lambda i: abs(ZOOMS[i] - now))
        self._resize(zoom=ZOOMS[min(max(at + steps, 0), len(ZOOMS) - 1)] if steps else 100)

    def change_font(self, by: int) -> None:
        """Text larger or smaller by so many pixels; 0: as the system has it."""
        px = (self.current.font_px or self._parts.theme.system_px) + by
        self._resize(font_px=min(max(px, LEAST_FONT_PX), MOST_FONT_PX) if by else 0)

    @Slot(int, int)
    def use_size(self, zoom: int, font_px: int) -> None:
        """The zoom in percent and the size of text in pixels, 0 being the system's."""
        self._resize(zoom=zoom, font_px=font_px)

    def show_chat(self) -> None:
        """The chat is shown where the inspector stands in its place."""
        if self._parts.chat.isHidden():
            self._change(inspector_visible=False)

    def use_theme(self, theme: ThemeChoice) -> None:
        """Light, dark, or as the system has it."""
        self._parts.theme.set_theme(theme)
        self._change(theme=theme)

    def _resize(self, **fields: int) -> None:
        size = {"zoom": self.current.zoom, "font_px": self.current.font_px} | fields
        self._parts.theme.set_size(size["zoom"], size["font_px"])
        self._change(**size)

    @Slot()
    def keep_tour_seen(self) -> None:
        """The tour of the first start is not shown again."""
        if not self.current.tour_seen:
            self._change(tour_seen=True)

    def show_page(self, label: str) -> None:
        """Show a page of the inspector, which is opened for it."""
        self.show_instruments(True)
        self._parts.inspector.show_tab(label)

    @Slot()
    def open(self) -> None:
        """Open the settings dialog."""
        if self._panel is None:
            from kvdesk.ui.settings.panel import SettingsPanel

            self._panel = SettingsPanel(self._parts.theme, self._parts.window, self._parts.state)
            self._panel.applied.connect(self._on_applied)
            self._panel.size_chosen.connect(self.use_size)
            self._panel.rebuild_clicked.connect(self.rebuild_chosen)
            self._panel.preview_asked.connect(self._parts.window.command_requested)
        if not self._panel.isVisible():
            self._panel.reset(self.current)
        self._panel.show()
        self._panel.raise_()
        self._panel.activateWindow()

    @Slot()
    def open_context(self) -> None:
        """The settings, at the context: what a rebuild would make."""
        self.open()
        if self._panel is not None:
            self._panel.show_context()

    @Slot(object)
    def keep_presets(self, presets: tuple[Preset, ...]) -> None:
        """The person's own presets are these now."""
        self._change(presets=presets)

    @Slot(object)
    def keep_place(self, place: WindowPlace) -> None:
        """The window was moved, or one of its panes."""
        self.current = self.current.model_copy(update={"window": place})
        self._parts.window.place_changed.emit(place)

    @Slot(object)
    def _on_applied(self, settings: Settings) -> None:
        """All but the context, which `rebuild_chosen` is for."""
        self.current = settings.model_copy(update={name: getattr(self.current, name) for name in _ELSEWHERE})
        self._parts.theme.set_theme(settings.theme)
        self._parts.window.settings_changed.emit(self.current)

    @Slot(str)
    def _on_folder_used(self, folder: str) -> None:
        if folder != self.current.last_folder:
            self._change(last_folder=folder)

    @Slot(object)
    def _on_folders_collapsed(self, folders: frozenset[str]) -> None:
        self.current = self.current.model_copy(update={"collapsed_folders": tuple(sorted(folders))})
        self._parts.window.settings_changed.emit(self.current)

    def _change(self, **fields: object) -> None:
        """Show the settings with other values, and tell."""
        self.current = self.current.model_copy(update=fields)
        self._parts.panes.fold(self.current)
        self.shown.emit()
        self._parts.window.settings_changed.emit(self.current)
