"""A saved KV cache in a window: from the command line, dropped on the main window, compared, and none at all."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.app.windows import saved_state
from kvdesk.app.windows.saved_state import Question, StateWindow
from kvdesk.cli import open_state
from kvdesk.errors import UserError
from kvdesk.settings import ContextSettings
from tests.app.conftest import Rig
from tests.cache.models import write_model
from tests.state_files.files import TOKENS, context, read, read_here, write_slot  # noqa: F401 - with the fixture
from tests.ui.drops import drop

SETTINGS = ContextSettings(n_ctx=256, n_seq_max=2, n_batch=32, n_ubatch=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a window, a slot file of it, and one with fewer tokens."""
    made = tmp_path_factory.mktemp("saved")
    with context(write_model(made / "model.gguf", "iswa"), SETTINGS) as one:
        read(one)
        write_slot(one, made / "slot.bin")
        read(one, TOKENS[:50], seq_id=1)
        write_slot(one, made / "other.bin", TOKENS[:50], seq_id=1)
    (made / "none.bin").write_bytes(b"nothing of the kind")
    return made


def column(window: StateWindow, n: int) -> list[str]:
    model = window.view.layers.model()
    return [str(model.index(row, n).data()) for row in range(model.rowCount())]


@pytest.mark.usefixtures("read_here")
def test_a_slot_file_is_shown_with_its_verdict_and_compared(qtbot: QtBot, folder: Path) -> None:
    window = saved_state.open_window(Question(folder / "slot.bin", model=folder / "model.gguf", settings=SETTINGS))
    qtbot.addWidget(window)
    window.show()
    assert "80 tokens" in window.view.about.text()
    assert "positions 0–79" in window.view.about.text()
    assert window.view.verdict.text().startswith("Would restore: yes")
    assert "no checkpoints" in window.view.reasons.text()
    assert set(column(window, 0)) == {"cache", "window cache"}
    assert set(column(window, 2)) == {"K", "V"}
    assert set(column(window, 3)) == {"f16"}
    assert all(float(norm) > 0 for norm in column(window, 5))
    tokens = window.view.tokens.model()
    assert [tokens.index(row, 1).data() for row in range(tokens.rowCount())] == [str(token) for token in TOKENS]
    assert window.view.difference.isHidden()
    assert drop(window, folder / "other.bin")
    qtbot.waitUntil(lambda: "tokens: 50 in common" in window.view.difference.text(), timeout=30_000)
    assert drop(window, folder / "none.bin")
    qtbot.waitUntil(lambda: "not a saved state" in window.strip.text, timeout=30_000)
    assert window.question.other == folder / "other.bin"
    assert not window.grab().isNull()


def test_the_main_window_opens_one_that_is_dropped(rig: Rig, qtbot: QtBot, folder: Path) -> None:
    assert drop(rig.window, folder / "slot.bin")
    qtbot.waitUntil(lambda: len(rig.controller.states.opened) == 1, timeout=30_000)
    (opened,) = rig.controller.states.opened
    qtbot.addWidget(opened)
    assert "80 tokens" in opened.view.about.text()
    rig.window.commands.open_state(folder / "none.bin")
    qtbot.waitUntil(lambda: "not a saved state" in rig.window.chat.banner.sentence, timeout=30_000)
    opened.close()
    rig.window.commands.open_state(folder / "other.bin")
    qtbot.waitUntil(lambda: rig.controller.states.opened not in ([], [opened]), timeout=30_000)
    (other,) = rig.controller.states.opened
    qtbot.addWidget(other)
    assert other.question.path.name == "other.bin"


@pytest.mark.usefixtures("read_here")
def test_for_no_state_there_is_no_window(folder: Path) -> None:
    with pytest.raises(UserError, match="not a saved state"):
        open_state.main([str(folder / "none.bin")])
