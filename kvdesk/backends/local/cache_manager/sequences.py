"""Which conversation has which seq_id, and which tokens it holds. Bookkeeping only: no llama.cpp, no cells.

Everyone may read `CacheSequence` and `Sequences`. Only this package uses the mutable `LeasedSequence` and
`SequencePool`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Literal, NamedTuple, Protocol

from kvdesk.errors import RefusedCall
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import Lease, MessageSpan
from kvdesk.protocol.chat import Client
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

ALL_EXACT = 1 << 30
"""Value of `CacheSequence.exact` if no token was moved."""


class Acquired(NamedTuple):
    """The number of tokens at the beginning of a prompt that are now in the cache.

    source      where they came from, in words; "" for the sequence itself
    checkpoint  they came from a state that was saved to return to
    saved       where the saved state was; "": it was none
    held, texts if another sequence lent them: its tokens and texts (`set_texts`)
    """

    n_tokens: int
    source: str = ""
    checkpoint: bool = False
    held: Sequence[int] = ()
    texts: tuple[str, ...] = ()
    saved: Literal["", "memory", "disk"] = ""


class CacheSequence(Protocol):
    """The lease of a seq_id by a conversation, read-only: only the cache changes it.

    It protects the seq_id until it is released. While it is `busy` it also protects the cells: they are not evicted,
    and no sequence that shares them moves them. Cells of an idle lease stay only until the room is needed.

    tokens     tokens[i] is the token at position i, as llama.cpp holds it. The list itself, not a copy: it grows while
               an answer is written
    exact      leading tokens whose K and V are as a prefill computes them; later ones were moved to their position
    texts      fingerprints of the tools of the last turn, then of the texts of its messages: what has changed since
    spans      where those messages lie
    last_used  larger for sequences used later; used_at: time.monotonic() of that use
    busy       an answer is being written in it
    inactive   it holds another branch of the conversation, which continues in another sequence
    branch     number of its branch in the conversation, from 1 on
    client     the program that sent the request; None: a chat of kvdesk. sharing: as `Client.sharing`
    """

    @property
    def seq_id(self) -> int: ...
    @property
    def conversation(self) -> ConversationId: ...
    @property
    def tokens(self) -> Sequence[int]: ...
    @property
    def exact(self) -> int: ...
    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def spans(self) -> tuple[MessageSpan, ...]: ...
    @property
    def last_used(self) -> int: ...
    @property
    def used_at(self) -> float: ...
    @property
    def busy(self) -> bool: ...
    @property
    def inactive(self) -> bool: ...
    @property
    def client(self) -> Client | None: ...
    @property
    def sharing(self) -> str: ...


class Sequences(Protocol):
    """All leased sequences of a context, read-only."""

    def get(self, conversation: ConversationId) -> CacheSequence | None:
        """The sequence in which the conversation continues."""

    def by_seq(self, seq_id: int) -> CacheSequence | None:
        """The sequence with this seq_id; None if the seq_id is free."""

    def inactive_branches(self, conversation: ConversationId) -> Sequence[CacheSequence]:
        """The other branches of the conversation."""

    @property
    def free(self) -> tuple[int, ...]:
        """The seq_ids that are neither leased nor reserved, ascending."""

    def leases(self) -> tuple[Lease, ...]:
        """The leases as the window gets them; sequences in which a conversation continues come first."""

    def __iter__(self) -> Iterator[CacheSequence]: ...


@dataclass(slots=True, eq=False)
class LeasedSequence:
    """The mutable `CacheSequence`, which explains the attributes. n_last_prompt: tokens of the last prompt in it."""

    seq_id: int
    conversation: ConversationId
    tokens: list[int] = field(default_factory=list)
    exact: int = ALL_EXACT
    texts: tuple[str, ...] = ()
    spans: tuple[MessageSpan, ...] = ()
    last_used: int = 0
    used_at: float = 0.0
    busy: bool = False
    inactive: bool = False
    branch: int = 1
    client: Client | None = None
    n_last_prompt: int = 0

    @property
    def sharing(self) -> str:
        return self.client.sharing if self.client is not None else ""

    def copy(self) -> LeasedSequence:
        """A copy with its own list of tokens."""
        copied = copy.copy(self)
        copied.tokens = list(self.tokens)
        return copied


class SequencePool:
    """Leases seq_ids of `[0, n_seq_max)` to conversations, the lowest free one first. Readers see `Sequences`.

    A conversation has one sequence in which it continues, and any number of inactive branches. Never touches the cache:
    remove the cells of a sequence before you release it.
    """

    def __init__(self, n_seq_max: int) -> None:
        self._n = n_seq_max
        self._all: list[LeasedSequence] = []
        self._reserved: set[int] = set()
        self._clock = 0

    def get(self, conversation: ConversationId) -> LeasedSequence | None:
        return next((s for s in self._all if s.conversation == conversation and not s.inactive), None)

    def by_seq(self, seq_id: int) -> LeasedSequence | None:
        return next((s for s in self._all if s.seq_id == seq_id), None)

    def inactive_branches(self, conversation: ConversationId) -> list[LeasedSequence]:
        return [s for s in self._all if s.conversation == conversation and s.inactive]

    @property
    def free(self) -> tuple[int, ...]:
        taken = {s.seq_id for s in self._all} | self._reserved
        return tuple(s for s in range(self._n) if s not in taken)

    @contextmanager
    def reserved(self) -> Iterator[int]:
        """Reserve the lowest free seq_id for the block. Raises RefusedCall if none is free."""
        free = self.free
        if not free:
            raise RefusedCall(tr("No seq_id is free to compute in."))
        self._reserved.add(free[0])
        try:
            yield free[0]
        finally:
            self._reserved.discard(free[0])

    def leases(self) -> tuple[Lease, ...]:
        going_on_first = sorted(self._all, key=lambda s: s.inactive)
        return tuple(
            Lease(s.conversation, s.seq_id, s.inactive, s.branch, _last(s), s.client.name if s.client else "")
            for s in going_on_first
        )

    def __iter__(self) -> Iterator[LeasedSequence]:
        return iter(tuple(self._all))

    def lease(
        self,
        conversation: ConversationId,
        *,
        inactive: bool = False,
        client: Client | None = None,
        seq_id: int | None = None,
    ) -> LeasedSequence | None:
        """The conversation's sequence, or a free one; None if no seq_id is free. `inactive`: always a new one;
        `seq_id`: that one, if it is free.
        """
        sequence = None if inactive else self.get(conversation)
        if sequence is None:
            free = tuple(free for free in self.free if seq_id in (None, free))
            if not free:
                return None
            taken = {s.branch for s in self._all if s.conversation == conversation}
            number = next(n for n in count(1) if n not in taken)
            sequence = LeasedSequence(free[0], conversation, inactive=inactive, branch=number, client=client)
            self._all.append(sequence)
        self.touch(sequence)
        return sequence

    def touch(self, sequence: LeasedSequence) -> None:
        """Mark the sequence as used now."""
        self._clock += 1
        sequence.last_used, sequence.used_at = self._clock, time.monotonic()

    def release(self, sequence: LeasedSequence) -> None:
        """Free its seq_id."""
        self._all.remove(sequence)

    def exchange(self, sequence: LeasedSequence, inactive: LeasedSequence) -> None:
        """The conversation goes on in the cells of its inactive branch; those it had are the inactive ones now."""
        for name in ("seq_id", "branch", "tokens", "exact", "texts", "spans"):
            mine, theirs = getattr(sequence, name), getattr(inactive, name)
            setattr(sequence, name, theirs)
            setattr(inactive, name, mine)

    def rename(self, before: ConversationId, now: ConversationId, client: Client) -> None:
        """All sequences of one request are another request's from now on."""
        for sequence in self._all:
            if sequence.conversation == before:
                sequence.conversation, sequence.client = now, client

    def copies(self) -> tuple[LeasedSequence, ...]:
        """All leases as they are now, for `restore`."""
        return tuple(sequence.copy() for sequence in self._all)

    def restore(self, copies: Iterable[LeasedSequence]) -> None:
        """All leases as they were when `copies` were made. No answer is being written afterwards."""
        self._all = [sequence.copy() for sequence in copies]
        for sequence in self._all:
            sequence.busy = False


def _last(sequence: CacheSequence) -> MessageId | None:
    """The last message of which the sequence holds tokens."""
    n = len(sequence.tokens)
    return next((span.message for span in reversed(sequence.spans) if span.p0 < n), None)
