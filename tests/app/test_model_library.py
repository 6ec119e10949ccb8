"""The page of models in the window: what is found on the disk, opened, remembered and deleted."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.message import ConversationId, MessageId, TurnStats
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import LoadModel, ModelLoaded, TurnEnded
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.ui.models.page import ModelsPage
from kvdesk.values import replace
from tests.app.conftest import Rig
from tests.ui.samples import CONTEXT, MODEL

TIMEOUT_MS = 20_000
STATS = TurnStats(10, 0, 10, 100, 50.0, 200.0, 40.0)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded model where LM Studio keeps its own."""
    model = paths.embedded_model()
    assert model is not None
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    copied = tmp_path / ".lmstudio/models/maker/small/small-Q4_1.gguf"
    copied.parent.mkdir(parents=True)
    shutil.copy(model, copied)
    return copied


@pytest.fixture
def page(rig: Rig, copy: Path, qtbot: QtBot) -> ModelsPage:
    rig.window.show()
    rig.window.rooms.show_models()
    page = rig.window.rooms.models
    assert page is not None
    qtbot.waitUntil(lambda: any(row.path == copy for row in page.rows), timeout=TIMEOUT_MS)
    return page


def test_what_another_application_downloaded_is_listed(page: ModelsPage, copy: Path) -> None:
    row = next(row for row in page.rows if row.path == copy)
    assert row.fits
    assert [cell.text for cell in row.cells][1:4] == ["llama", "135 M", "Q4_1"]
    assert row.cells[-1].text == "LM Studio"
    assert row.cells[7].text.startswith("≈")


def test_speed_context_and_time_are_remembered(rig: Rig, page: ModelsPage, copy: Path, qtbot: QtBot) -> None:
    library = rig.controller.models
    library.apply(ModelLoaded(ModelInfo(LocalFile(copy), "SmolLM2")))
    ended = TurnEnded(ConversationId("c"), MessageId("a"), "complete", STATS)
    library.apply(replace(ended, stats=replace(STATS, generated_tokens=3, decode_tok_s=900.0)))  # too short
    library.apply(ended)
    known = library.used(copy)
    assert (known.tok_s, known.context) == (40.0, rig.controller.settings.context)
    assert known.used_ms > 0
    library.refresh()
    qtbot.waitUntil(lambda: page.rows[0].cells[7].text == "40 tok/s", timeout=TIMEOUT_MS)
    assert page.rows[0].path == copy  # used last


@pytest.mark.usefixtures("page")
def test_a_model_opens_with_the_context_that_it_ran_with_last(rig: Rig, copy: Path, qtbot: QtBot) -> None:
    library, controller = rig.controller.models, rig.controller
    small = controller.settings.context.model_copy(update={"n_ctx": 512})
    rig.window.store.settings.change(context=small)
    library.apply(ModelLoaded(ModelInfo(LocalFile(copy), "SmolLM2")))
    rig.window.store.settings.change(context=small.model_copy(update={"n_ctx": 1024}))
    rig.window.commands.open_model(copy)
    assert rig.worker.commands[-1] == LoadModel(LocalFile(copy), small)
    assert rig.window.rooms.shows_chats
    assert controller.settings.context.n_ctx == 1024, "as long as the model before is open"
    rig.worker.give(CommandFailed(rig.worker.commands[-1], "It is broken."), ModelLoaded(MODEL))
    qtbot.waitUntil(lambda: rig.window.store.model == MODEL)
    assert controller.settings.context.n_ctx == 1024, "it could not be opened"
    rig.worker.give(ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: rig.window.store.context is not None)
    rig.window.commands.open_model(copy)
    assert rig.worker.commands[-1] == LoadModel(LocalFile(copy), small), "once more"
    rig.worker.give(ModelLoaded(ModelInfo(LocalFile(copy), "SmolLM2")))
    qtbot.waitUntil(lambda: controller.settings.context.n_ctx == 512)
    known = library.used(copy)
    assert known.context == small


