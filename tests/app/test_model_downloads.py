"""Getting models in the window: searched, downloaded, opened; offline is a sentence."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.app.models.model_downloads import ModelDownloads
from kvdesk.library import download
from kvdesk.library.download_queue import State
from kvdesk.library.hub import read_token
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.settings import Settings
from kvdesk.ui.models.get_models import GetModels
from tests.app.conftest import Rig
from tests.library.hub_server import HubServer

TIMEOUT_MS = 20_000
REPO, FILE = "maker/small-GGUF", "small-Q4_K_M.gguf"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(download, "WAITS_S", (0.0,))
    for name in ("HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with HubServer({REPO: {FILE: b"GGUF" * 10_000}}) as server:
        yield server


@pytest.fixture
def rig(server: HubServer, make_rig: Callable[..., Rig]) -> Rig:
    rig = make_rig(settings=Settings(hub_endpoint=server.endpoint))
    rig.window.show()
    rig.window.rooms.show_models(get=True)
    return rig


@pytest.fixture
def part(rig: Rig) -> GetModels:
    page = rig.window.rooms.models
    assert page is not None
    assert page._parts.currentWidget() is page.get_models
    return page.get_models


def test_a_model_is_searched_downloaded_and_opened(
    part: GetModels, rig: Rig, server: HubServer, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert part.tree.topLevelItem(0).childCount() == 8  # the list that comes along
    assert server.hub_authorizations == []  # nothing was asked of the network
    part.search.setText("small")
    part.search.returnPressed.emit()
    qtbot.waitUntil(lambda: part.tree.topLevelItem(0).text(0) == REPO, timeout=TIMEOUT_MS)
    part.tree.topLevelItem(0).setExpanded(True)
    qtbot.waitUntil(lambda: part.tree.topLevelItem(0).childCount() == 1, timeout=TIMEOUT_MS)
    file = part.tree.topLevelItem(0).child(0)
    assert file is not None
    part.tree.setCurrentItem(file)
    part.download.click()
    key = f"{REPO}/{FILE}"
    qtbot.waitUntil(
        lambda: key in part.downloads.rows and part.downloads.rows[key].main.text() == "Open", timeout=TIMEOUT_MS
    )
    path = paths.models_dir() / REPO / FILE
    assert path.read_bytes() == b"GGUF" * 10_000
    opened: list[Path] = []
    monkeypatch.setattr(rig.controller, "open_model", lambda path, *_: opened.append(path))
    part.downloads.rows[key].main.click()
    assert opened == [path]
    assert rig.window.rooms.shows_chats


def test_a_repository_is_found_by_its_name(part: GetModels, qtbot: QtBot) -> None:
    part.search.setText(f"https://huggingface.co/{REPO}")
    part.search.returnPressed.emit()
    qtbot.waitUntil(lambda: part.chosen is not None and part.chosen.file == FILE, timeout=TIMEOUT_MS)


def test_two_downloads_are_asked_for_before_the_hub_answers(part: GetModels, server: HubServer, qtbot: QtBot) -> None:
    offers = part._recommended[:2]
    for offer in offers:
        server.files.setdefault(offer.repo, {})[offer.file] = b"GGUF"
    for offer in offers:
        part.choose(offer)
        part.download.click()
    wanted = {f"{offer.repo}/{offer.file}" for offer in offers}
    qtbot.waitUntil(lambda: wanted <= set(part.downloads.rows), timeout=TIMEOUT_MS)


def test_two_repositories_are_unfolded_before_the_hub_answers(part: GetModels, server: HubServer, qtbot: QtBot) -> None:
    server.files["maker/small-too-GGUF"] = {"small-too-Q8_0.gguf": b"GGUF"}
    part.search.setText("small")
    part.search.returnPressed.emit()
    qtbot.waitUntil(lambda: part.tree.topLevelItemCount() == 2, timeout=TIMEOUT_MS)
    both = [part.tree.topLevelItem(n) for n in range(2)]
    for item in both:
        item.setExpanded(True)
    qtbot.waitUntil(lambda: all(item.childCount() for item in both), timeout=TIMEOUT_MS)


def test_a_search_that_is_given_up_leaves_the_list_alone(rig: Rig, part: GetModels) -> None:
    part.search.setText("small")
    part.search.returnPressed.emit()
    part.search.clear()
    rig.controller.downloads._background.wait()
    assert part.tree.topLevelItem(0).childCount() == 8


def test_an_answer_leaves_the_focus_to_one_who_types(rig: Rig, part: GetModels) -> None:
    part.search.setFocus()
    for typed, is_left in (("small", False), ("small and", True)):
        part.search.setText("small")
        part.search.returnPressed.emit()
        part.search.setText(typed)
        rig.controller.downloads._background.wait()
        assert part.tree.topLevelItem(0).text(0) == REPO
        assert (rig.window.focusWidget() is part.search) == is_left
        part.search.setFocus()


def test_offline_is_a_sentence_and_the_list_stays(rig: Rig, part: GetModels, qtbot: QtBot) -> None:
    rig.window.commands.hub.set_access("http://127.0.0.1:9", None)
    assert rig.controller.settings.hub_endpoint == "http://127.0.0.1:9"
    part.download.click()  # the first of the list
    qtbot.waitUntil(
        lambda: part.banner.sentence == "127.0.0.1:9 cannot be reached. Is this computer online?", timeout=TIMEOUT_MS
    )
    assert part.tree.topLevelItem(0).childCount() == 8


def test_what_was_offered_is_chosen_and_asked_for_again(rig: Rig, part: GetModels, qtbot: QtBot) -> None:
    """From the card of the empty chat, offline: *Download* means no other model of the list."""
    offer = part._recommended[2]
    rig.window.commands.hub.set_access("http://127.0.0.1:9", None)
    rig.window.commands.download(offer)
    assert part.chosen == offer
    for _ in range(2):
        qtbot.waitUntil(lambda: [one.text() for one in part.banner.buttons] == ["Try again"], timeout=TIMEOUT_MS)
        part.banner.buttons[0].click()
        assert (part._said.text(), part.banner.sentence) == ("Asking the hub…", "")


def test_one_that_the_hub_no_longer_has_is_said(part: GetModels, server: HubServer, qtbot: QtBot) -> None:
    server.files[part.chosen.repo] = {"other.gguf": b"x"}
    part.download.click()
    qtbot.waitUntil(lambda: "no longer has" in part.banner.sentence, timeout=TIMEOUT_MS)
    assert part.downloads.rows == {}


def test_a_token_is_kept_apart_from_the_settings(rig: Rig, part: GetModels, server: HubServer) -> None:
    assert not part.forget.isEnabled(), "there is none"
    rig.window.commands.hub.set_access(server.endpoint, "hf_private")
    assert read_token() == "hf_private"
    assert part.forget.isEnabled()
    assert "hf_private" not in rig.controller.settings.model_dump_json()
    rig.window.commands.hub.set_access("nonsense", "another")
    assert "is no web address" in part.banner.sentence
    assert read_token() == "hf_private"
    rig.window.commands.hub.set_access(server.endpoint, "")
    assert read_token() == ""


def test_the_embedded_model_leads_to_better_ones(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = rig.controller.models
    monkeypatch.setattr(library, "_embedded", tmp_path / "own.gguf")
    better = rig.window.chat.header.model.menu_of_models.actions()[1]
    library.apply(ModelLoaded(ModelInfo(LocalFile(tmp_path / "own.gguf"), "SmolLM2")))
    rig.window.rooms.show_chats()
    assert better.text() == "Get a better model…"
    better.trigger()
    page = rig.window.rooms.models
    assert rig.window.rooms.shown == "models"
    assert page._parts.currentWidget() is page.get_models
    library.apply(ModelLoaded(ModelInfo(LocalFile(tmp_path / "large.gguf"), "Large")))
    assert better.text() == "Get models…"


def test_what_runs_is_paused_at_the_end(rig: Rig, part: GetModels, server: HubServer, qtbot: QtBot) -> None:
    downloads: ModelDownloads = rig.controller.downloads
    server.files[REPO][FILE] = b"GGUF" * 1_000_000
    part.search.setText(REPO)
    part.search.returnPressed.emit()
    qtbot.waitUntil(lambda: part.chosen is not None and part.chosen.file == FILE, timeout=TIMEOUT_MS)
    server.on_piece = lambda sent: downloads._queue.close() if sent >= 1 << 20 and downloads._queue else None
    part.download.click()
    qtbot.waitUntil(lambda: any(one.done_bytes for one in downloads._downloads), timeout=TIMEOUT_MS)
    downloads.close()
    assert all(one.state is not State.DONE for one in downloads._downloads)
    assert not (paths.models_dir() / REPO / FILE).exists()
