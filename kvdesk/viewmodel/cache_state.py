"""What the window knows of the cache and of who owns what in it: read by every panel, written by `EventRouter` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvdesk.chat import Conversation, ConversationId, MessageId
from kvdesk.protocol.cache import CacheView, ContextInfo, Lease, MessageSpan, MessageSpans, OperationDone
from kvdesk.protocol.operations import Capability
from kvdesk.viewmodel.palette import branch_index


@dataclass(frozen=True, slots=True)
class Target:
    """A sequence that can be operated on. `seq_id` is -1 for a conversation that is swapped out and has none.

    n_cells, pos_max  as the last cache view has them, 0 and -1 without cells; swapped_bytes: 0 where not swapped out
    """

    seq_id: int
    conversation: ConversationId | None
    title: str
    n_cells: int
    pos_max: int
    swapped_bytes: int = 0


Leases = Mapping[int, Lease]
"""Who has which sequence, by seq_id."""


@dataclass(slots=True)
class History:
    """Of one context: who had which sequence since which operation, and what operations by hand did, by number."""

    leases: list[tuple[int, Leases]] = field(default_factory=list)
    effects: dict[int, OperationDone] = field(default_factory=dict)

    def leases_at(self, operation: int) -> Leases:
        """Who had which sequence after operation number `operation`; the first that is known where that is later."""
        found: Leases = self.leases[0][1] if self.leases else {}
        for number, leases in self.leases:
            if number > operation:
                break
            found = leases
        return found


@dataclass(slots=True)
class CacheState:
    """Everything at this moment."""

    conversations: Mapping[ConversationId, Conversation] = field(default_factory=dict)
    selected: ConversationId | None = None
    running: frozenset[ConversationId] = frozenset()
    context: ContextInfo | None = None
    view: CacheView | None = None
    leases: Leases = field(default_factory=dict)  # of the view
    sequences: Mapping[ConversationId, int] = field(default_factory=dict)  # of the view: in which each one goes on
    dead: bool = False
    possible: Mapping[str, Capability] = field(default_factory=dict)
    spans: dict[ConversationId, MessageSpans] = field(default_factory=dict)
    shades: dict[ConversationId, Mapping[MessageId, str]] = field(default_factory=dict)  # `operations.MessageRetention`
    history: History = field(default_factory=History)

    @property
    def undoable(self) -> tuple[int, ...]:
        return self.view.undoable if self.view else ()

    def shades_of(self, conversation: ConversationId) -> Mapping[MessageId, str]:
        """How its messages are shown; before its first turn, those that were evicted before the end of the last run."""
        known = self.conversations.get(conversation)
        stored = dict.fromkeys(known.evicted.messages, "gone") if known is not None else {}
        return self.shades.get(conversation, stored)

    def forget_context(self) -> None:
        """A new context: nothing that was known of the cells is true any more."""
        self.view = None
        self.leases, self.sequences = {}, {}
        self.history = History()
        self.spans.clear()
        self.shades.clear()

    def show_view(self, view: CacheView) -> None:
        """Remember a view, and who had which sequence since when."""
        self.view = view
        leases = {int(lease.seq_id): lease for lease in view.leases}
        if leases != self.leases or not self.history.leases:
            self.leases = leases
            self.history.leases.append((view.snapshot.operation, leases))
        self.sequences = {lease.conversation: int(lease.seq_id) for lease in view.leases if not lease.parked}

    def title(self, conversation: ConversationId | None, seq_id: int) -> str:
        known = self.conversations.get(conversation) if conversation else None
        return (known.title or "New chat") if known else f"sequence {seq_id}"

    def looks(self, leases: Leases) -> tuple[dict[int, int], dict[int, str]]:
        """Colours (`palette.branch_index`) and titles of sequences, for a map."""
        known = {seq: lease for seq, lease in leases.items() if lease.conversation in self.conversations}
        colours = {s: branch_index(self.conversations[of.conversation].colour, of.branch) for s, of in known.items()}
        return colours, {seq: self.title_in(leases, seq) for seq in known}

    def title_in(self, leases: Leases, seq_id: int) -> str:
        """Title of the conversation that has the sequence, and which branch of it where several are in the cache."""
        lease = leases.get(seq_id)
        title = self.title(lease.conversation if lease else None, seq_id)
        branch = branch_of(leases, seq_id)
        return f"{title}, branch {branch}" if branch else title

    def held(self) -> list[tuple[str, int]]:
        """Title and tokens of every conversation that goes on in the cache, by seq_id."""
        going_on = {seq_id: name for name, seq_id in self.sequences.items()}
        found = ((t, going_on.get(t.seq_id)) for t in self.targets() if t.n_cells)
        return [(self.title(name, t.seq_id), t.pos_max + 1) for t, name in found if name is not None]

    def branches(self) -> dict[ConversationId, tuple[int, ...]]:
        """Numbers of the branches in the cache, ascending, of every conversation that has several there."""
        found: dict[ConversationId, list[int]] = {}
        for lease in self.leases.values():
            found.setdefault(lease.conversation, []).append(lease.branch)
        return {name: tuple(sorted(numbers)) for name, numbers in found.items() if len(numbers) > 1}

    def targets(self) -> tuple[Target, ...]:
        """All sequences with cells or an owner, by seq_id, then conversations that are swapped out."""
        if self.view is None:
            return ()
        saved = {self.sequences.get(name, -1): size for name, size in self.view.swapped}
        owners = {seq: lease.conversation for seq, lease in self.leases.items()}
        found = []
        for span in self.view.snapshot.sequences:
            seq_id = int(span.seq_id)
            owner = owners.pop(seq_id, None)
            if span.n_cells or owner:
                title = self.title_in(self.leases, seq_id)
                found.append(Target(seq_id, owner, title, span.n_cells, span.pos_max, saved.get(seq_id, 0)))
        for seq_id, owner in owners.items():
            found.append(Target(seq_id, owner, self.title_in(self.leases, seq_id), 0, -1, saved.get(seq_id, 0)))
        found.sort(key=lambda target: target.seq_id)
        gone = ((name, size) for name, size in self.view.swapped if name not in self.sequences)
        return (*found, *(Target(-1, name, self.title(name, -1), 0, -1, size) for name, size in gone))

    def target_of(self, conversation: ConversationId | None) -> Target | None:
        """The sequence in which a conversation goes on, None where it has none and is not swapped out."""
        if conversation is None:
            return None
        seq_id = self.sequences.get(conversation, -1)
        return next((t for t in self.targets() if (t.conversation, t.seq_id) == (conversation, seq_id)), None)

    def span_of(self, conversation: ConversationId, message: MessageId) -> MessageSpan | None:
        """Where a message lies in its sequence, None where nobody has said so yet."""
        spans = self.spans.get(conversation)
        return next((span for span in spans.spans if span.message == message), None) if spans else None

    def answer(self, operation: str) -> tuple[bool, str]:
        """Whether this model and context allow an operation (named as in the capability matrix), and the sentence to
        show with it: why not, or what is lost; empty where there is nothing to say."""
        row = self.possible.get(operation)
        if row is None:
            return True, ""
        return row.allowed, row.why if row.answer != "yes" else ""


def branch_of(leases: Leases, seq_id: int) -> int:
    """Number of the branch; 0 where the conversation has no other in the cache, or nobody has the sequence."""
    lease = leases.get(seq_id)
    if lease is None or sum(other.conversation == lease.conversation for other in leases.values()) < 2:
        return 0
    return lease.branch
