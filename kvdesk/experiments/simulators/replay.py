"""A history, put to a simulated cache: what it would have found, evicted, copied and wasted.

As requests (`served`): as vLLM and SGLang work. Each prompt comes whole, with everything before it in the chat; what is
known of it is found, the rest computed; when the answer is complete the request ends, and its tokens stay only as long
as nobody needs their room. As sequences (`held`): as llama.cpp works. A sequence keeps its tokens until it is removed,
and a copy shares blocks until one of both writes into them.
"""

from collections.abc import Iterator
from typing import Protocol

from kvdesk.experiments.scenarios.history import Copied, History, Kept, Loaded, Paused, Read, Sequences, Slid, Wrote
from kvdesk.experiments.simulators.block_pool import NoRoom
from kvdesk.experiments.simulators.paged_cache import PagedCache, Use
from kvdesk.values import dataclass, field


class PrefixCache(Protocol):
    """Both simulated caches. `begin` and `append` raise NoRoom."""

    @property
    def n_evicted(self) -> int: ...
    def begin(self, seq_id: int, prompt: list[int]) -> int: ...
    def append(self, seq_id: int, tokens: tuple[int, ...]) -> None: ...
    def end(self, seq_id: int) -> None: ...
    def use(self) -> Use: ...


@dataclass(frozen=True, slots=True)
class Begin:
    """A request with this prompt. loaded: from a saved state, so that nothing of it is asked for or computed."""

    seq_id: int
    prompt: tuple[int, ...]
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    seq_id: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    seq_id: int


@dataclass(slots=True)
class Outcome:
    """What became of a history. Numbers of tokens, but for the first three.

    n_requests   prompts; n_preempted: requests that were ended early to make room, and begun again when they went on
    n_refused    requests that did not fit alone
    n_prompt     of all prompts, n_found of them were known already
    n_evicted    that were known, and given up for others
    n_copied     copied on write
    most_slots   slots taken at most at a time
    waste        mean share of the taken slots that held nothing
    runs         mean number of runs of neighbouring slots of a sequence
    """

    n_requests: int = 0
    n_preempted: int = 0
    n_refused: int = 0
    n_prompt: int = 0
    n_found: int = 0
    n_evicted: int = 0
    n_copied: int = 0
    most_slots: int = 0
    waste: float = 0.0
    runs: float = 0.0

    @property
    def n_computed(self) -> int:
        """Tokens of prompts that had to be computed."""
        return self.n_prompt - self.n_found

    @property
    def hit_rate(self) -> float:
        """Share of the tokens of prompts that was known, 0 without prompts."""
        return self.n_found / self.n_prompt if self.n_prompt else 0.0


@dataclass(slots=True)
class _Means:
    """Of what is held after each event."""

    outcome: Outcome
    wastes: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)

    def look(self, use: Use, n_sequences: int) -> None:
        if use.n_slots:
            self.wastes.append(1 - use.n_filled / use.n_slots)
            self.runs.append(use.n_runs / n_sequences)
            self.outcome.most_slots = max(self.outcome.most_slots, use.n_slots)

    def end(self) -> Outcome:
        n = max(1, len(self.wastes))
        self.outcome.waste, self.outcome.runs = sum(self.wastes) / n, sum(self.runs) / n
        return self.outcome


def requests_of(history: History) -> Iterator[Begin | Append | End]:
    """The requests that an engine would have got: an end is right behind the last token of its answer.

    A prompt is all that its sequence holds once it is read. A sequence that goes on without one, after it was copied,
    cut or loaded, begins a request with all it holds.
    """
    sequences = Sequences()
    calls: list[Begin | Append | End | None] = []
    running: dict[int, int] = {}  # sequence -> place behind its last token so far

    def close(seq_id: int) -> None:
        place = running.pop(seq_id, None)
        if place is not None:
            calls[place] = End(seq_id)

    def put(seq_id: int, call: Begin | Append) -> None:
        calls.extend((call, None))
        running[seq_id] = len(calls) - 1

    for event in history:
        sequences.follow(event)
        match event:
            case Read(seq_id) | Loaded(seq_id):
                close(seq_id)
                put(seq_id, Begin(seq_id, tuple(sequences.tokens[seq_id]), isinstance(event, Loaded)))
            case Wrote(seq_id, tokens) if seq_id in running and not _is_load(calls[running[seq_id] - 1]):
                put(seq_id, Append(seq_id, tokens))
            case Wrote(seq_id, tokens):
                close(seq_id)
                held = sequences.tokens[seq_id]
                put(seq_id, Begin(seq_id, tuple(held[: len(held) - len(tokens) + 1])))
                if len(tokens) > 1:
                    put(seq_id, Append(seq_id, tokens[1:]))
            case Kept(seq_id) | Slid(seq_id) | Copied(_, seq_id):
                close(seq_id)
            case Paused():
                pass
    for seq_id in list(running):
        close(seq_id)
    return (call for call in calls if call is not None)


