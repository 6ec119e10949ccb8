"""Stop at random moments of prefill and decode: llama.cpp ends within one node of its graph, and the map stays true."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import pytest
from PySide6.QtWidgets import QApplication

from kvdesk import paths
from kvdesk.app.worker import Worker
from kvdesk.message import ConversationId, Message, new_conversation_id, new_message_id
from kvdesk.protocol.cache import AuditCache, Audited, ContextReady, SpeedSample
from kvdesk.protocol.chat import Generate, LoadModel, PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling
from tests.stress.big_model import LARGEST_NODE, write_big
from tests.stress.conftest import Row, forms

CONTEXT = ContextSettings(n_ctx=8192, n_seq_max=2, n_threads=2, n_threads_batch=2)
LIMIT_S: Final = 0.1
"""From Stop to the answer's end, besides the node of the graph that is computed when it comes."""
N_PROMPT = 4000  # tokens, about
PATIENCE_S: Final = 300.0
WORDS: Final = ("harbour", "lantern", "of", "glass", "and", "the", "winter", "gulls", "under", "nine", "bridges")


E = TypeVar("E", bound=Event)


class Engine:
    """A worker on its thread, with what it told; this thread looks once a millisecond."""

    def __init__(self, model: Path) -> None:
        self.worker, self.events, self._untold = Worker(), list[Event](), deque[Event]()
        self.worker.start()
        self.worker.host.submit(LoadModel(LocalFile(model), CONTEXT))
        self.wait(ContextReady)

    def next(self, kind: type[E], at_most_s: float) -> E | None:
        """The next event of a kind; None if there is none in time."""
        deadline = time.monotonic() + at_most_s
        while True:
            self._untold += self.worker.events.take()
            while self._untold:
                self.events.append(event := self._untold.popleft())
                assert not isinstance(event, CommandFailed), event
                if isinstance(event, kind):
                    return event
            if time.monotonic() > deadline:
                return None
            time.sleep(0.001)

    def wait(self, kind: type[E]) -> E:
        event = self.next(kind, PATIENCE_S)
        assert event is not None, f"no {kind.__name__}"
        return event

    def ask(self, where: ConversationId, text: str) -> tuple[Generate, TurnStarted]:
        question = Message(new_message_id(), where, None, "user", text)
        command = Generate(where, new_message_id(), (question,), Sampling(temperature=1.0, max_tokens=1000))
        self.worker.host.submit(command)
        return command, self.wait(TurnStarted)

    def stop(self, asked: Generate) -> tuple[TurnEnded, float]:
        """How the answer ended, and the seconds from Stop to that."""
        start_s = time.perf_counter()
        self.worker.host.stop(asked.answer)
        ended = self.wait(TurnEnded)
        return ended, time.perf_counter() - start_s

    def audit(self) -> str:
        """What is wrong with the cache, or ""."""
        self.worker.host.submit(AuditCache())
        audited = self.wait(Audited)
        return "" if audited.state == "verified" else audited.sentence

    def node_s(self) -> float:
        """What the largest node of a prefill's graph has taken, from the whole ubatches so far."""
        n_ubatch = CONTEXT.n_ubatch
        whole = [e for e in self.events if isinstance(e, SpeedSample) and e.kind == "prefill" and not e.rc]
        each = sorted(e.ms / 1000 / e.n_tokens * n_ubatch for e in whole if e.n_tokens >= n_ubatch // 4)
        return LARGEST_NODE * each[len(each) // 2] if each else 0.0


@pytest.fixture
def engine_of(qapp: QApplication) -> Iterator[Callable[[Path], Engine]]:  # noqa: ARG001 - a thread of Qt needs one
    made: list[Engine] = []

    def start(model: Path) -> Engine:
        made.append(Engine(model))
        return made[-1]

    yield start
    for engine in made:
        assert engine.worker.shut_down()


def long_text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=N_PROMPT))


def stopped(row: Row, engine: Engine, n: int, longest_s: float) -> None:
    """In prefill and in decode by turns. A prefill that was stopped goes on with the next, from where it was."""
    where, text = new_conversation_id(), ""
    took: dict[str, list[float]] = {"prefill": [], "decode": []}
    reached, wrong = 0, []
    for name, rng in row.rounds("stop", n):
        during = "decode" if len(took["decode"]) < len(took["prefill"]) else "prefill"
        if during == "prefill":
            text = text or long_text(rng)
            asked, started = engine.ask(where, text)
        else:
            asked, started = engine.ask(new_conversation_id(), f"{rng.random()}: tell me about {rng.choice(WORDS)}.")
            engine.wait(TextDelta)
        time.sleep(rng.uniform(0.0, longest_s))
        ended, seconds = engine.stop(asked)
        mine = [e for e in engine.events if isinstance(e, PrefillProgress | TextDelta) and e.answer == asked.answer]
        done = [e.done for e in mine if isinstance(e, PrefillProgress)]
        reached = max(reached, started.reused_tokens + max(done, default=0))
        if during == "prefill" and any(isinstance(e, TextDelta) for e in mine):  # the prompt was read sooner
            during, where, text = "decode", new_conversation_id(), ""
        if ended.state == "stopped":
            took[during].append(seconds)
        elif ended.state != "complete":
            wrong.append(f"{name}, {during}: {ended}")
        if said := engine.audit():
            wrong.append(f"{name}, {during}: {said}")
    for during, each in took.items():
        assert each, f"no {during} was stopped"
        median, most = sorted(each)[len(each) // 2], max(each)
        row.say(f"{during}: {len(each)} stopped, median {1000 * median:.1f} ms, most {1000 * most:.1f} ms")
    every = sorted(took["prefill"] + took["decode"])
    p99, node_s = every[min(len(every) - 1, int(0.99 * len(every)))], engine.node_s()
    row.say(f"P99 {1000 * p99:.1f} ms; largest node {1000 * node_s:.1f} ms; up to token {reached} of a prompt")
    assert wrong == []
    assert p99 <= LIMIT_S + node_s


@forms(6, 60)
def test_stop(row: Row, engine_of: Callable[[Path], Engine], n: int) -> None:
    model = paths.embedded_model()
    assert model is not None
    stopped(row, engine_of(model), n, 4.0 if row.long else 0.3)


@pytest.mark.stress
@pytest.mark.timeout(7200)
def test_stop_big(row: Row, engine_of: Callable[[Path], Engine], tmp_path: Path) -> None:
    """A model of a billion parameters: a node of its graph takes longer, and so does a ubatch."""
    vocabulary = paths.embedded_model()
    assert vocabulary is not None
    stopped(row, engine_of(write_big(tmp_path / "big.gguf", vocabulary)), 100, 4.0)
