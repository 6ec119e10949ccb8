"""What the window knows of the cache and of who owns what in it: read by every panel, written by `EventView` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvdesk.chat import Conversation, ConversationId, MessageId
from kvdesk.messages import CacheView, ContextInfo, OperationDone
from kvdesk.operations import Capability, MessageSpan, MessageSpans


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


@dataclass(slots=True)
class History:
    """Of one context: who had which sequence since which operation, and what operations by hand did, by number."""

    leases: list[tuple[int, Mapping[int, ConversationId]]] = field(default_factory=list)
    effects: dict[int, OperationDone] = field(default_factory=dict)

    def leases_at(self, operation: int) -> Mapping[int, ConversationId]:
        """Who had which sequence after operation number `operation`; the first that is known where that is later."""
        found: Mapping[int, ConversationId] = self.leases[0][1] if self.leases else {}
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
    owners: Mapping[int, ConversationId] = field(default_factory=dict)  # of the view, by seq_id
    sequences: Mapping[ConversationId, int] = field(default_factory=dict)  # of the view: in which each one goes on
    dead: bool = False
    possible: Mapping[str, Capability] = field(default_factory=dict)
    spans: dict[ConversationId, MessageSpans] = field(default_factory=dict)
    shades: dict[ConversationId, Mapping[MessageId, str]] = field(default_factory=dict)  # `operations.Shades`
    history: History = field(default_factory=History)

    @property
    def undoable(self) -> tuple[int, ...]:
        return self.view.undoable if self.view else ()

    def shades_of(self, conversation: ConversationId) -> Mapping[MessageId, str]:
        """How its messages are shown; before its first turn, those that had left by the end of the last run."""
        known = self.conversations.get(conversation)
        stored = dict.fromkeys(known.left.messages, "gone") if known is not None else {}
        return self.shades.get(conversation, stored)

    def forget_context(self) -> None:
        """A new context: nothing that was known of the cells is true any more."""
        self.view = None
        self.owners, self.sequences = {}, {}
        self.history = History()
        self.spans.clear()
        self.shades.clear()

    def show_view(self, view: CacheView) -> None:
        """Remember a view, and who had which sequence since when."""
        self.view = view
        owners = {int(lease.seq_id): lease.conversation for lease in view.leases}
        if owners != self.owners or not self.history.leases:
            self.owners = owners
            self.history.leases.append((view.snapshot.operation, owners))
        self.sequences = {lease.conversation: int(lease.seq_id) for lease in view.leases if not lease.parked}

    def title(self, conversation: ConversationId | None, seq_id: int) -> str:
        known = self.conversations.get(conversation) if conversation else None
        return (known.title or "New chat") if known else f"sequence {seq_id}"

    def looks(self, leases: Mapping[int, ConversationId]) -> tuple[dict[int, int], dict[int, str]]:
        """Colours and titles of sequences, for a map."""
        known = {seq: self.conversations[name] for seq, name in leases.items() if name in self.conversations}
        return {seq: c.colour for seq, c in known.items()}, {seq: c.title for seq, c in known.items()}

    def targets(self) -> tuple[Target, ...]:
        """All sequences with cells or an owner, by seq_id, then conversations that are swapped out."""
        if self.view is None:
            return ()
        saved = {self.sequences.get(name, -1): size for name, size in self.view.swapped}
        owners = dict(self.owners)
        found = []
        for span in self.view.snapshot.sequences:
            seq_id = int(span.seq_id)
            owner = owners.pop(seq_id, None)
            if span.n_cells or owner:
                title = self.title(owner, seq_id)
                found.append(Target(seq_id, owner, title, span.n_cells, span.pos_max, saved.get(seq_id, 0)))
        for seq_id, owner in owners.items():
            found.append(Target(seq_id, owner, self.title(owner, seq_id), 0, -1, saved.get(seq_id, 0)))
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
