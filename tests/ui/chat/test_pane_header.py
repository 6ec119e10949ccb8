"""The header of a chat: the title first, the model as a chip with its menu, the rest in the main menu."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.conversations.titles import propose_title
from kvdesk.protocol.chat import EngineRestarted, LoadModel, ModelLoaded, ModelLoading
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Settings, ThemeChoice
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import MODEL, ONE

TITLE = propose_title("Please explain to me how a KV cache shares the beginnings of prompts between several chats")
NAME = "SmolLM2-135M-Instruct.Q4_1"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (900, 600)])
@pytest.mark.parametrize("inspector", [True, False])
def test_neither_title_nor_model_is_cut(
    window: MainWindow, qtbot: QtBot, width: int, height: int, inspector: bool
) -> None:
    assert len(TITLE) >= 40, "as long as a usual title is"
    now = Settings(theme=ThemeChoice.DARK, inspector_visible=inspector, sidebar_visible=True)
    window.store.settings.change(**dict(now))
    window.store.apply(ModelLoaded(replace(MODEL, name=NAME)))
    title = TITLE if width == 1280 else TITLE[:32]
    window.store.show_conversations((Conversation(ONE, title, 0),), ONE)
    window.resize(width, height)
    header = window.chat.header
    qtbot.waitUntil(lambda: header.model.text() == NAME and not header._title.is_elided)
    header.set_branches(True)
    qtbot.waitUntil(lambda: header._branches.isVisible() and header.model.text() == NAME)


def test_the_title_comes_first(window: MainWindow) -> None:
    header = window.chat.header
    model, title = header.model.mapTo(header, QPoint()), header._title.mapTo(header, QPoint())
    assert title.x() < model.x() or title.y() < model.y()


def test_the_chip_opens_the_menu_of_models(window: MainWindow, qtbot: QtBot) -> None:
    chip = window.chat.header.model
    with qtbot.waitSignal(chip.menu_of_models.aboutToShow):
        qtbot.keyClick(chip, Qt.Key.Key_Space)
    chip.menu_of_models.hide()
    assert [line.text() for line in chip.menu_of_models.actions()][:2] == ["Models on this computer…", "Get models…"]
    window.store.show_embedded(is_open=True)
    assert "Get a better model…" in [line.text() for line in chip.menu_of_models.actions()]


def test_the_menu_of_models_stops_a_load_while_there_is_one(window: MainWindow, record: Record) -> None:
    chip = window.chat.header.model
    stopped = record(window.commands.cancel_work)

    def shown() -> list[str]:
        chip.click()
        chip.menu_of_models.hide()
        return [line.text() for line in chip.menu_of_models.actions() if line.isVisible()]

    first, second = LocalFile(Path("/m/first.gguf")), LocalFile(Path("/m/second.gguf"))
    assert "Stop loading" not in shown()
    window.store.apply(ModelLoading(first, 0.1))
    assert "Stop loading" in shown()
    chip.menu_of_models.actions()[-1].trigger()
    assert stopped == [()]
    window.store.apply(ModelLoading(second, 0.0))
    window.store.apply(CommandFailed(LoadModel(first, ContextSettings()), "Loading first was stopped."))
    assert not window.chat.banner.isVisible(), "another one is being loaded instead"
    assert "Stop loading" in shown()
    window.store.apply(CommandFailed(LoadModel(second, ContextSettings()), "Loading second was stopped.", stopped=True))
    assert window.activity.text == "Loading second was stopped."
    assert not window.chat.banner.isVisible(), "it is no error"
    assert "Stop loading" not in shown()
    window.store.apply(ModelLoading(first, 0.0))
    assert window.chat.banner.isHidden(), "it was about the model before"
    window.store.apply(ModelLoaded(MODEL))
    assert "Stop loading" not in shown()
    window.store.apply(EngineRestarted("It is being started again.", ""))
    window.store.apply(ModelLoading(MODEL.source, 0.0))
    assert window.chat.banner.sentence == "It is being started again."


def test_the_menu_leads_to_serving_connecting_and_what_left_the_header(window: MainWindow) -> None:
    menu = window.help.menu()
    texts = [line.text().split("\t")[0] for line in menu.actions()]
    for wanted in (
        *("Serve on this computer…", "Connect to a server…", "Parameters of this chat", "When the context is full…"),
        *("Import and export", "Zoom", "Help"),
    ):
        assert wanted in texts
    inner = {action.text().split("\t")[0] for sub in menu.findChildren(QMenu) for action in sub.actions()}
    assert {"Export the chat…", "Zoom in", "About kvdesk"} <= inner
