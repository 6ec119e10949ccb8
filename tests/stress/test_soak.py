"""Half an hour of mixed use on one engine: nothing grows, nothing is left, nothing gets slower, every audit passes."""

from __future__ import annotations

import gc
import statistics
import threading
import time
from pathlib import Path
from random import Random

import psutil
import pytest

from kvdesk import paths
from kvdesk.benchmarks.baselines import BareLoop
from kvdesk.benchmarks.headless_chat import HeadlessChat, HeadlessEngine, asked, prompt_of, session_of
from kvdesk.cache.compaction import Layout
from kvdesk.chat import new_conversation_id
from kvdesk.errors import UserError
from kvdesk.protocol.cache import AuditCache, CacheView, Forget, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.operations import Compact, CopySequence, HandOperation, Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, ContextSettings, Overflow, Sampling
from tests.stress.conftest import SEED, SOAK_MINUTES, Row

SETTINGS = ContextSettings(n_ctx=1024, n_seq_max=4, n_threads=1, n_threads_batch=1)
MEASURED = Sampling(temperature=0.0, max_tokens=32)
STORY = "Tell me a long story about a whale and a lamp."
LOOK_S = 5.0
ENDS = 1 / 30
"""Share of the whole at the beginning and the end whose speeds are compared. (Memory: second and last fifth.)"""
MOST_MEMORY, LEAST_SPEED = 1.02, 0.95
WORDS = ["puffin", "gull", "lamp", "rain", "glass", "whale", "über", "海"]


class Soak:
    """One engine and up to five conversations, used by random numbers."""

    def __init__(self, model: Path, states: Path, random: Random) -> None:
        self.desk = HeadlessEngine()
        self._random, self._states = random, states
        self.talks: list[HeadlessChat] = []
        self.n_acts = self.n_refused = 0
        self.desk.do(LoadModel(model, SETTINGS))
        self.desk.do(Watch(True))
        self._settings()

    def act(self) -> None:
        """One thing; what is refused with a sentence is no failure."""
        acts = [self._answer, self._answer, self._answer, self._operate, self._fork, self._settings, self._drop]
        acts += [self._rebuild] * (self.n_acts % 10 == 0)
        self.n_acts += 1
        try:
            self._random.choice(acts)()
        except UserError:
            self.n_refused += 1
        self.desk.engine.idle()

    def audit(self) -> None:
        """Every cell against the engine's own state."""
        self.desk.do(AuditCache())
        view = next(event for event in reversed(self.desk.events) if isinstance(event, CacheView))
        assert view.snapshot.verification.state == "verified", view.snapshot.verification.detail

    def speed(self) -> float:
        """Decode speed over that of the bare loop, in turns: a machine whose speed drifts does not decide."""
        session = session_of(self.desk)
        prompt = prompt_of(self.desk, asked(STORY, MEASURED))
        bare = BareLoop(session.model, session.context.settings)
        try:
            ratios = [self._story() / bare.decode_tok_s(prompt, MEASURED.max_tokens) for _ in range(3)]
        finally:
            bare.close()
        return statistics.median(ratios)

    def _story(self) -> float:
        talk = HeadlessChat(self.desk)
        stats = talk.answer(STORY, MEASURED).stats
        self.desk.do(CloseConversation(talk.id))
        assert stats.generated_tokens == MEASURED.max_tokens
        return stats.decode_tok_s

    def _answer(self) -> None:
        if len(self.talks) < 5 and (not self.talks or self._random.random() < 0.2):
            self.talks.append(HeadlessChat(self.desk, overflow=self._random.choice(list(Overflow))))
        text = " ".join(self._random.choices(WORDS, k=self._random.randint(1, 60)))
        self._random.choice(self.talks).answer(text, Sampling(max_tokens=self._random.randint(4, 32)))

    def _operate(self) -> None:
        where = self._random.choice(self.talks).id if self.talks else new_conversation_id()
        operations: list[HandOperation] = [Compact(self._random.choice(list(Layout))), SwapOut(where), SwapIn(where)]
        self.desk.do(Operate(self._random.choice(operations)))

    def _fork(self) -> None:
        """Its cells as another conversation's, which is closed at once or lives on without text."""
        new = new_conversation_id()
        self.desk.do(Operate(CopySequence(self._random.choice(list(session_of(self.desk).pool)).seq_id, new)))
        self.desk.do(CloseConversation(new))

    def _settings(self) -> None:
        policy = CachePolicy(
            memory_mb=16,
            disk_mb=32,
            prefill_ahead=self._random.random() < 0.5,
            overflow=self._random.choice(list(Overflow)),
        )
        self.desk.do(UsePolicy(policy, self._states))

    def _rebuild(self) -> None:
        settings = SETTINGS.model_copy(update={"n_seq_max": self._random.choice([3, 4])})
        self.desk.do(RebuildContext(settings, self._random.choice(["nothing", "tokens", "state"])))

    def _drop(self) -> None:
        if self.talks and self._random.random() < 0.5:
            talk = self.talks.pop(self._random.randrange(len(self.talks)))
            self.desk.do(CloseConversation(talk.id))
        elif self.talks:
            self.desk.do(Forget(self._random.choice(self.talks).id))


def soak(row: Row, tmp_path: Path, seconds: float, *, judged: bool) -> None:
    """`judged`: long enough for memory and speed to be compared with the beginning."""
    me, model = psutil.Process(), paths.embedded_model()
    assert model is not None
    before = me.num_fds(), threading.active_count()
    run = Soak(model, tmp_path / "states", Random(SEED))
    memory, speeds = list[int](), list[float]()
    start = looked = time.monotonic()
    try:
        while (at := time.monotonic() - start) < seconds:
            run.act()
            if time.monotonic() - looked < min(LOOK_S, seconds / 10):
                continue
            run.audit()
            speeds.append(run.speed())
            gc.collect()
            looked = time.monotonic()
            memory.append(me.memory_info().rss)
            row.say(f"soak: {at / 60:.1f} of {seconds / 60:.1f} minutes, {run.n_acts} acts, {memory[-1] >> 20} MB")
    finally:
        run.desk.close()
    del run
    gc.collect()
    assert me.num_fds() <= before[0], f"seed {SEED}: {me.num_fds()} descriptors, {before[0]} before"
    assert threading.active_count() <= before[1], f"seed {SEED}: threads left: {threading.enumerate()}"
    fifth, end = max(1, len(memory) // 5), max(1, round(ENDS * len(speeds)), min(3, len(speeds) // 2))
    warm, last = memory[fifth : 2 * fifth] or memory, memory[-fifth:]
    first_speed, last_speed = statistics.median(speeds[:end]), statistics.median(speeds[-end:])
    grown = statistics.median(last) / statistics.median(warm)
    row.say(f"soak: memory x {grown:.4f}, speed x {last_speed / first_speed:.3f} of the beginning")
    if judged:
        assert grown <= MOST_MEMORY, f"seed {SEED}: memory grew by {100 * (grown - 1):.1f} %"
        assert last_speed / first_speed >= LEAST_SPEED, (
            f"seed {SEED}: {last_speed / first_speed:.3f} of the first speed"
        )


def test_soak_short(row: Row, tmp_path: Path) -> None:
    """Audits, descriptors and threads; too short for the rest."""
    soak(row, tmp_path, 6.0, judged=False)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_soak(row: Row, tmp_path: Path) -> None:
    soak(row, tmp_path, 60 * SOAK_MINUTES, judged=True)
