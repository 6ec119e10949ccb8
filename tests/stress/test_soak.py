"""Half an hour of mixed use on one engine: nothing grows, nothing is left, nothing gets slower, every audit passes."""

import gc
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from random import Random

import psutil
import pytest

from kvdesk.experiments.benchmarks.interleaved import in_turns
from kvdesk.experiments.soak_use import STORES, Acts, MixedUse
from kvdesk.experiments.statistics import against
from kvdesk.headless import session_of
from kvdesk.message import new_conversation_id
from kvdesk.protocol.cache import AuditCache, CacheView, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation
from kvdesk.protocol.operations import ClearCache, CopySequence, Operate
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
MOST_MEMORY, LEAST_SPEED = 1.02, 0.95


class Soak(MixedUse):
    """The laboratory's mixed use, watched, with cells copied by hand, other policies and new contexts among it."""

    def __init__(self, model: Path, states: Path, random: Random) -> None:
        self._states = states
        super().__init__(model, SETTINGS, random)
        self.do(Watch(True))
        self._settings()

    def acts(self) -> Acts:
        more: Acts = {"copy": (3, self._copy), "settings": (3, self._settings), "rebuild": (2, self._rebuild)}
        return super().acts() | more

    def audit(self) -> None:
        """Every cell against the engine's own state; what fills with use is as bounded as it says."""
        self.do(AuditCache())
        view = next(event for event in reversed(self.headless.events) if isinstance(event, CacheView))
        assert view.snapshot.verification.state == "verified", view.snapshot.verification.detail
        rows = [row for row in self.ledger.rows if row.name in STORES]
        assert all(row.most is None or (row.measured or 0) <= row.most for row in rows), rows

    def slowness(self) -> list[float]:
        """Seconds of equal requests if nothing is cached or saved, each over those of the bare loop before and after
        it, without what either waited for a processor: a machine whose speed drifts, or that is busy, does not decide.
        """
        self.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), self._states))
        self.operate(ClearCache())
        ratios = against(*in_turns(self.headless, [STORY] * N_REQUESTS, MEASURED))
        self._settings()
        return ratios

    def _copy(self) -> None:
        """The cells of a conversation as another one's, which is closed at once."""
        held, new = list(session_of(self.headless).runtime.cache_manager.pool), new_conversation_id()
        if held:
            self.do(Operate(CopySequence(self.random.choice(held).seq_id, new)))
            self.do(CloseConversation(new))

    def _settings(self) -> None:
        overflow, ahead = self.random.choice(list(Overflow)), self.random.random() < 0.5
        policy = CachePolicy(memory_mb=16, disk_mb=32, prefill_ahead=ahead, overflow=overflow)
        self.do(UsePolicy(policy, self._states))

    def _rebuild(self) -> None:
        settings = SETTINGS.model_copy(update={"n_seq_max": self.random.choice([3, 4])})
        self.do(RebuildContext(settings, self.random.choice(["nothing", "tokens", "state"])))


def soak(row: Row, model: Path, tmp_path: Path, seconds: float, *, judged: bool) -> None:
    """`judged`: long enough for memory and speed to be compared with the beginning."""
    me = psutil.Process()
    before, ends_s = (me.num_fds(), threading.active_count()), min(ENDS_S, seconds / 3)
    with closing(Soak(model, tmp_path / "states", Random(SEED))) as run:
        memory, first, last = list[int](), list[float](), list[float]()
        start = looked = time.monotonic()
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
            stores = run.store_bytes
            memory.append(me.memory_info().rss - stores)
            row.say(
                f"soak: {at / 60:.1f} of {seconds / 60:.1f} minutes, {sum(run.counts.values())} acts,"
                f" {memory[-1] >> 20} MB and {stores >> 20} MB in stores"
            )
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


def test_soak_short(row: Row, model_file: Path, tmp_path: Path) -> None:
    """Audits, descriptors and threads; too short for the rest."""
    soak(row, model_file, tmp_path, 6.0, judged=False)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_soak(row: Row, model_file: Path, tmp_path: Path) -> None:
    soak(row, model_file, tmp_path, 60 * SOAK_MINUTES, judged=True)
