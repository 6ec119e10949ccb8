"""Which conversation has which seq_id, and which tokens that sequence holds. No llama.cpp, no cells: bookkeeping."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kvdesk.chat import ConversationId
from kvdesk.messages import Lease
from kvdesk.operations import MessageSpan


@dataclass(slots=True, eq=False)
class Sequence:
    """A leased seq_id. `tokens[i]` is the token at position i: exactly what the engine holds for the sequence.

    `texts` are the messages of the last turn, to see which was changed since; `spans`: where they lie.
    """

    seq_id: int
    conversation: ConversationId
    tokens: list[int] = field(default_factory=list)
    texts: tuple[str, ...] = ()
    spans: tuple[MessageSpan, ...] = ()
    last_used: int = 0
    busy: bool = False


class SequencePool:
    """Leases seq_ids of `[0, n_seq_max)` to conversations, the lowest free one first.

    Never touches the cache: whoever takes a lease away removes the cells first.
    """

    def __init__(self, n_seq_max: int) -> None:
        self._free = list(range(n_seq_max))
        self._leased: dict[ConversationId, Sequence] = {}
        self._clock = 0

    def get(self, conversation: ConversationId) -> Sequence | None:
        return self._leased.get(conversation)

    def by_seq(self, seq_id: int) -> Sequence | None:
        """Who has this seq_id; None when nobody has."""
        return next((s for s in self._leased.values() if s.seq_id == seq_id), None)

    @property
    def free(self) -> tuple[int, ...]:
        """The seq_ids nobody has, ascending."""
        return tuple(self._free)

    def lease(self, conversation: ConversationId) -> Sequence | None:
        """The conversation's sequence, a free one, or None when another must yield first."""
        sequence = self._leased.get(conversation)
        if sequence is None:
            if not self._free:
                return None
            sequence = self._leased[conversation] = Sequence(self._free.pop(0), conversation)
        self.touch(sequence)
        return sequence

    def touch(self, sequence: Sequence) -> None:
        """Mark the sequence as used now."""
        self._clock += 1
        sequence.last_used = self._clock

    def release(self, sequence: Sequence) -> None:
        """Give the seq_id back. Its cells must be gone."""
        del self._leased[sequence.conversation]
        self._free.append(sequence.seq_id)
        self._free.sort()

    def least_recent_idle(self, *, holding_cells: bool) -> Sequence | None:
        """The idle sequence that was used longest ago; with `holding_cells` only one that would free any."""
        idle = [s for s in self._leased.values() if not s.busy and (s.tokens or not holding_cells)]
        return min(idle, key=lambda s: s.last_used, default=None)

    def put_back(self, sequences: Iterable[Sequence]) -> None:
        """Leases and tokens as they were at an earlier moment; `sequences` are copies made then."""
        n_seq_max = len(self._free) + len(self._leased)
        self._leased = {s.conversation: copy.copy(s) for s in sequences}
        taken = {s.seq_id for s in self._leased.values()}
        self._free = [s for s in range(n_seq_max) if s not in taken]
        for sequence in self._leased.values():
            sequence.tokens = list(sequence.tokens)
            sequence.busy = False

    def leases(self) -> tuple[Lease, ...]:
        return tuple(Lease(s.conversation, s.seq_id) for s in self._leased.values())

    def __iter__(self) -> Iterator[Sequence]:
        return iter(tuple(self._leased.values()))