def _is_load(call: Begin | Append | End | None) -> bool:
    return isinstance(call, Begin) and call.loaded


def served(history: History, cache: PrefixCache) -> Outcome:
    """The history as requests. Without room, the request that began last is preempted, as in vLLM."""
    return _Serving(cache).run(history)


class _Serving:
    def __init__(self, cache: PrefixCache) -> None:
        self._cache = cache
        self._outcome = Outcome()
        self._running: dict[int, list[int]] = {}  # tokens of each, in the order of their beginning
        self._preempted: dict[int, list[int]] = {}

    def run(self, history: History) -> Outcome:
        means = _Means(self._outcome)
        for call in requests_of(history):
            match call:
                case Begin(seq_id, prompt, loaded):
                    self._outcome.n_requests += not loaded
                    self._begin(seq_id, list(prompt), counts=not loaded)
                case Append(seq_id, tokens):
                    for token in tokens:
                        self._append(seq_id, token)
                case End(seq_id):
                    means.look(self._cache.use(), max(1, len(self._running)))
                    self._preempted.pop(seq_id, None)
                    if self._running.pop(seq_id, None) is not None:
                        self._cache.end(seq_id)
        self._outcome.n_evicted = self._cache.n_evicted
        return means.end()

    def _begin(self, seq_id: int, prompt: list[int], *, counts: bool) -> None:
        found = None
        while found is None:
            try:
                found = self._cache.begin(seq_id, prompt)
            except NoRoom:
                if not self._running:
                    self._outcome.n_refused += 1
                    return
                self._preempt()
        self._running[seq_id] = prompt
        if counts:
            self._outcome.n_prompt += len(prompt)
            self._outcome.n_found += found

    def _append(self, seq_id: int, token: int) -> None:
        if seq_id in self._preempted:  # it goes on: all of it is a prompt now
            self._begin(seq_id, [*self._preempted.pop(seq_id), token], counts=True)
        elif seq_id in self._running:
            self._running[seq_id].append(token)
            written = False
            while not written and seq_id in self._running:
                try:
                    self._cache.append(seq_id, (token,))
                    written = True
                except NoRoom:
                    self._preempt()

    def _preempt(self) -> None:
        seq_id, tokens = self._running.popitem()
        self._preempted[seq_id] = tokens
        self._cache.end(seq_id)
        self._outcome.n_preempted += 1


def held(history: History, cache: PagedCache) -> Outcome:
    """The history as sequences that stay. Without room, the least recently used sequence is removed."""
    return _Holding(cache).run(history)


class _Holding:
    """The cache's tables are in the order of their last use."""

    def __init__(self, cache: PagedCache) -> None:
        self._cache = cache
        self._outcome = Outcome()
        self._sequences = Sequences()

    def run(self, history: History) -> Outcome:
        means, tables = _Means(self._outcome), self._cache.tables
        for event in history:
            self._sequences.follow(event)
            match event:
                case Read(seq_id) | Wrote(seq_id) | Loaded(seq_id):
                    self._add(seq_id, counts=isinstance(event, Read))
                case Copied(source, target, n):
                    self._cut(target, 0)
                    if source in tables:
                        self._cache.fork(source, target, n)
                case Kept(seq_id, n):
                    self._cut(seq_id, n)
                case Slid(seq_id, start):
                    self._cut(seq_id, start)
                    self._add(seq_id, counts=False)
                case Paused():
                    continue
            means.look(self._cache.use(), max(1, len(tables)))
        self._outcome.n_evicted, self._outcome.n_copied = self._cache.n_evicted, self._cache.n_copied
        return means.end()

    def _cut(self, seq_id: int, n: int) -> None:
        if seq_id in self._cache.tables:
            if n:
                self._cache.cut(seq_id, n)
            else:
                self._cache.end(seq_id)

    def _add(self, seq_id: int, *, counts: bool) -> None:
        """What the sequence holds now and its table does not have yet."""
        tables, whole = self._cache.tables, self._sequences.tokens[seq_id]
        if seq_id in tables:
            tables[seq_id] = tables.pop(seq_id)
        found = len(tables[seq_id].tokens) if seq_id in tables else None
        while seq_id not in tables or len(tables[seq_id].tokens) < len(whole):
            try:
                if seq_id in tables:
                    self._cache.append(seq_id, whole[len(tables[seq_id].tokens) :])
                else:
                    found = self._cache.begin(seq_id, whole)
            except NoRoom:
                other = next((s for s in tables if s != seq_id), None)
                if other is None:
                    self._outcome.n_refused += 1
                    return self._cut(seq_id, 0)
                self._cache.end(other)
                self._outcome.n_preempted += 1
        if counts:
            self._outcome.n_requests += 1
            self._outcome.n_prompt += len(whole)
            self._outcome.n_found += found or 0
        return None
