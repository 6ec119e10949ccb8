"""The load of a model is stopped: what was open stays, with its cells."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.chat import LoadModel, ModelLoaded, ModelLoading
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from tests.backends.local.conftest import SMALL
from tests.backends.local.test_turns import GREEDY, of


@pytest.mark.parametrize("tried", [False, True], ids=["in the trial", "in the load"])
def test_a_stopped_load_leaves_the_open_model_and_its_cells(talking_file: Path, tmp_path: Path, tried: bool) -> None:
    other = tmp_path / "other.gguf"
    shutil.copy(talking_file, other)
    source, stop_at = LocalFile(other), 2.0

    failed: list[CommandFailed] = []

    def on_event(event: Event) -> None:
        if isinstance(event, CommandFailed):
            failed.append(event)
        if isinstance(event, ModelLoading) and event.source == source and event.progress >= stop_at:
            headless.host.cancel()

    with closing(HeadlessEngine(on_event)) as headless:
        if tried:  # its verdict is remembered: the next load begins at once
            headless.do(LoadModel(source, SMALL))
        headless.do(LoadModel(LocalFile(talking_file), SMALL))
        HeadlessChat(headless).answer("Hello", GREEDY)
        session = headless.engine.session
        used = session.runtime.context.memory.totals()
        stop_at = 0.01 if tried else 0.0
        with pytest.raises(UserError, match=r"Loading other was stopped\."):
            headless.do(LoadModel(source, SMALL))
        assert [one.stopped for one in failed] == [True], "nobody has to be told that it went wrong"
        assert headless.engine.session is session
        assert session.runtime.context.memory.totals() == used
        stop_at = 2.0
        assert of(headless.do(LoadModel(source, SMALL)), ModelLoaded), "the next load is not stopped"
