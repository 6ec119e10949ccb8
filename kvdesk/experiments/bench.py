"""What an experiment works with, in its own process: the model, contexts, token ids, and rounds on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.recording import Recording
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.sample_text import SAMPLE_TEXT
from kvdesk.experiments.statistics import median
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.policies.load import INTERVAL_S, LoadMeter
from kvdesk.protocol.experiment import MOST_OTHERS, Load, Progress, Values
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.settings import ContextSettings

MOST_REPEATED = 3
"""Rounds that are added at most because others computed."""


class Bench:
    """settings: of the largest context the experiment makes; values: its parameters; text: what it reads; journal:
    whose history it takes, None for its own; tell_cells: gets the cells of its contexts a few times a second.

    Contexts have one thread: a second one makes ratios no truer, and waits for the first where a core is taken.
    """

    def __init__(
        self,
        model: Model,
        header: GgufHeader,
        settings: ContextSettings,
        values: Values,
        *,
        seed: int = 17,
        text: str = SAMPLE_TEXT,
        journal: Recording | None = None,
        tell_cells: Callable[[CellsSeen], None] | None = None,
    ) -> None:
        self.model = model
        self.header = header
        self.settings = settings.model_copy(update={"n_threads": 1, "n_threads_batch": 1})
        self.values = values
        self.text = text
        self.seed = seed
        self.journal = journal
        self._tell_cells = tell_cells
        self._random = np.random.default_rng(seed)
        self._others: list[float] = []
        self._repeated = 0

    @contextmanager
    def context(self, *, inspect: bool = False, record: bool = False, **changes: object) -> Iterator[RawContext]:
        """A context of the experiment's settings with these changes, closed afterwards. Raises ContextError."""
        with self.context_of(self.settings.model_copy(update=changes), inspect=inspect, record=record) as context:
            yield context

    @contextmanager
    def context_of(
        self, settings: ContextSettings, *, inspect: bool = False, record: bool = False
    ) -> Iterator[RawContext]:
        """A context of these settings."""
        context = RawContext(self.model, settings, inspect=inspect, tell_cells=self._tell_cells, record=record)
        try:
            yield context
        finally:
            context.close()

    def show(self, snapshot: CacheSnapshot) -> None:
        """Have these cells seen where the experiment is watched."""
        if self._tell_cells is not None and snapshot.maps:
            self._tell_cells(CellsSeen.of(snapshot.operation, snapshot.maps))

    def tokens(self, n: int) -> list[int]:
        """Token ids drawn at random: the same ones for the same seed, with any model and without any text."""
        n_vocab = self.model.vocab.n_tokens
        return [int(token) for token in self._random.integers(min(3, n_vocab - 1), n_vocab, n)]

    def whole(self, key: str) -> int:
        """A whole parameter."""
        return int(self.values[key])

    def rounds(self, n: int) -> Iterator[int]:
        """Numbers from 0 on: `n` rounds, and up to `MOST_REPEATED` more when others computed during more than a third
        of those done. Every round stays: the interval gets wider by what was disturbed, and narrower by number.
        """
        at, first = 0, len(self._others)
        while at < n or (at < n + MOST_REPEATED and self._disturbed(first) * 3 > at):
            meter, start = LoadMeter(), time.perf_counter()
            meter.read(start)
            yield at
            while (others := meter.read(time.perf_counter())) is None:
                time.sleep(INTERVAL_S / 10)
            self._others.append(others)
            at += 1
        self._repeated += max(0, at - n)

    def progress(self, number: int, at: int, steps: int, what: str) -> Progress:
        """Step `at` of the `steps` of round `number`; rounds that are added count."""
        n_rounds = max(self.whole("rounds"), number + 1)
        return Progress(number * steps + at, n_rounds * steps, what)

    def load(self) -> Load:
        if not self._others:
            return Load()
        return Load(round(median(self._others), 3), round(max(self._others), 3), self._repeated, len(self._others))

    def speed(self) -> tuple[float, float]:
        """Seconds for a token that is read in a batch of 32, and for one that is written. Takes about a second."""
        with self.context(n_ctx=256, n_seq_max=1) as context:
            tokens = self.tokens(min(32, context.n_batch))
            context.append(tokens, 0)  # warms up
            context.clear()
            read = context.append(tokens, 0).seconds / len(tokens)
            written = [context.append([token], len(tokens) + i).seconds for i, token in enumerate(tokens[:8])]
        return read, median(written)

    def _disturbed(self, first: int) -> int:
        """Of the rounds from `first` on."""
        return sum(others > MOST_OTHERS for others in self._others[first:])
