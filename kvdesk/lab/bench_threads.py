"""The adaptive thread count against fixed ones, under other busy processes. Headless; returns data, prints nothing.

Slices of the three ways take turns, so that whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.engine.context import Context
from kvdesk.engine.model import Model
from kvdesk.policy.load import LoadMeter
from kvdesk.policy.threads import DecodeSample, ThreadPolicy
from kvdesk.settings import ContextSettings, default_threads

SLICE_S = 1.5
DEPTH = 256
_ADAPTIVE = 0
_TOKEN = 1000


@dataclass(slots=True)
class LoadResult:
    """One load. Tokens per second: the median over slices; `tok_s` by fixed count, 0 for the adaptive one."""

    busy: int
    tok_s: dict[int, float] = field(default_factory=dict)
    slices: dict[int, list[float]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    changes: int = 0
    others: float = 0.0  # cores taken by other processes, as seen: tells how clean the measurement was

    @property
    def vs_best_fixed(self) -> float:
        return self.tok_s[_ADAPTIVE] / max(v for n, v in self.tok_s.items() if n != _ADAPTIVE)

    @property
    def vs_all_cores(self) -> float:
        return self.tok_s[_ADAPTIVE] / self.tok_s[max(self.tok_s)]


def run(path: Path, loads: tuple[int, ...] = (0, 1, 2), rounds: int = 6, say: Callable[[str], None] = print) -> object:
    """Measure every load; returns one dictionary a load, with both ratios of each."""
    n_cores = default_threads()
    model = Model(path)
    context = Context(model, ContextSettings(n_ctx=2048, n_seq_max=1), proved=False)
    try:
        bench = _Bench(context, n_cores)
        results = []
        for busy in loads:
            with _busy_processes(busy, limit_s=rounds * SLICE_S * (n_cores + 2) * 3 + 30):
                result = bench.measure(busy, rounds)
            results.append(
                {**asdict(result), "vs_best_fixed": result.vs_best_fixed, "vs_all_cores": result.vs_all_cores}
            )
            speeds = ", ".join(f"{n or 'adaptive'}: {v:.1f}" for n, v in result.tok_s.items())
            say(f"{busy} busy: {speeds} tok/s; {result.vs_best_fixed:.2f} of the best fixed count")
        return results
    finally:
        context.close()
        model.close()


class _Bench:
    def __init__(self, context: Context, n_cores: int) -> None:
        self._context = context
        self._ways = [_ADAPTIVE, *sorted({1, n_cores})]
        self._policy = ThreadPolicy(n_cores)
        self._meter = LoadMeter()
        self._meter.read(time.monotonic())
        self._decode(0, DEPTH)

    def measure(self, busy: int, rounds: int) -> LoadResult:
        result = LoadResult(busy, slices={way: [] for way in self._ways})
        seen: list[float] = []
        orders = itertools.cycle(itertools.permutations(self._ways))  # nobody always follows the same one
        for order in itertools.islice(orders, rounds):
            for way in order:
                result.slices[way].append(self._slice(way, result, seen))
        result.tok_s = {way: statistics.median(speeds) for way, speeds in result.slices.items()}
        result.others = statistics.fmean(seen) if seen else 0.0
        return result

    def _slice(self, way: int, result: LoadResult, seen: list[float]) -> float:
        """Decode for SLICE_S; tokens per second."""
        self._context.seq_rm(0, DEPTH, -1)
        start, n, before = time.monotonic(), 0, 0
        while (now := time.monotonic()) - start < SLICE_S:
            if (others := self._meter.read(now)) is not None:
                seen.append(others)
                self._policy.load(now, others)
            threads = way or self._policy.choice.decode
            self._context.set_threads(threads, threads)
            ms, n_kv = self._decode(DEPTH + n, 1)
            n += 1
            if way == _ADAPTIVE:
                choice = self._policy.decoded(DecodeSample(time.monotonic(), threads, 1, n_kv, ms))
                result.changes += before not in (0, threads)
                before = threads
                if result.reasons[-1:] != [choice.reason]:
                    result.reasons.append(choice.reason)
        return n / (time.monotonic() - start)

    def _decode(self, position: int, n_tokens: int) -> tuple[float, int]:
        tokens = [_TOKEN + (position + i) % 500 for i in range(n_tokens)]
        output = [False] * (n_tokens - 1) + [True]
        done = self._context.decode(Batch(tokens, range(position, position + n_tokens), [(0,)] * n_tokens, output))
        return done.ms, max(CTX_PAD, pad(position + n_tokens, CTX_PAD))


@contextmanager
def _busy_processes(count: int, limit_s: float) -> Iterator[None]:
    """So many processes that do nothing but compute; they end by themselves after `limit_s`."""
    code = f"import time\nend = time.time() + {limit_s}\nwhile time.time() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        time.sleep(0.5 if count else 0.0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
