"""What helps a person to find things: the main menu, the command palette, the list of shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QPoint, Qt, Slot
from PySide6.QtWidgets import QDialog, QMenu

from kvdesk.ui.shell.actions import ActionGroup, ActionSet
from kvdesk.ui.shell.window_parts import WindowParts

if TYPE_CHECKING:
    from kvdesk.ui.shell.about_dialog import AboutDialog, AboutFacts
    from kvdesk.ui.shell.command_palette import CommandPalette
    from kvdesk.ui.shell.report_dialog import ReportDialog

MENU: Final = (
    *("chat.new", "chat.search", "model.open", ""),
    *("chat.import", "chat.export", "chat.export_all", ""),
    *("view.lab", "settings.open", ""),
    *("help.palette", "help.shortcuts", ""),
    *("view.log", "help.report", "help.about", ""),
    "app.quit",
)
"""The main menu, of ids of actions; "" is a line."""


class WindowHelp(QObject):
    """Makes everything when it is first asked for. `connect_actions` comes before that."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._palette: CommandPalette | None = None
        self.about: AboutDialog | None = None
        self.report: ReportDialog | None = None
        parts.chat.menu_clicked.connect(self.show_menu)

    def connect_actions(self, actions: ActionSet, widget_keys: Callable[[], tuple[ActionGroup, ...]]) -> None:
        """The actions to list, and the keys of parts of the window."""
        self._actions, self._widget_keys = actions, widget_keys

    @property
    def palette(self) -> CommandPalette:
        if self._palette is None:
            from kvdesk.ui.shell.command_palette import CommandPalette

            window, theme = self._parts.window, self._parts.theme
            self._palette = CommandPalette(window, theme, self._actions, self._widget_keys())
        return self._palette

    @Slot()
    def open_palette(self) -> None:
        """Every action of the window, to be searched and run."""
        self.palette.open()

    def show_about(self, facts: AboutFacts) -> None:
        """Versions and licences."""
        from kvdesk.ui.shell.about_dialog import AboutDialog

        self.about = AboutDialog(self._parts.theme, self._parts.window, facts)
        _open(self.about)

    @Slot()
    def open_report(self) -> None:
        """Choose what a report of a problem holds, and where it is written."""
        from kvdesk.ui.shell.report_dialog import ReportDialog

        self.report = ReportDialog(self._parts.window)
        self.report.wanted.connect(self._parts.window.problem_report_requested)
        _open(self.report)

    @Slot()
    def open_shortcuts(self) -> None:
        """Every key there is."""
        self.palette.open_shortcuts()

    def menu(self) -> QMenu:
        """The main menu with the actions as they are now."""
        menu = QMenu(self._parts.window)
        self._actions.fill_menu(menu, *MENU)
        return menu

    @Slot(QPoint)
    def show_menu(self, at: QPoint) -> None:
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(at)


def _open(dialog: QDialog) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
