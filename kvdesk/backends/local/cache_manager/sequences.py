"""Which conversation has which seq_id, and which tokens that sequence holds. No llama.cpp, no cells: bookkeeping."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from kvdesk.chat import ConversationId
from kvdesk.protocol.cache import Lease, MessageSpan

MIN_REUSE_TOKENS = 16
"""A prefix of so many tokens is worth an operation; a branch of so many is worth a sequence."""
ALL_EXACT = 1 << 30
"""`CacheSequence.exact` where no token was moved."""


@dataclass(slots=True, eq=False)
class CacheSequence:
    """A leased seq_id. `tokens[i]` is the token at position i: exactly what the engine holds for the sequence.

    exact   so many leading tokens have K and V as a prefill would make them; those behind were moved there
    texts   the messages of the last turn, to see which was changed since; `spans`: where they lie
    parked  another branch of the conversation, kept while there is room; the conversation goes on in its other sequence
    branch  number of the branch that it holds among those of the conversation, from 1 on
    """

    seq_id: int
    conversation: ConversationId
    tokens: list[int] = field(default_factory=list)
    exact: int = ALL_EXACT
    texts: tuple[str, ...] = ()
    spans: tuple[MessageSpan, ...] = ()
    last_used: int = 0
    used_at: float = 0.0
    busy: bool = False
    parked: bool = False
    branch: int = 1


class SequencePool:
    """Leases seq_ids of `[0, n_seq_max)` to conversations, the lowest free one first.

    A conversation has one sequence that goes on, and any number of parked ones. Never touches the cache: whoever takes
    a lease away removes the cells first.
    """

    def __init__(self, n_seq_max: int) -> None:
        self._n = n_seq_max
        self._all: list[CacheSequence] = []
        self._clock = 0

    def get(self, conversation: ConversationId) -> CacheSequence | None:
        """The sequence in which the conversation goes on."""
        return next((s for s in self._all if s.conversation == conversation and not s.parked), None)

    def by_seq(self, seq_id: int) -> CacheSequence | None:
        """Who has this seq_id; None when nobody has."""
        return next((s for s in self._all if s.seq_id == seq_id), None)

    def parked(self, conversation: ConversationId) -> list[CacheSequence]:
        """The other branches of the conversation."""
        return [s for s in self._all if s.conversation == conversation and s.parked]

    @property
    def free(self) -> tuple[int, ...]:
        """The seq_ids nobody has, ascending."""
        taken = {s.seq_id for s in self._all}
        return tuple(s for s in range(self._n) if s not in taken)

    def lease(self, conversation: ConversationId, *, parked: bool = False) -> CacheSequence | None:
        """The conversation's sequence, a free one, or None when another must yield first. `parked`: a new one."""
        sequence = None if parked else self.get(conversation)
        if sequence is None:
            free = self.free
            if not free:
                return None
            taken = {s.branch for s in self._all if s.conversation == conversation}
            number = next(n for n in count(1) if n not in taken)
            sequence = CacheSequence(free[0], conversation, parked=parked, branch=number)
            self._all.append(sequence)
        self.touch(sequence)
        return sequence

    def touch(self, sequence: CacheSequence) -> None:
        """Mark the sequence as used now."""
        self._clock += 1
        sequence.last_used, sequence.used_at = self._clock, time.monotonic()

    def release(self, sequence: CacheSequence) -> None:
        """Give the seq_id back. Its cells must be gone."""
        self._all.remove(sequence)

    def change_places(self, sequence: CacheSequence, parked: CacheSequence) -> None:
        """The conversation goes on in the cells of its parked branch, and what it had is parked: nothing is copied."""
        for field_name in ("seq_id", "branch", "tokens", "exact", "texts", "spans"):
            mine, theirs = getattr(sequence, field_name), getattr(parked, field_name)
            setattr(sequence, field_name, theirs)
            setattr(parked, field_name, mine)

    def put_back(self, sequences: Iterable[CacheSequence]) -> None:
        """Leases and tokens as they were at an earlier moment; `sequences` are copies made then."""
        self._all = [copy.copy(s) for s in sequences]
        for sequence in self._all:
            sequence.tokens = list(sequence.tokens)
            sequence.busy = False

    def leases(self) -> tuple[Lease, ...]:
        """Those that go on first."""
        going_on_first = sorted(self._all, key=lambda s: s.parked)
        return tuple(Lease(s.conversation, s.seq_id, s.parked, s.branch) for s in going_on_first)

    def __iter__(self) -> Iterator[CacheSequence]:
        return iter(tuple(self._all))
