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
from kvdesk.benchmarks.interleaved import in_turns
from kvdesk.cache.compaction import Layout
from kvdesk.chat import new_conversation_id
from kvdesk.errors import UserError
from kvdesk.experiments.statistics import against
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import AuditCache, CacheView, Forget, MemoryLedger, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation, LoadModel, LocalFile
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import ClearCache, Compact, CopySequence, HandOperation, Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, ContextSettings, Overflow, Sampling
from tests.stress.conftest import SEED, SOAK_MINUTES, Row

SETTINGS = ContextSettings(n_ctx=1024, n_seq_max=4, n_threads=1, n_threads_batch=1)
MEASURED = Sampling(temperature=0.0, max_tokens=32)
STORY = "Tell me a long story about a whale and a lamp."
LOOK_S = 5.0
ENDS_S, N_REQUESTS = 60.0, 12
"""The speeds of the first and the last minute are compared, by so many requests at each look. (Memory: second and last
fifth of all looks.)
"""
STORES = ("saved conversations", "being written to disk", "undo")
MOST_MEMORY, LEAST_SPEED = 1.02, 0.95
WORDS = ["puffin", "gull", "lamp", "rain", "glass", "whale", "über", "海"]


class Soak:
    """One engine and up to five conversations, used by random numbers."""

    def __init__(self, model: Path, states: Path, random: Random) -> None:
        self.headless = HeadlessEngine(self._on_event)
        self._ledger = MemoryLedger(())
        self._random, self._states = random, states
        self.chats: list[HeadlessChat] = []
        self.n_acts = self.n_refused = 0
        self.headless.do(LoadModel(LocalFile(model), SETTINGS))
        self.headless.do(Watch(True))
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
        self.headless.engine.idle()

    def audit(self) -> None:
        """Every cell against the engine's own state."""
        self.headless.do(AuditCache())
        view = next(event for event in reversed(self.headless.events) if isinstance(event, CacheView))
        assert view.snapshot.verification.state == "verified", view.snapshot.verification.detail

    def stores(self) -> int:
        """Bytes of what fills with use, as the window tells them: for undo, saved conversations, transfers. Each is as
        bounded as it says.
        """
        rows = [row for row in self._ledger.rows if row.name in STORES]
        assert all(row.most is None or (row.measured or 0) <= row.most for row in rows), rows
        return sum(row.measured or 0 for row in rows)

    def slowness(self) -> list[float]:
        """Seconds of equal requests where nothing is cached or saved, each over those of the bare loop before and after
        it, without what either waited for a processor: a machine whose speed drifts, or that is busy, does not decide.
        """
        self.headless.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), self._states))
        self.headless.do(Operate(ClearCache(), measured=False))
        ratios = against(*in_turns(self.headless, [STORY] * N_REQUESTS, MEASURED))
        self._settings()
        return ratios

    def _on_event(self, event: Event) -> None:
        if isinstance(event, MemoryLedger):
            self._ledger = event

    def _answer(self) -> None:
        if len(self.chats) < 5 and (not self.chats or self._random.random() < 0.2):
            self.chats.append(HeadlessChat(self.headless, overflow=self._random.choice(list(Overflow))))
        text = " ".join(self._random.choices(WORDS, k=self._random.randint(1, 60)))
        self._random.choice(self.chats).answer(text, Sampling(max_tokens=self._random.randint(4, 32)))

    def _operate(self) -> None:
        where = self._random.choice(self.chats).id if self.chats else new_conversation_id()
        operations: list[HandOperation] = [Compact(self._random.choice(list(Layout))), SwapOut(where), SwapIn(where)]
        self.headless.do(Operate(self._random.choice(operations)))

    def _fork(self) -> None:
        """Its cells as another conversation's, which is closed at once or lives on without text."""
        held, new = list(session_of(self.headless).runtime.cache_manager.pool), new_conversation_id()
        if not held:
            return
        self.headless.do(Operate(CopySequence(self._random.choice(held).seq_id, new)))
        self.headless.do(CloseConversation(new))

    def _settings(self) -> None:
        policy = CachePolicy(
            memory_mb=16,
            disk_mb=32,
            prefill_ahead=self._random.random() < 0.5,
            overflow=self._random.choice(list(Overflow)),
        )
        self.headless.do(UsePolicy(policy, self._states))

    def _rebuild(self) -> None:
        settings = SETTINGS.model_copy(update={"n_seq_max": self._random.choice([3, 4])})
        self.headless.do(RebuildContext(settings, self._random.choice(["nothing", "tokens", "state"])))

    def _drop(self) -> None:
        if self.chats and self._random.random() < 0.5:
            chat = self.chats.pop(self._random.randrange(len(self.chats)))
            self.headless.do(CloseConversation(chat.id))
        elif self.chats:
            self.headless.do(Forget(self._random.choice(self.chats).id))


def soak(row: Row, tmp_path: Path, seconds: float, *, judged: bool) -> None:
    """`judged`: long enough for memory and speed to be compared with the beginning."""
    me, model = psutil.Process(), paths.embedded_model()
    assert model is not None
    before, ends_s = (me.num_fds(), threading.active_count()), min(ENDS_S, seconds / 3)
    run = Soak(model, tmp_path / "states", Random(SEED))
    memory, first, last = list[int](), list[float](), list[float]()
    start = looked = time.monotonic()
    try:
        while (at := time.monotonic() - start) < seconds:
            run.act()
            if time.monotonic() - looked < min(LOOK_S, seconds / 10):
                continue
            run.audit()
            if judged and at < ends_s:
                first += run.slowness()
            elif judged and at > seconds - ends_s:
                last += run.slowness()
            gc.collect()
            looked = time.monotonic()
            stores = run.stores()
            memory.append(me.memory_info().rss - stores)
            row.say(
                f"soak: {at / 60:.1f} of {seconds / 60:.1f} minutes, {run.n_acts} acts, {memory[-1] >> 20} MB"
                f" and {stores >> 20} MB in stores"
            )
    finally:
        run.headless.close()
    del run
    gc.collect()
    assert me.num_fds() <= before[0], f"seed {SEED}: {me.num_fds()} descriptors, {before[0]} before"
    assert threading.active_count() <= before[1], f"seed {SEED}: threads left: {threading.enumerate()}"
    fifth = max(1, len(memory) // 5)
    warm, end = memory[fifth : 2 * fifth] or memory, memory[-fifth:]
    grown = statistics.median(end) / statistics.median(warm)
    if not judged:
        return
    faster = statistics.median(first) / statistics.median(last)
    row.say(
        f"soak: memory x {grown:.4f}, speed x {faster:.3f} of the beginning, from {len(first)} and {len(last)} requests"
    )
    assert grown <= MOST_MEMORY, f"seed {SEED}: memory grew by {100 * (grown - 1):.1f} %"
    assert faster >= LEAST_SPEED, f"seed {SEED}: {faster:.3f} of the first speed"


def test_soak_short(row: Row, tmp_path: Path) -> None:
    """Audits, descriptors and threads; too short for the rest."""
    soak(row, tmp_path, 6.0, judged=False)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_soak(row: Row, tmp_path: Path) -> None:
    soak(row, tmp_path, 60 * SOAK_MINUTES, judged=True)
