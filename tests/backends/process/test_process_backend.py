"""The engine in a child process: what it says is what the one in this process says, and its death costs a reload."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from kvdesk import paths, translation
from kvdesk.backends.base import Emit
from kvdesk.backends.process import backend as process_backend
from kvdesk.backends.process.backend import ProcessBackend
from kvdesk.headless import HeadlessEngine
from kvdesk.host.host import MOST_DEATHS
from kvdesk.protocol import wire
from kvdesk.protocol.cache import CacheView, ContextReady, RebuildContext, RecordingTaken, TakeRecording, Watch
from kvdesk.protocol.chat import (
    EngineDied,
    EngineRestarted,
    Generate,
    LoadModel,
    ModelLoaded,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling
from tests.backends.heard import Heard, ask

TINY = ContextSettings(n_ctx=4096, n_threads=1, n_threads_batch=1)
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture
def model(talking_file: Path) -> LocalFile:
    return LocalFile(talking_file)


def generate(text: str, max_tokens: int = 8) -> Generate:
    return ask(text, Sampling(temperature=0.0, max_tokens=max_tokens))


class InProcesses(Heard):
    """Each back end in a process of its own, which ends with it."""

    def __init__(self) -> None:
        self.backends: list[ProcessBackend] = []
        super().__init__(self._make)

    def _make(self, emit: Emit) -> ProcessBackend:
        self.backends.append(ProcessBackend(emit))
        return self.backends[-1]

    def close(self) -> None:
        super().close()
        for backend in self.backends:
            assert not psutil.pid_exists(backend.pid), "an orphan"


@pytest.fixture
def heard() -> Iterator[InProcesses]:
    heard = InProcesses()
    yield heard
    heard.close()


def test_it_says_what_the_engine_in_this_process_says(model: LocalFile) -> None:
    command = generate("Where do puffins live?")
    commands: list[Command] = [Watch(True), LoadModel(model, TINY), command, TakeRecording()]
    said: list[list[Event]] = []
    for make in (None, ProcessBackend):
        with closing(HeadlessEngine(make_backend=make) if make else HeadlessEngine()) as headless:
            said.append([event for command in commands for event in headless.do(command)])
    texts = ["".join(e.text for e in events if isinstance(e, TextDelta)) for events in said]
    assert texts[0] == texts[1] != ""
    ended = [next(e for e in events if isinstance(e, TurnEnded)) for events in said]
    here, there = ended
    assert (here.state, here.note, here.finish) == (there.state, there.note, there.finish)
    assert here.stats.reused_tokens == there.stats.reused_tokens
    assert here.stats.generated_tokens == there.stats.generated_tokens
    views = [next(e for e in reversed(events) if isinstance(e, CacheView)) for events in said]
    for ours, theirs in zip(views[0].snapshot.maps, views[1].snapshot.maps, strict=True):
        for a, b in zip(ours.streams, theirs.streams, strict=True):
            assert (a.pos.tolist(), a.seq_bits.tolist(), a.token.tolist()) == (
                b.pos.tolist(),
                b.seq_bits.tolist(),
                b.token.tolist(),
            )
    recordings = [next(e for e in events if isinstance(e, RecordingTaken)).recording for events in said]
    assert recordings[0].last == recordings[1].last > 0
    assert [e.operation.name for e in recordings[0].operations(1, 99)] == [
        e.operation.name for e in recordings[1].operations(1, 99)
    ]


@posix
def test_a_kill_costs_a_reload_and_not_the_text(heard: InProcesses, model: LocalFile) -> None:
    first, second, later = generate("Count to a thousand.", 4000), generate("And gulls?"), generate("Thanks")
    heard.send(Watch(True), LoadModel(model, TINY), first)
    heard.wait(lambda: heard.text(first))
    heard.send(second)
    os.kill(heard.backends[0].pid, signal.SIGKILL)
    heard.wait(lambda: len(heard.of(ContextReady)) == 2)
    heard.send(later)
    heard.wait(lambda: len(heard.of(TurnEnded)) == 3)
    ended = {e.answer: e for e in heard.of(TurnEnded)}
    assert (ended[first.answer].state, ended[first.answer].note) == ("interrupted", "The engine stopped unexpectedly.")
    assert ended[first.answer].stats.generated_tokens > 0
    assert heard.text(first)
    assert ended[later.answer].state == "complete"
    assert heard.text(later)
    (restarted,) = heard.of(EngineRestarted)
    assert "SIGKILL" in restarted.detail
    assert len(heard.of(ModelLoaded)) == 2
    since = heard.events.index(heard.of(ContextReady)[1])
    heard.wait(lambda: any(isinstance(e, CacheView) for e in heard.events[since:]))

    heard.send(RebuildContext(TINY.model_copy(update={"n_ctx": 256})))
    heard.wait(lambda: len(heard.of(ContextReady)) == 3)
    heard.wait(lambda: not heard.backends[1].busy)
    os.kill(heard.backends[1].pid, signal.SIGKILL)  # while it has nothing to do: noticed at once
    heard.wait(lambda: len(heard.of(ContextReady)) == 4)
    assert heard.of(ContextReady)[3].context.n_ctx == 256, "the context as it was, not as it was first"


@posix
def test_one_that_is_killed_again_and_again_is_left_alone(heard: InProcesses) -> None:
    for n in range(1, MOST_DEATHS + 1):
        heard.wait(lambda n=n: len(heard.backends) == n)  # type: ignore[misc]
        os.kill(heard.backends[-1].pid, signal.SIGKILL)
        heard.wait(lambda n=n: len(heard.of(EngineRestarted)) + len(heard.of(EngineDied)) == n)  # type: ignore[misc]
    assert len(heard.of(EngineDied)) == 1


def test_it_is_stopped_speaks_another_language_and_closes(heard: InProcesses, model: LocalFile) -> None:
    command = generate("Count to a thousand.", 4000)
    heard.send(LoadModel(model, TINY), command)
    heard.wait(lambda: heard.text(command))
    heard.host.stop(command.answer)
    heard.wait(lambda: heard.of(TurnEnded))
    assert heard.of(TurnEnded)[0].state == "stopped"
    assert heard.of(TurnEnded)[0].stats.generated_tokens < 4000
    heard.wait(lambda: not heard.backends[0].busy)

    nowhere = LoadModel(LocalFile(Path("nowhere.gguf")), TINY)
    heard.send(nowhere)
    heard.wait(lambda: len(heard.of(CommandFailed)) == 1)
    translation.use(["zh_CN"], paths.catalogues())
    try:
        heard.send(nowhere)
        heard.wait(lambda: len(heard.of(CommandFailed)) == 2)
    finally:
        translation.install(translation.english)
    english, chinese = (failed.sentence for failed in heard.of(CommandFailed))
    assert english.isascii()
    assert not chinese.isascii()

    last = generate("Count to a thousand.", 4000)
    heard.send(last)
    heard.wait(lambda: heard.text(last))
    heard.close()
    ended = heard.of(TurnEnded)[1]
    assert (ended.state, ended.note) == ("interrupted", "kvdesk was closed.")
    assert ended.stats.ttft_ms > 0, "by the child itself"


def abort_at(command: Command, heard: InProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first engine aborts as it gets this command."""
    taken = wire.frame

    def aborts(kind: object, request: object) -> bytes:
        if getattr(request, "command", None) is command:
            os.kill(heard.backends[0].pid, signal.SIGABRT)
        return taken(kind, request)

    monkeypatch.setattr(process_backend, "frame", aborts)


