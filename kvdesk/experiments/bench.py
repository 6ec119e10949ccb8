"""Tools of a measurement: the model, bare contexts, whole engines, token ids, and rounds on a busy machine."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np

from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.sample_text import SAMPLE_TEXT
from kvdesk.experiments.statistics import median
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.policies.load import LoadMeter
from kvdesk.policies.tuned import LOAD_INTERVAL_S
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.experiment import MOST_OTHERS, Load, Progress, Values
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings

MOST_REPEATED = 3
"""Most rounds that are added because other programs computed."""
ONE_THREAD = {"n_threads": 1, "n_threads_batch": 1}
"""Settings of an experiment. A second thread makes ratios no more accurate, and waits if a core is busy."""
STEADY = CachePolicy(follow_load=False, save_idle_requests=False)
"""The number of threads stays the same, because it changes the order of sums, and scenarios compare texts token for
token. Idle chats stay too, because a scenario decides what is in the cache.
"""


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside the block, as in the window between two tokens."""
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Bench:
    """settings: of the largest context of the measurement; values: its parameters; text: what it reads; journal: the
    history to use, None for a generated one; tell_cells: gets the cells of its contexts a few times a second; say: gets
    a line for the user. The model is loaded at its first use.

    audits: the state of every engine's map when it was closed
    """

    def __init__(
        self,
        path: Path,
        settings: ContextSettings,
        values: Values,
        *,
        seed: int = 17,
        text: str = SAMPLE_TEXT,
        journal: Recording | None = None,
        tell_cells: Callable[[CellsSeen], None] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = path
        self.settings = settings
        self.say = say
        self.audits: list[str] = []
        self.values = values
        self.text = text
        self.seed = seed
        self.journal = journal
        self._tell_cells = tell_cells
        self._random = np.random.default_rng(seed)
        self._others: list[float] = []
        self._repeated = 0

    @cached_property
    def header(self) -> GgufHeader:
        """Of the model's file. Raises UserError."""
        return read_header(self.path)

    @cached_property
    def model(self) -> Model:
        """Loaded once, closed by `close`. Raises UserError."""
        return Model(self.path)

    def close(self) -> None:
        if "model" in self.__dict__:
            self.model.close()

    @contextmanager
    def engine(
        self, policy: CachePolicy = STEADY, folder: Path | None = None, settings: ContextSettings | None = None
    ) -> Iterator[HeadlessEngine]:
        """A fresh engine with the model loaded. Its whole cache is audited at the end, then it is closed.

        No garbage collection happens meanwhile.
        """
        with uncollected(), closing(HeadlessEngine()) as headless:
            headless.do(UsePolicy(policy, folder))
            headless.do(LoadModel(LocalFile(self.path), settings or self.settings))
            yield headless
            verification = session_of(headless).runtime.context.auditor.audit(whole=True)
            wrong = f": {verification.detail}" if verification.state != "verified" else ""
            self.audits.append(f"{verification.state}{wrong}")

    @property
    def audited(self) -> str:
        """ "verified" when every engine was."""
        return next((audit for audit in self.audits if audit != "verified"), "verified" if self.audits else "none")

    def context(self, *, inspect: bool = False, record: bool = False, **changes: object) -> closing[RawContext]:
        """A context of the experiment's settings with these changes, closed afterwards. Raises ContextError."""
        return self.context_of(self.settings.model_copy(update=changes), inspect=inspect, record=record)

    def context_of(
        self, settings: ContextSettings, *, inspect: bool = False, record: bool = False
    ) -> closing[RawContext]:
        """A context of these settings."""
        tell = self._tell_cells
        return closing(RawContext(self.model, settings, inspect=inspect, tell_cells=tell, record=record))

    def show(self, snapshot: CacheSnapshot) -> None:
        """Show these cells where the experiment is watched."""
        if self._tell_cells is not None and snapshot.maps:
            self._tell_cells(CellsSeen.of(snapshot.operation, snapshot.maps))

    def tokens(self, n: int) -> list[int]:
        """Random token ids: the same for the same seed, with any model and without any text."""
        n_vocab = self.model.vocab.n_tokens
        return [int(token) for token in self._random.integers(min(3, n_vocab - 1), n_vocab, n)]

    def ids(self, text: str, *, first: bool = False) -> list[int]:
        """Token ids of a text; `first`: with those that a text begins with. Raises PromptError."""
        return self.model.vocab.tokenize(text, add_special=first, parse_special=False)

    def whole(self, key: str) -> int:
        """A whole parameter."""
        return int(self.values[key])

    def rounds(self, n: int) -> Iterator[int]:
        """Numbers from 0 on: `n` rounds, and up to `MOST_REPEATED` more if other programs computed during more than a
        third of them. Every round counts: disturbances widen the interval, more rounds narrow it.
        """
        at, first = 0, len(self._others)
        while at < n or (at < n + MOST_REPEATED and self._disturbed(first) * 3 > at):
            meter, start = LoadMeter(), time.perf_counter()
            meter.read(start)
            yield at
            while (others := meter.read(time.perf_counter())) is None:
                time.sleep(LOAD_INTERVAL_S / 10)
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
        """Seconds for a token that is read in a batch of 32, and for one that is written. Takes about a second. Raises
        ContextError.
        """
        with self.context(n_ctx=256, n_seq_max=1) as context:
            tokens = self.tokens(min(32, context.n_batch))
            context.read(tokens, 0)  # warms up
            context.clear()
            read = context.read(tokens, 0).seconds / len(tokens)
            written = [context.read([token], len(tokens) + i).seconds for i, token in enumerate(tokens[:8])]
        return read, median(written)

    def _disturbed(self, first: int) -> int:
        """Of the rounds from `first` on."""
        return sum(others > MOST_OTHERS for others in self._others[first:])
