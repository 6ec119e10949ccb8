"""An empty chat asks what its cards say, and offers a model that this computer runs well."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk import translation
from kvdesk.app.models import model_library
from kvdesk.app.models.model_downloads import ModelDownloads
from kvdesk.library.find import FoundModel
from kvdesk.message import Attachment, ConversationId
from kvdesk.protocol.chat import Generate, ModelLoaded, TurnEnded
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.values import replace
from kvdesk.viewmodel.chat.starters import STARTERS, TWICE
from tests.app.conftest import Rig
from tests.ui.samples import MODEL, STATS
from tests.ui.seen import seen

TIMEOUT_MS = 20_000
TOY = Path("/embedded/toy.gguf")


@pytest.fixture
def rig(make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rig:
    """The embedded model is open; no other one is on this computer."""
    monkeypatch.setattr(model_library, "measure", lambda _threads: 20e9 / model_library.SHARE)
    monkeypatch.setattr(model_library, "available_bytes", lambda: 8 * 10**9)
    monkeypatch.setattr(model_library, "find_models", lambda _: ())
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    rig: Rig = make_rig(embedded=TOY)
    rig.window.show()
    open_model(rig, TOY)
    return rig


def said(rig: Rig) -> str:
    """The strip over the status line."""
    return rig.window.activity.text


def open_model(rig: Rig, path: Path) -> None:
    rig.worker.give(ModelLoaded(ModelInfo(LocalFile(path), path.stem, n_params=135_000_000)))
    rig.controller._on_frame()


def answer(rig: Rig, ttft_ms: float, reused: int) -> Generate:
    """End the answer that was asked for last."""
    asked = rig.worker.asked[-1]
    stats = replace(STATS, ttft_ms=ttft_ms, reused_tokens=reused, prompt_tokens=500)
    rig.worker.give(TurnEnded(asked.conversation, asked.answer, "complete", stats))
    rig.controller._on_frame()
    return asked


def test_ask_twice_really_does_and_says_how_soon_each_answer_began(rig: Rig) -> None:
    rig.window.commands.ask_starter(TWICE)
    assert len(rig.worker.asked) == 1, "the second question waits for the first answer"
    first = answer(rig, 900.0, 0)
    assert len(rig.worker.asked) == 2
    assert rig.worker.asked[1].conversation == first.conversation
    assert not said(rig)
    answer(rig, 90.0, 470)
    assert said(rig) == (
        "The first answer began after 0.90 s, the second after 0.09 s: 470 of its 500 tokens were in the cache."
    )
    rig.window.activity.show_result("", "")
    rig.controller.conversations.send(first.conversation, "More")
    answer(rig, 50.0, 490)
    assert not said(rig), "only of what the card asked"


@pytest.mark.parametrize("starter", STARTERS[1:], ids=lambda starter: starter.name)
def test_the_other_cards_ask_one_question_in_the_chat_that_is_shown(rig: Rig, starter) -> None:  # type: ignore[no-untyped-def]
    shown = rig.controller.selected
    rig.window.commands.ask_starter(starter.name)
    (asked,) = rig.worker.asked
    assert asked.conversation == shown
    assert asked.messages[-1].text == starter.messages(in_english=True)[0]


def test_the_draft_and_what_is_attached_to_it_stay(rig: Rig) -> None:
    name, attached = rig.controller.selected, (Attachment("notes.md", "text", "Cells have positions."),)
    assert name is not None
    rig.window.chat.composer.set_text("What")
    rig.window.commands.attach(name, attached)
    rig.window.commands.ask_starter(TWICE)
    answer(rig, 900.0, 0)
    assert [asked.messages[-1].attachments for asked in rig.worker.asked] == [(), ()]
    assert rig.window.chat.composer.text == "What"
    known = rig.controller.conversations.get(name)
    assert known is not None
    assert known.draft_attachments == attached


def test_a_failed_answer_is_not_compared(rig: Rig) -> None:
    rig.window.commands.ask_starter(TWICE)
    asked = rig.worker.asked[-1]
    rig.worker.give(TurnEnded(asked.conversation, asked.answer, "failed", STATS))
    rig.controller._on_frame()
    rig.controller.conversations.send(ConversationId(asked.conversation), "Again")
    answer(rig, 50.0, 490)
    assert not said(rig)


def test_the_toy_speaks_english_and_another_model_the_language_of_the_window(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_translate", lambda text, *_: f"«{text}»")
    rig.window.commands.ask_starter("plain")
    assert "«" not in rig.worker.asked[-1].messages[-1].text
    answer(rig, 50.0, 0)
    open_model(rig, Path("/models/real.gguf"))
    rig.window.commands.ask_starter("plain")
    assert "«" in rig.worker.asked[-1].messages[-1].text


def test_a_model_is_offered_and_downloaded_by_the_page_of_models(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = rig.window.chat.empty.offer
    qtbot.waitUntil(offer.isVisible, timeout=TIMEOUT_MS)
    assert seen(offer) == (
        "For this computer: Llama-3.2-3B-Instruct-Q4_K_M\n2.02 GB  ·  llama3.2  ·  ≈ 9.6 tok/s expected here"
    )
    wanted = []
    monkeypatch.setattr(ModelDownloads, "get", lambda _self, offer: wanted.append(offer.file))
    offer.button.click()
    assert wanted == ["Llama-3.2-3B-Instruct-Q4_K_M.gguf"]
    assert rig.window.rooms.shown == "models"
    assert rig.window.rooms.models._parts.currentWidget() is rig.window.rooms.models.get_models


def test_in_chinese_the_model_that_is_offered_speaks_it(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_language", "zh_CN")
    monkeypatch.setattr(model_library, "available_bytes", lambda: 15 * 10**8)
    rig.controller.models.ask_machine()
    offer = rig.window.chat.empty.offer
    qtbot.waitUntil(lambda: "Qwen3-0.6B-Q8_0" in seen(offer), timeout=TIMEOUT_MS)


def test_one_that_is_here_is_opened(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "Llama-3.2-3B-Instruct-Q4_K_M.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(model_library, "find_models", lambda _: (FoundModel("q", path, 4, "kvdesk"),))
    rig.controller.downloads.finished.emit()
    offer = rig.window.chat.empty.offer
    qtbot.waitUntil(lambda: offer.button.text() == "Open", timeout=TIMEOUT_MS)
    opened: list[Path] = []
    monkeypatch.setattr(rig.controller, "open_model", lambda path, *_: opened.append(path))
    offer.button.click()
    assert opened == [path]


def test_a_real_model_offers_nothing_and_measures_nothing(make_rig: Callable[..., Rig]) -> None:
    rig: Rig = make_rig(embedded=TOY)
    rig.window.show()
    open_model(rig, MODEL.source.path if isinstance(MODEL.source, LocalFile) else TOY)
    assert rig.controller.models._background._threads == []
    assert not rig.window.chat.empty.offer.isVisible()
    assert not rig.window.chat.empty.toy.isVisible()
