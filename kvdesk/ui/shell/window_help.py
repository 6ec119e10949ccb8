"""What helps a person to find things: the main menu, the command palette, the list of shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QMenu

from kvdesk.translation import tr
from kvdesk.ui.shell.setting_actions import setting_actions
from kvdesk.ui.shell.window import Window
from kvdesk.ui.widgets.actions import ActionGroup, Submenu
from kvdesk.ui.widgets.controls import pop_up

if TYPE_CHECKING:
    from kvdesk.ui.shell.about_dialog import AboutDialog, AboutFacts
    from kvdesk.ui.shell.command_palette import CommandPalette
    from kvdesk.ui.shell.explained_dialog import ExplainedDialog
    from kvdesk.ui.shell.introduction import Introduction
    from kvdesk.ui.shell.report_dialog import ReportDialog
    from kvdesk.ui.widgets.dialog import Dialog


def menu_names() -> tuple[str | Submenu, ...]:
    """The main menu, of ids of actions; "" is a line."""
    return (
        *("chat.new", "chat.search", "chat.undo", ""),
        *("chat.parameters", "chat.overflow", ""),
        *("model.open", "model.list", "model.server", "app.serve", "app.tools", ""),
        Submenu(tr("Import and export"), ("chat.import", "chat.export", "chat.export_all")),
        Submenu(tr("Zoom"), ("view.zoom_in", "view.zoom_out", "view.zoom_reset")),
        *("view.lab", "settings.open", "help.palette"),
        Submenu(
            tr("Help"), ("help.explained", "help.tour", "help.shortcuts", "", "view.log", "help.report", "help.about")
        ),
        "",
        "app.quit",
    )


class WindowHelp(QObject):
    """Makes everything when it is first asked for. `widget_keys`: of parts of the window, to be listed."""

    explaining = Signal()
    """The explanation, whose figures follow the cells, was opened or closed."""

    def __init__(self, window: Window, widget_keys: Callable[[], tuple[ActionGroup, ...]]) -> None:
        super().__init__(window)
        self._window, self._actions, self._widget_keys = window, window.kit.actions, widget_keys
        self._palette: CommandPalette | None = None
        self.introduction: Introduction | None = None
        self.about: AboutDialog | None = None
        self.report: ReportDialog | None = None
        self.explained: ExplainedDialog | None = None
        window.chat.header.menu_clicked.connect(self.show_menu)

    @property
    def palette(self) -> CommandPalette:
        if self._palette is None:
            from kvdesk.ui.shell.command_palette import CommandPalette

            settings = setting_actions(
                lambda words: self._window.rooms.show_settings().search_for(words), self._window.kit.slices
            )
            self._palette = CommandPalette(
                self._window, self._window.theme, self._actions, self._widget_keys(), settings
            )
        return self._palette

    def open_palette(self) -> None:
        """Every action of the window, to be searched and run."""
        self.palette.open()

    def open_tour(self) -> None:
        """The tour, because a person asked for it."""
        self._window.rooms.show_chats()
        self.start_tour(focus=True)

    def start_tour(self, *, focus: bool = False) -> None:
        """The tour. `focus`: its button takes the keys."""
        if self.introduction is None:
            from kvdesk.ui.shell.introduction import Introduction, steps

            self.introduction = Introduction(
                self._window, self._window.theme, steps(self._window), self._window.chat.composer.edit
            )
        self.introduction.start(focus=focus)
        self._window.store.settings.change(tour_seen=True)  # an empty chat offers it no more

    def leave_tour(self) -> bool:
        """Esc. False without a tour to leave."""
        if self.introduction is None or not self.introduction.isVisible():
            return False
        self.introduction.leave()
        return True

    def show_about(self, facts: AboutFacts) -> None:
        """Versions and licences."""
        from kvdesk.ui.shell.about_dialog import AboutDialog

        self.about = AboutDialog(self._window.theme, self._window, facts)
        _open(self.about)

    def open_explained(self) -> None:
        """The KV cache, explained with the model that is open."""
        from kvdesk.ui.shell.explained_dialog import ExplainedDialog

        if self.explained is None:
            self.explained = ExplainedDialog(self._window.kit, self._window)
            self.explained.finished.connect(self._on_explained)
            self.explained.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.explained.bring_up()
        self.explaining.emit()

    def _on_explained(self) -> None:
        self.explained = None
        self.explaining.emit()

    def open_report(self) -> None:
        """Choose what a report of a problem holds, and where it is written."""
        from kvdesk.ui.shell.report_dialog import ReportDialog

        self.report = ReportDialog(self._window.theme, self._window, self._window.commands)
        _open(self.report)

    def open_shortcuts(self) -> None:
        """Every key there is."""
        self.palette.open_shortcuts()

    def menu(self) -> QMenu:
        """The main menu with the actions as they are now."""
        menu = QMenu(self._window)
        self._actions.fill_menu(menu, *menu_names())
        return menu

    def show_menu(self, at: QPoint) -> None:
        pop_up(self.menu(), at)


def _open(dialog: Dialog) -> None:
    """It is gone once it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.bring_up()