def test_deleting_removes_the_file_but_not_the_open_one(
    rig: Rig, page: ModelsPage, copy: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.controller.models.apply(ModelLoaded(ModelInfo(LocalFile(copy), "SmolLM2")))
    rig.controller.models.delete(copy)
    assert page.banner.sentence == "This model is open: open another one first."
    assert copy.exists()
    own = copy.with_name("own.gguf")
    own.hardlink_to(copy)
    monkeypatch.setattr("kvdesk.app.models.model_library.embedded_model", lambda: own)
    rig.controller.models.apply(ModelLoaded(ModelInfo(LocalFile(copy.with_name("another.gguf")), "SmolLM2")))
    rig.controller.models.delete(copy)
    assert page.banner.sentence == "This model belongs to kvdesk itself and stays."
    assert copy.exists()
    monkeypatch.setattr("kvdesk.app.models.model_library.embedded_model", lambda: None)
    rig.controller.models.delete(copy)
    assert not copy.exists()
    assert rig.controller.models.used(copy) is None
    qtbot.waitUntil(lambda: all(row.path != copy for row in page.rows), timeout=TIMEOUT_MS)


def test_pages_that_are_opened_before_their_owners_are_made_are_filled(
    make_rig: Callable[..., Rig], copy: Path, qtbot: QtBot
) -> None:
    rig = make_rig(furnished=False)
    rig.window.show()
    rooms = rig.window.rooms
    rooms.show_room("lab")
    rooms.show_models()
    lab, models = rooms.get("lab"), rooms.models
    assert (lab.question, models.rows) == (None, ())
    rig.controller.furnish()
    qtbot.waitUntil(lambda: any(row.path == copy for row in models.rows), timeout=TIMEOUT_MS)
    qtbot.waitUntil(lambda: lab.question is not None, timeout=TIMEOUT_MS)


def where(page: ModelsPage, path: Path) -> str:
    """What is said of the place of a model."""
    return next(row.cells[-1].text for row in page.rows if row.path == path)


def test_a_folder_of_models_is_listed_remembered_and_dropped(
    rig: Rig, page: ModelsPage, copy: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "My & models"
    own = folder / "deeper" / "other.gguf"
    own.parent.mkdir(parents=True)
    shutil.copy(next(row.path for row in page.rows if row.path.suffix == ".gguf"), own)
    monkeypatch.setattr("kvdesk.ui.models.page.ask_for_folder", lambda *_: folder)
    page.folders_menu().actions()[0].trigger()
    qtbot.waitUntil(lambda: any(row.path == own for row in page.rows), timeout=TIMEOUT_MS)
    assert where(page, own) == str(Path("~/My & models"))
    assert rig.controller.settings.model_folders == (str(folder),)
    assert not page.banner.sentence
    rig.controller.models.add_folder(copy.parent)
    qtbot.waitUntil(lambda: where(page, copy) == str(Path("~") / copy.parent.relative_to(tmp_path)), timeout=TIMEOUT_MS)
    drop = page.folders_menu().actions()[1]
    assert drop.text() == f"List {Path('~/My && models')} no more"
    drop.trigger()
    qtbot.waitUntil(lambda: all(row.path != own for row in page.rows), timeout=TIMEOUT_MS)
    assert own.exists()
    assert rig.controller.settings.model_folders == (str(copy.parent),)


def test_a_folder_without_models_says_so(page: ModelsPage, rig: Rig, tmp_path: Path, qtbot: QtBot) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    rig.controller.models.add_folder(empty)
    qtbot.waitUntil(lambda: bool(page.banner.sentence), timeout=TIMEOUT_MS)
    assert page.banner.sentence == f"{Path('~/empty')} contains no GGUF file that is not listed already."


def test_a_search_that_fails_says_so_and_keeps_the_list(
    page: ModelsPage, rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folders: object) -> None:
        raise OSError(5, "Input/output error")

    rows = page.rows
    with monkeypatch.context() as patched:
        patched.setattr("kvdesk.app.models.model_library.find_models", fail)
        rig.controller.models.refresh()
        qtbot.waitUntil(lambda: page._said.text() == "Input/output error.", timeout=TIMEOUT_MS)
    assert page.rows == rows
    rig.controller.models.refresh()
    qtbot.waitUntil(lambda: "Input" not in page._said.text() and "Looking" not in page._said.text(), timeout=TIMEOUT_MS)