@posix
def test_an_abort_at_the_first_load_promises_no_model_from_before(
    heard: InProcesses, model: LocalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = LoadModel(model, TINY)
    abort_at(first, heard, monkeypatch)
    heard.send(first)
    heard.wait(lambda: heard.of(CommandFailed))
    (failed,) = heard.of(CommandFailed)
    assert failed.sentence == f"The engine stopped while it loaded {model.name}. Open it to try again."


@posix
def test_an_abort_at_a_load_is_said_and_the_model_before_is_loaded_again(
    heard: InProcesses, model: LocalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard.send(LoadModel(model, TINY))
    heard.wait(lambda: heard.of(ContextReady))
    deadline = time.monotonic() + 60
    while heard.backends[0].busy and time.monotonic() < deadline:  # until it has said that the load is done
        time.sleep(0.005)
    other = LoadModel(LocalFile(Path("/models/other.gguf")), TINY)
    abort_at(other, heard, monkeypatch)
    waits = generate("Still there?")
    heard.send(other, waits)
    heard.wait(lambda: heard.of(TurnEnded))
    assert heard.of(TurnEnded)[0].state == "complete"
    (failed,) = heard.of(CommandFailed)
    assert failed.command == other
    assert failed.sentence.startswith("The engine stopped while it loaded other.")
    assert failed.detail.startswith("SIGABRT ended it."), "the trace may be longer than what is kept"
    assert [e.model.source for e in heard.of(ModelLoaded)] == [model, model]
    assert heard.of(TurnStarted)[0].answer == waits.answer


def test_what_is_no_frame_ends_it_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        process_backend, "child_command", lambda *_: [sys.executable, "-c", "print('hello ' * 100, flush=True)"]
    )
    with closing(InProcesses()) as heard:
        heard.wait(lambda: heard.of(EngineDied))
        assert "more than" in heard.of(EngineDied)[0].detail


def test_a_child_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_backend, "child_command", lambda *_: ["/nowhere/kvdesk"])
    with closing(InProcesses()) as heard:
        heard.wait(lambda: heard.of(EngineDied))
        assert "could not be started" in heard.of(EngineDied)[0].detail
