"""The settings that the window itself shows, and how a person changes them: hidden panes, theme, sizes.

The store owns the values; nothing here keeps any.
"""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from kvdesk.ui.shell.window import Window
from kvdesk.ui.widgets.choose_file import last_folder
from kvdesk.ui.widgets.style.sizes import LEAST_FONT_PX, MOST_FONT_PX, ZOOMS


class WindowSettings(QObject):
    """Shows the settings of the store, and brings there what a person changes."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window, self._store = window, window.store.settings
        last_folder.settings = self._store
        self.destroyed.connect(self._store.listen(self.show_changed))

    def show_changed(self, changed: frozenset[str]) -> None:
        """Show the fields with these names as they are now."""
        window, now = self._window, self._store.current
        if "theme" in changed:
            window.theme.set_theme(now.theme)
        window.theme.set_size(now.zoom, now.font_px)
        window.panes.fold()

    def toggle_sidebar(self) -> None:
        """Show or hide the conversations."""
        panes, shown = self._window.panes, self._window.conversations.isHidden()
        beside = self._store.current.inspector_visible and not (shown and panes.is_narrow)
        if shown and panes.is_narrow:
            panes.hide_parameters()
        self._ask_for(self._window.conversations if shown else None)
        self._store.change(sidebar_visible=shown, inspector_visible=beside)
        if self._window.chat.isHidden():
            self._window.conversations.view.setFocus()

    def toggle_inspector(self) -> None:
        """Show or hide the inspector; it is shown where the parameters, or the chat, were in its place."""
        shown = self._window.inspector.isHidden()
        self._window.panes.hide_parameters()
        self._ask_for(self._window.inspector if shown else None)
        self._store.change(inspector_visible=shown)

    def toggle_instruments(self) -> None:
        """Show all of the inspector, or the cell map and four numbers."""
        self.show_instruments(not self._store.current.all_instruments or self._window.inspector.isHidden())

    def show_instruments(self, shows_all: bool) -> None:
        """All of the inspector; else the cell map and four numbers."""
        self._window.panes.hide_parameters()
        self._ask_for(self._window.inspector)
        self._store.change(all_instruments=shows_all, inspector_visible=True)

    def zoom(self, steps: int) -> None:
        """The whole window larger or smaller by `by` steps; 0: as the system has it."""
        now = self._store.current.zoom
        at = min(range(len(ZOOMS)), key=lambda i: abs(ZOOMS[i] - now))
        self._store.change(zoom=ZOOMS[min(max(at + steps, 0), len(ZOOMS) - 1)] if steps else 100)

    def change_font(self, by: int) -> None:
        """Text larger or smaller by `by` pixels; 0: as the system has it."""
        px = (self._store.current.font_px or self._window.theme.system_px) + by
        self._store.change(font_px=min(max(px, LEAST_FONT_PX), MOST_FONT_PX) if by else 0)

    def _ask_for(self, pane: QWidget | None) -> None:
        """The pane that is shown if it and the chat have no room together; None: the chat."""
        self._window.panes.asked_for = pane
        self.show_changed(frozenset())

    def toggle_probabilities(self) -> None:
        """New answers keep how likely their tokens were, and all are coloured by it; or no longer."""
        self._store.change(token_probabilities=not self._store.current.token_probabilities)

    def show_page(self, label: str) -> None:
        """Show a page of the inspector, which is opened for it."""
        self.show_instruments(True)
        self._window.inspector.show_tab(label)
