"""Everything that is known at one moment, and what can be read from it."""

from collections.abc import Mapping
from typing import Final

from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.snapshot import SequenceSpan
from kvdesk.chat import Conversation
from kvdesk.conversations.changes import QueueState
from kvdesk.errors import NO_TOKENIZER
from kvdesk.message import Attachment, ConversationId, MessageId, TurnStats
from kvdesk.protocol.cache import CacheView, ContextInfo, Lease, MessageSpan, MessageSpans, OperationDone
from kvdesk.protocol.chat import ContextUse
from kvdesk.protocol.features import MISSING, OF_ENGINE, Feature
from kvdesk.protocol.model import ModelInfo, ModelSource
from kvdesk.protocol.operations import Capability
from kvdesk.protocol.prompt import ToolPrice
from kvdesk.session.changed import Range, Served
from kvdesk.tools.servers import ServerState, Tool
from kvdesk.translation import tr
from kvdesk.values import dataclass, field
from kvdesk.viewmodel.cells.attention import Looking
from kvdesk.viewmodel.cells.readout import cells_of_owners, totals
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.palette import branch_index, request_index


@dataclass(frozen=True, slots=True)
class Target:
    """A sequence that can be operated on. `seq_id` is -1 for a conversation that is swapped out and has none.

    n_cells, pos_max  as the last cache view has them, 0 and -1 without cells; swapped_bytes: 0 if not swapped out
    """

    seq_id: int
    conversation: ConversationId | None
    title: str
    n_cells: int
    pos_max: int
    swapped_bytes: int = 0


MAX_LEASES: Final = 10_000
"""Changes of the leases that are kept for the timeline: each request of another program is one."""
Leases = Mapping[int, Lease]
"""The lease of every sequence in use, by seq_id."""


