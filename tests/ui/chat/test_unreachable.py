"""A server that is gone: what helps is offered beside the sentence."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.errors import SILENT, UNREACHABLE
from kvdesk.message import MessageId
from kvdesk.protocol.chat import LoadModel, ModelLoaded, TurnEnded
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import Endpoint, LocalFile
from kvdesk.settings import ContextSettings
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import record
from tests.ui.samples import MODEL, ONE, STATS, append_message, message

SERVER = Endpoint("http://bigbox:8080", "tiny", "bigbox")


@pytest.fixture(autouse=True)
def _embedded(window: MainWindow) -> None:
    window.store.show_embedded(installed=True)


def offered(window: MainWindow) -> list[str]:
    return [button.text() for button in window.chat.banner.buttons]


@pytest.mark.parametrize("sentence", [UNREACHABLE, SILENT])
def test_an_answer_that_failed_offers_what_helps(window: MainWindow, qtbot: QtBot, sentence: str) -> None:
    window.store.apply(ModelLoaded(replace(MODEL, source=SERVER)))
    append_message(window, message("a", "assistant", "", state="streaming"))
    window.store.apply(TurnEnded(ONE, MessageId("a"), "failed", STATS, sentence))
    assert window.chat.banner.sentence == sentence
    assert offered(window) == ["Reconnect", "Use the embedded model"]
    _again, embedded = window.chat.banner.buttons
    embedded.setFocus()
    told = record(window.commands.open_embedded)
    qtbot.keyClick(embedded, Qt.Key.Key_Space)
    assert told == [()]
    assert window.chat.banner.sentence == "", "one of them was taken"
    window.store.apply(TurnEnded(ONE, MessageId("a"), "failed", STATS, sentence))
    told = record(window.commands.reconnect)
    window.chat.banner.buttons[0].click()
    assert told == [()]


def test_a_connection_that_failed_offers_it_and_one_that_succeeds_ends_it(window: MainWindow) -> None:
    window.store.apply(CommandFailed(LoadModel(SERVER, ContextSettings()), UNREACHABLE))
    assert len(offered(window)) == 2
    window.store.apply(ModelLoaded(replace(MODEL, source=SERVER)))
    assert window.chat.banner.sentence == ""


def test_an_embedded_model_that_is_not_installed_is_not_offered(window: MainWindow) -> None:
    window.store.show_embedded(installed=False)
    window.store.apply(CommandFailed(LoadModel(SERVER, ContextSettings()), UNREACHABLE))
    assert offered(window) == ["Reconnect"]


def test_other_failures_offer_nothing_of_it(window: MainWindow, tmp_path_factory: pytest.TempPathFactory) -> None:
    append_message(window, message("a", "assistant", "", state="streaming"))
    window.store.apply(TurnEnded(ONE, MessageId("a"), "failed", STATS, "The prompt is too long."))
    assert window.chat.banner.isHidden()
    window.store.apply(CommandFailed(LoadModel(SERVER, ContextSettings()), UNREACHABLE))
    file = LocalFile(tmp_path_factory.mktemp("models") / "a.gguf")
    window.store.apply(CommandFailed(LoadModel(file, ContextSettings()), "It is no model."))
    assert window.chat.banner.sentence == "It is no model."
    assert offered(window) == []


def test_an_answer_that_failed_and_is_not_in_sight_says_why(window: MainWindow) -> None:
    """Another answer to a question gives way to the first if it has no word."""
    window.store.apply(TurnEnded(ONE, MessageId("gone"), "failed", STATS, "The prompt is too long."))
    assert window.chat.banner.sentence == "The prompt is too long."
