"""What helps a person to find things: the main menu, the command palette, the list of shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QDialog, QMenu

from kvdesk.translation import tr
from kvdesk.ui.shell.actions import ActionGroup, ActionSet, Submenu
from kvdesk.ui.shell.window_parts import WindowParts

if TYPE_CHECKING:
    from kvdesk.ui.shell.about_dialog import AboutDialog, AboutFacts
    from kvdesk.ui.shell.command_palette import CommandPalette
    from kvdesk.ui.shell.introduction import Introduction
    from kvdesk.ui.shell.report_dialog import ReportDialog


def menu_names() -> tuple[str | Submenu, ...]:
    """The main menu, of ids of actions; "" is a line."""
    return (
        *("chat.new", "chat.search", "chat.undo", ""),
        *("chat.parameters", "chat.overflow", ""),
        *("model.open", "model.list", "model.server", "app.serve", ""),
        Submenu(tr("Import and export"), ("chat.import", "chat.export", "chat.export_all")),
        Submenu(tr("Zoom"), ("view.zoom_in", "view.zoom_out", "view.zoom_reset")),
        *("view.lab", "settings.open", "help.palette"),
        Submenu(tr("Help"), ("help.shortcuts", "help.tour", "", "view.log", "help.report", "help.about")),
        "",
        "app.quit",
    )


class WindowHelp(QObject):
    """Makes everything when it is first asked for. `connect_actions` comes before that."""

    tour_started = Signal()

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._palette: CommandPalette | None = None
        self.introduction: Introduction | None = None
        self.about: AboutDialog | None = None
        self.report: ReportDialog | None = None
        parts.chat.menu_clicked.connect(self.show_menu)
        parts.chat.empty.tour_clicked.connect(self.open_tour)

    def connect_actions(
        self,
        actions: ActionSet,
        widget_keys: Callable[[], tuple[ActionGroup, ...]],
        settings: Callable[[], ActionGroup],
    ) -> None:
        """The actions to list, the keys of parts of the window, and the settings to find."""
        self._actions, self._widget_keys, self._settings = actions, widget_keys, settings

    @property
    def palette(self) -> CommandPalette:
        if self._palette is None:
            from kvdesk.ui.shell.command_palette import CommandPalette

            window, theme = self._parts.window, self._parts.theme
            self._palette = CommandPalette(window, theme, self._actions, self._widget_keys(), self._settings())
        return self._palette

    @Slot()
    def open_palette(self) -> None:
        """Every action of the window, to be searched and run."""
        self.palette.open()

    @Slot()
    def open_tour(self) -> None:
        """The tour, because a person asked for it."""
        self._parts.rooms.show_chats()
        self.start_tour(focus=True)

    def start_tour(self, *, focus: bool = False) -> None:
        """The tour. `focus`: its button takes the keys."""
        if self.introduction is None:
            from kvdesk.ui.shell.introduction import Introduction, steps

            self.introduction = Introduction(
                self._parts.window, self._parts.theme, steps(self._parts), self._parts.chat.composer.edit
            )
            self.introduction.left.connect(self._parts.chat.composer.focus_edit)
        self.introduction.start(focus=focus)
        self.tour_started.emit()

    def leave_tour(self) -> bool:
        """Esc. False where there is no tour to leave."""
        if self.introduction is None or not self.introduction.isVisible():
            return False
        self.introduction.leave()
        return True

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
        self._actions.fill_menu(menu, *menu_names())
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