@dataclass(slots=True)
class History:
    """Of one context: the leases since each operation that changed them, and the operations by hand, by number."""

    leases: list[tuple[int, Leases]] = field(default_factory=list)
    effects: dict[int, OperationDone] = field(default_factory=dict)

    @property
    def last(self) -> Leases:
        """Those known last."""
        return self.leases[-1][1] if self.leases else {}

    def leases_at(self, operation: int) -> Leases:
        """The leases after operation number `operation`; the first known ones where those are later."""
        found: Leases = self.leases[0][1] if self.leases else {}
        for number, leases in self.leases:
            if number > operation:
                break
            found = leases
        return found


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A call that waits for a user: the names of server and tool, and the JSON text of the arguments."""

    server: str
    tool: str
    arguments: str


class State:
    """The fields are changed by `Store` alone."""

    def __init__(self) -> None:
        self.conversations: dict[ConversationId, Conversation] = {}  # by id, the one used last first
        self.selected: ConversationId | None = None  # the one that is shown
        self.answering: dict[MessageId, ConversationId] = {}  # every answer that is being written
        self.requests: set[ConversationId] = set()  # of those answered, other programs'
        self.model: ModelInfo | None = None
        self.loading: ModelSource | None = None  # the model that is being loaded, or the server that is asked
        self.context: ContextInfo | None = None
        self.view: CacheView | None = None
        self.leases: Leases = {}  # of the view
        self.sequences: Mapping[ConversationId, int] = {}  # of the view: in which each one goes on
        self.cells: dict[ConversationId, int] = {}  # of which something is known, as `use`
        self.use: dict[ConversationId, ContextUse] = {}  # by the branch that is shown
        self.written: dict[ConversationId, int] = {}  # the sequence of its answer that is, or was, written
        self.dead = False
        self.features: frozenset[Feature] = OF_ENGINE  # of the back end; all, until it says which
        self.limit = ""  # what its server could show of its cache and does not, and what helps
        self.possible: Mapping[str, Capability] = {}
        self.spans: dict[ConversationId, MessageSpans] = {}
        self.retention: dict[ConversationId, Mapping[MessageId, str]] = {}  # see `MessageRetention`
        self.history = History()
        self.turns: dict[ConversationId, TurnStats] = {}  # what the last answer of each one took
        self.past: tuple[Recording, History] | None = None  # the journal of the context before, until another model
        self.measured = Measurements()
        self.texts: dict[int, str] = {}  # of token ids that are known
        self.queues: Mapping[ConversationId, QueueState] = {}  # what the queue of each one waits for
        self.forks: Mapping[MessageId, tuple[MessageId, ...]] = {}  # shown messages with others at their place
        self.undeletable: set[ConversationId] = set()  # of which messages were deleted that can be restored
        self.messages_last = False  # messages were deleted after the last conversation that was
        self.deleted: tuple[str, ...] = ()  # titles of the conversations that can be restored, the last one at the end
        self.reading: Mapping[ConversationId, Mapping[int, str]] = {}  # files that are read, by number: their names
        self.encodings: Mapping[Attachment, str] = {}  # in which a file was read that can be read in another
        self.range: Range | None = None  # of positions that are selected, or chosen for an operation by hand
        self.attention = Looking()
        self.rebuilding = False  # another context is being made
        self.unsaved = ""  # what the disk does not take, as a sentence
        self.served = Served()
        self.tool_states: Mapping[str, ServerState] = {}  # by name; those that never ran are not among them
        self.tool_lists: Mapping[str, tuple[Tool, ...]] = {}  # what each server offered last
        self.tool_questions: Mapping[MessageId, ToolQuestion] = {}  # by the message of the result
        self.tool_prices: Mapping[str, ToolPrice] = {}  # of each server in a chat that has no other
        self.chat_prices: Mapping[str, ToolPrice] = {}  # of those that the shown chat has, in its prompt
        self.has_embedded = False  # the model that comes with kvdesk is installed
        self.is_toy = False  # that model is open

    @property
    def running(self) -> frozenset[ConversationId]:
        """The conversations that are being answered: each until its last answer has ended."""
        return frozenset(self.answering.values())

    @property
    def is_answering(self) -> bool:
        """Whether an answer is being written in the conversation that is shown."""
        return self.selected is not None and self.selected in self.running

    @property
    def shown(self) -> Conversation | None:
        """The conversation that is shown."""
        return self.conversations.get(self.selected) if self.selected is not None else None

    @property
    def idle(self) -> ConversationId | None:
        """The conversation that is shown; None while it is being answered."""
        return None if self.is_answering else self.selected

    @property
    def can_chat(self) -> bool:
        """Whether the model that is open, if one is, has text."""
        return self.model is None or self.model.has_text

    @property
    def why_not_answered(self) -> str:
        """Why no other answer can be asked for in the shown chat; "" if one can."""
        return self._why_none_answers or self.why_busy

    @property
    def why_busy(self) -> str:
        """Why nothing of the shown chat can be changed now; "" if no answer is being written in it."""
        return tr("An answer is being written; stop it first.") if self.is_answering else ""

    @property
    def why_not_continued(self) -> str:
        """Why no answer can be continued; "" if one can."""
        return self._why_none_answers or self.missing(Feature.CONTINUE)

    @property
    def _why_none_answers(self) -> str:
        if self.dead:
            return tr("The engine has stopped. Restart kvdesk.")
        return "" if self.can_chat else tr(NO_TOKENIZER)

    @property
    def turn(self) -> TurnStats | None:
        """What the last answer of the shown conversation took; None before the first."""
        return self.turns.get(self.selected) if self.selected is not None else None

    def missing(self, feature: Feature) -> str:
        """What to say if the back end does not have it; empty if it has."""
        return "" if feature in self.features else tr(MISSING[feature])

    @property
    def undoable(self) -> tuple[int, ...]:
        return self.view.undoable if self.view else ()

    def retention_of(self, conversation: ConversationId) -> Mapping[MessageId, str]:
        """How far its messages are from being evicted; before its first turn, those evicted in earlier runs."""
        known = self.conversations.get(conversation)
        stored = dict.fromkeys(known.evicted.messages, "evicted") if known is not None else {}
        return self.retention.get(conversation, stored)

    def title(self, conversation: ConversationId | None, seq_id: int) -> str:
        known = self.conversations.get(conversation) if conversation else None
        return (known.title or tr("New chat")) if known else tr("sequence {seq_id}").format(seq_id=seq_id)

    def looks(self, leases: Leases) -> tuple[dict[int, int], dict[int, str]]:
        """Colours (`palette.branch_index`) and titles of sequences, for a map. What other programs hold, and in the
        cache of another kvdesk its chats, have the colours of their sequences.
        """
        known = {seq: lease for seq, lease in leases.items() if lease.conversation in self.conversations}
        colours = {s: branch_index(self.conversations[of.conversation].colour, of.branch) for s, of in known.items()}
        is_far = self.view is not None and bool(self.view.snapshot.verification.by)
        others = {
            seq: request_index(seq) for seq, lease in leases.items() if lease.client or (is_far and seq not in known)
        }
        return colours | others, {seq: self.title_in(leases, seq) for seq in (*known, *others)}

    def title_in(self, leases: Leases, seq_id: int) -> str:
        """Title of the conversation or request that has the sequence; with its seq_id where the conversation has
        several, which are not numbered as the chat numbers its branches, or the program has several requests.
        """
        lease = leases.get(seq_id)
        if lease is not None and lease.client:
            title = tr("request of {program}").format(program=lease.client)
            several = sum(other.client == lease.client for other in leases.values()) > 1
        else:
            title = self.title(lease.conversation if lease else None, seq_id)
            several = branch_of(leases, seq_id) > 0
        return tr("{title}, sequence {seq_id}").format(title=title, seq_id=seq_id) if several else title

    def title_after(self, done: OperationDone, seq_id: int) -> str:
        """Title of a sequence after an operation; that of the operation's own conversation where the sequence came with
        it, so that no lease tells yet who has it. A context made in place of another has its sequences.
        """
        history, own = self.history, done.conversation
        if not history.leases and self.past is not None:
            history = self.past[1]
        leases = history.leases_at(done.operation) if history is self.history else history.last
        if own is not None and seq_id not in leases and all(lease.conversation != own for lease in leases.values()):
            return self.title(own, seq_id)
        return self.title_in(leases, seq_id)

    def held(self) -> list[tuple[str, int]]:
        """Title and cells of every conversation and request in the cache, with all its branches, by seq_id. A cell that
        several of them share counts for each.
        """
        if self.view is None:
            return []
        cells, found = cells_of_owners(self.view), {}
        for seq_id, lease in sorted(self.leases.items()):
            if lease.conversation in cells and lease.conversation not in found:
                title = self.title_in(self.leases, seq_id) if lease.client else self.title(lease.conversation, seq_id)
                found[lease.conversation] = title, cells[lease.conversation]
        return list(found.values())

    @property
    def n_cells(self) -> int:
        """Cells in use in the view, whoever has them."""
        return totals(self.view.snapshot).used if self.view is not None else 0

    def branches(self) -> dict[ConversationId, tuple[int, ...]]:
        """Numbers of the branches in the cache, ascending, of every conversation that has several there."""
        found: dict[ConversationId, list[int]] = {}
        for lease in self.leases.values():
            found.setdefault(lease.conversation, []).append(lease.branch)
        return {name: tuple(sorted(numbers)) for name, numbers in found.items() if len(numbers) > 1}

    def branch_ends(self, conversation: ConversationId | None) -> dict[MessageId, tuple[int, int]] | None:
        """The branches of a conversation in the cache: the last message of each, its number, and its seq_id. None while
        no views come, so that nobody knows.
        """
        if self.view is None:
            return None
        leases = ((seq, lease) for seq, lease in self.leases.items() if lease.conversation == conversation)
        return {lease.last: (lease.branch, seq) for seq, lease in leases if lease.last is not None}

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
        """The sequence in which a conversation continues; None if it has none and is not swapped out."""
        if conversation is None:
            return None
        seq_id = self.sequences.get(conversation, -1)
        return next((t for t in self.targets() if (t.conversation, t.seq_id) == (conversation, seq_id)), None)

    @property
    def spot_span(self) -> SequenceSpan | None:
        """The sequence of the token that is looked from: that of the shown conversation unless another was chosen. None
        if it has no cells.
        """
        own = self.sequences.get(self.selected, -1) if self.selected is not None else -1
        seq_id = own if self.attention.spot is None else self.attention.spot.seq_id
        spans = self.view.snapshot.sequences if self.view is not None else ()
        return next((span for span in spans if span.seq_id == seq_id and span.n_cells), None)

    @property
    def spot_pos(self) -> int:
        """The position of that token: the last one unless another was chosen. -1: none."""
        span, spot = self.spot_span, self.attention.spot
        if span is None:
            return -1
        return span.pos_max if spot is None else min(spot.pos, span.pos_max)

    def spans_in(self, seq_id: int) -> MessageSpans | None:
        """The messages of a sequence, as far as they are known."""
        return next((spans for spans in self.spans.values() if spans.seq_id == seq_id), None)

    def span_of(self, conversation: ConversationId, message: MessageId) -> MessageSpan | None:
        """Where a message is in its sequence; None while it is not known."""
        spans = self.spans.get(conversation)
        return next((span for span in spans.spans if span.message == message), None) if spans else None

    def tool_spans(self) -> dict[int, tuple[tuple[str, int, int], ...]]:
        """Where the schemas of servers are in the sequence of the shown conversation, by seq_id: name, p0, p1."""
        seq_id = self.sequences.get(self.selected, -1) if self.selected is not None else -1
        prices = sorted(self.chat_prices.values(), key=lambda price: price.p0)
        return {seq_id: tuple((one.server, one.p0, one.p1) for one in prices)} if prices and seq_id >= 0 else {}

    def answer(self, operation: str) -> tuple[bool, str]:
        """Whether this model and context allow an operation (named as in the capability matrix), and the sentence to
        show with it: why not, or what is lost; empty if there is nothing to say."""
        row = self.possible.get(operation)
        if row is None:
            return True, ""
        return row.allowed, row.why if row.answer != "yes" else ""


def branch_of(leases: Leases, seq_id: int) -> int:
    """Number of the branch; 0 if the conversation has no other in the cache, or the sequence has no owner."""
    lease = leases.get(seq_id)
    if lease is None or sum(other.conversation == lease.conversation for other in leases.values()) < 2:
        return 0
    return lease.branch
