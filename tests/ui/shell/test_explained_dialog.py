"""The explanation: opened from Help, with figures of what the window shows."""

from pytestqt.qtbot import QtBot

from kvdesk.ui.shell.explained_dialog import ExplainedDialog
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.recording import record
from tests.ui.samples import cache_view


def opened(window: MainWindow) -> ExplainedDialog:
    window.action_set.run("help.explained")
    assert window.help.explained is not None
    return window.help.explained


def rows(dialog: ExplainedDialog) -> dict[str, str]:
    return {name.text(): value.text() for part in dialog.parts for name, _, value in part._rows}


def test_its_figures_follow_the_model_and_the_cells(window: MainWindow) -> None:
    dialog = opened(window)
    assert rows(dialog)["K of one token, f16"] == "5,859 bytes"
    window.store.apply(cache_view())
    window.store.count()
    assert rows(dialog)["Free"] == "804 cells"


def test_the_cells_are_watched_while_it_is_open(window: MainWindow, qtbot: QtBot) -> None:
    window.inspector.hide()
    window.rooms.show_room("models")
    watched = record(window.commands.watch)
    dialog = opened(window)
    assert watched == [(True,)]
    with qtbot.waitSignal(dialog.finished):
        dialog.close()
    assert watched == [(True,), (False,)]
    assert window.help.explained is None
    assert opened(window) is not dialog
