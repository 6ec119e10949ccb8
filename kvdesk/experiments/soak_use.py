"""Mixed use of a whole engine by random numbers: answers, forks, swaps, compactions, chats that are closed."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from kvdesk.cache.compaction import Layout
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.errors import UserError
from kvdesk.experiments.benchmarks.requests import answered
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import Forget, MemoryLedger, SpeedSample, UsePolicy
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.messages import Command, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import Compact, HandOperation, Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, ContextSettings, Overflow, Sampling
from kvdesk.translation import tr

STORES = ("saved conversations", "being written to disk", "undo")
"""Rows of the memory table that fill with use up to their own limit."""
MOST_CHATS = 8
WORDS = ("puffin", "gull", "lamp", "rain", "glass", "whale", "harbour", "winter", "über", "海")
POLICY = CachePolicy(memory_mb=64, disk_mb=0, follow_load=False)
Acts = dict[str, tuple[float, Callable[[], None]]]
"""What is done, by name: how often in comparison with the others, and how."""
PROBE = "Tell me a long story about a whale and a lamp."


class MixedUse:
    """One engine and some chats. The same seed and the same answers give the same use.

    gaps      milliseconds of each token that was written since `take_gaps`
    n_kv      attention spans of these
    counts    how often each thing was done, and "refused"
    """

    def __init__(self, model: Path, settings: ContextSettings, random: Random) -> None:
        self.gaps, self.n_kv = list[float](), list[int]()
        self.counts: Counter[str] = Counter()
        self.chats: list[HeadlessChat] = []
        self.ledger, self.random = MemoryLedger(()), random
        self.headless = HeadlessEngine(self._on_event)
        try:
            self.headless.do(UsePolicy(POLICY))
            self.headless.do(LoadModel(LocalFile(model), settings))
            session_of(self.headless).loaded.model.vocab.ignore_eog()  # answers are as long as they are asked for
            HeadlessChat(self.headless).answer("Hello.", Sampling(temperature=0.0, max_tokens=2))
        except BaseException:
            self.close()
            raise

    def act(self) -> None:
        """One thing; what is refused with a sentence is counted, and what an idle engine does is done."""
        acts = self.acts()
        name = self.random.choices(list(acts), [weight for weight, _ in acts.values()])[0]
        try:
            acts[name][1]()
            self.counts[name] += 1
        except UserError:
            self.counts["refused"] += 1
        self.headless.engine.idle()

    def acts(self) -> Acts:
        return {
            "answer": (10, self._answer),
            "fork": (2, self._fork),
            "swap out": (2, lambda: self.operate(SwapOut(self._any().id))),
            "swap in": (1, lambda: self.operate(SwapIn(self._any().id))),
            "compaction": (1, lambda: self.operate(Compact(self.random.choice(list(Layout))))),
            "forget": (1, lambda: self.do(Forget(self._any().id))),
            "close": (1, self._close_chat),
        }

    def do(self, command: Command) -> None:
        self.headless.do(command)

    def operate(self, operation: HandOperation) -> None:
        """By hand, without what it did being measured."""
        self.do(Operate(operation, measured=False))

    def probe_ms(self, number: int, n_tokens: int) -> float:
        """Milliseconds of a token of an answer in a new chat, whatever else is in the cache. What it does is not among
        `gaps`.
        """
        kept = self.take_gaps()
        stats = answered(self.headless, f"{number}. {PROBE}", Sampling(temperature=0.0, max_tokens=n_tokens))
        self.gaps, self.n_kv = kept
        return 1e3 / stats.decode_tok_s

    def take_gaps(self) -> tuple[list[float], list[int]]:
        """`gaps` and `n_kv`, which begin again."""
        taken = self.gaps, self.n_kv
        self.gaps, self.n_kv = [], []
        return taken

    @property
    def store_bytes(self) -> int:
        """Of what fills with use up to a limit."""
        return sum(row.measured or 0 for row in self.ledger.rows if row.name in STORES)

    @property
    def cell_bytes(self) -> float:
        """K and V of a cell."""
        info = session_of(self.headless).runtime.info
        return (info.k_bytes + info.v_bytes) / info.n_ctx

    def snapshot(self) -> CacheSnapshot:
        """The cells as they are."""
        return session_of(self.headless).runtime.context.memory.snapshot()

    def close(self) -> None:
        self.headless.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        match event:
            case SpeedSample(kind="decode", n_tokens=1, rc=0):
                self.gaps.append(event.ms)
                self.n_kv.append(event.n_kv)
            case MemoryLedger():
                self.ledger = event
            case _:
                pass

    def _answer(self) -> None:
        if len(self.chats) < MOST_CHATS and (not self.chats or self.random.random() < 0.2):
            self.chats.append(HeadlessChat(self.headless, overflow=self.random.choice(list(Overflow))))
        text = " ".join(self.random.choices(WORDS, k=self.random.randint(1, 60)))
        self._any().answer(text, Sampling(temperature=0.0, max_tokens=self.random.randint(4, 32)))

    def _fork(self) -> None:
        """Another chat that begins with what one has said so far."""
        source = self._any()
        if len(self.chats) >= MOST_CHATS:
            self._close_chat()
        fork = HeadlessChat(self.headless, overflow=source.overflow)
        fork.messages = source.messages[: 2 * self.random.randint(1, max(1, len(source.messages) // 2))]
        self.chats.append(fork)
        fork.answer("And otherwise?", Sampling(temperature=0.0, max_tokens=self.random.randint(4, 16)))

    def _close_chat(self) -> None:
        chat = self._any()
        self.chats.remove(chat)
        self.headless.do(CloseConversation(chat.id))

    def _any(self) -> HeadlessChat:
        if not self.chats:
            raise UserError(tr("There is no chat yet."))
        return self.random.choice(self.chats)


class Rate:
    """Processor time of this process between two looks, in cores."""

    def __init__(self) -> None:
        self._last = time.perf_counter(), time.process_time()

    def take(self) -> float:
        now = time.perf_counter(), time.process_time()
        (wall, own), self._last = (now[0] - self._last[0], now[1] - self._last[1]), now
        return own / wall
