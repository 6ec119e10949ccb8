"""The state of the window, without Qt: conversations, the context, its cells and the sequences of each conversation.

`CacheState` alone changes it: by `apply` for events of the engine, by its other methods for what the person or the
application does. Everything else reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Flag, auto
from typing import Final

from kvdesk.chat import Conversation, ConversationId, Message, MessageId, TurnStats
from kvdesk.protocol.cache import (
    CacheView,
    ContextInfo,
    ContextReady,
    Lease,
    MessageSpan,
    MessageSpans,
    OperationDone,
)
from kvdesk.protocol.chat import (
    BackendReady,
    ContextUse,
    EngineDied,
    EngineRestarted,
    Generate,
    MessageRetention,
    ModelInfo,
    ModelLoaded,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from kvdesk.protocol.features import MISSING, OF_ENGINE, Feature
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.operations import Capability
from kvdesk.translation import tr
from kvdesk.values import dataclass, field, replace
from kvdesk.viewmodel.palette import branch_index, request_index
from kvdesk.viewmodel.readout import cells_of_owners, totals

MAX_EFFECTS: Final = 256
"""Operations by hand whose effects are kept for the timeline; the oldest go first."""


class Changed(Flag):
    """The parts of the state that an event changed."""

    NOTHING = 0
    SELECTED = auto()  # which conversation is shown
    RUNNING = auto()  # which conversations are being answered
    FEATURES = auto()  # what the back end has
    MODEL = auto()
    CONTEXT = auto()  # another context, or none
    VIEW = auto()  # the cells
    CELLS = auto()  # how many cells each conversation holds
    USE = auto()  # how full the context of a conversation is
    GROWTH = auto()  # the same, by the tokens of an answer: many times a second
    SPANS = auto()  # where the messages of a conversation lie
    RETENTION = auto()  # which messages are near the end of the context, or evicted
    EFFECTS = auto()  # what operations by hand did
    DEAD = auto()  # the engine has stopped for good


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


MAX_LEASES: Final = 10_000
"""Changes of the leases that are kept for the timeline: each request of another program is one."""
Leases = Mapping[int, Lease]
"""The lease of every sequence in use, by seq_id."""


@dataclass(slots=True)
class History:
    """Of one context: the leases since each operation that changed them, and the operations by hand, by number."""

    leases: list[tuple[int, Leases]] = field(default_factory=list)
    effects: dict[int, OperationDone] = field(default_factory=dict)

    def leases_at(self, operation: int) -> Leases:
        """The leases after operation number `operation`; the first known ones where those are later."""
        found: Leases = self.leases[0][1] if self.leases else {}
        for number, leases in self.leases:
            if number > operation:
                break
            found = leases
        return found


@dataclass(slots=True)
class CacheState:
    """Everything at this moment. `cells` and `use` hold conversations of which something is known."""

    conversations: Mapping[ConversationId, Conversation] = field(default_factory=dict)
    selected: ConversationId | None = None
    answering: dict[MessageId, ConversationId] = field(default_factory=dict)  # every answer that is being written
    requests: set[ConversationId] = field(default_factory=set)  # of those answered, other programs'
    model: ModelInfo | None = None
    context: ContextInfo | None = None
    view: CacheView | None = None
    leases: Leases = field(default_factory=dict)  # of the view
    sequences: Mapping[ConversationId, int] = field(default_factory=dict)  # of the view: in which each one goes on
    cells: dict[ConversationId, int] = field(default_factory=dict)
    use: dict[ConversationId, ContextUse] = field(default_factory=dict)  # by the branch that is shown
    written: dict[ConversationId, int] = field(
        default_factory=dict
    )  # the sequence of its answer that is, or was, written
    dead: bool = False
    features: frozenset[Feature] = OF_ENGINE  # of the back end; all, until it says which
    limit: str = ""  # what its server could show of its cache and does not, and what helps
    possible: Mapping[str, Capability] = field(default_factory=dict)
    spans: dict[ConversationId, MessageSpans] = field(default_factory=dict)
    retention: dict[ConversationId, Mapping[MessageId, str]] = field(default_factory=dict)  # see `MessageRetention`
    history: History = field(default_factory=History)
    turns: dict[ConversationId, TurnStats] = field(default_factory=dict)  # what the last answer of each one took

    # --- changes --------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Changed:
        """Take an event of the engine over; the parts that it changed."""
        match event:
            case TextDelta() | ContextUse() | MessageSpans():
                return self._apply_use(event)
            case CacheView():
                self._set_view(event)
                return Changed.VIEW
            case OperationDone():
                return self._apply_operation(event)
            case TurnStarted():
                self.answering[event.answer] = event.conversation
                if event.client:
                    self.requests.add(event.conversation)
                    return Changed.RUNNING
                if not self._is_shown(event.conversation, event.answer):
                    return Changed.RUNNING
                self.written[event.conversation] = event.seq_id
                return Changed.RUNNING | self._use(event.conversation, event.prompt_tokens)
            case TurnEnded():
                return self._end_answer(event.answer) | self._count_turn(event)
            case MessageRetention():
                self.retention[event.conversation] = dict(event.retention)
                return Changed.RETENTION
            case CommandFailed(command=Generate() as command):
                return self._end_answer(command.answer)
            case ModelLoaded() | ContextReady() | EngineRestarted() | EngineDied():
                return self._apply_engine(event)
            case BackendReady():
                return self._apply_features(event.features)
            case _:
                return Changed.NOTHING

    def show_conversations(
        self, conversations: Mapping[ConversationId, Conversation], selected: ConversationId | None
    ) -> Changed:
        """The conversations there are, and the one that is shown; None where `selected` is none of them."""
        before = self.selected
        self.conversations = conversations
        self.selected = selected if selected in conversations else None
        return Changed.SELECTED if selected != before else Changed.NOTHING

    def take_messages(self, messages: Iterable[Message]) -> Changed:
        """Messages as the conversations have them: those that stream are being written, the others are not. Answers
        that are not among them go on.
        """
        before = dict(self.answering)
        for message in messages:
            if message.stats is not None and message.stats.prompt_tokens:
                self.turns[message.conversation] = message.stats
            if message.state == "streaming":
                self.answering[message.id] = message.conversation
            else:
                self.answering.pop(message.id, None)
        return Changed.RUNNING if self.answering != before else Changed.NOTHING

    def forget_view(self) -> Changed:
        """No views will come: what the conversations hold is known from their turns from now on."""
        self.view = None
        return Changed.VIEW

    def count_cells(self) -> Changed:
        """Count the cells of every conversation in the view; that costs more than a view may."""
        if self.view is None:
            return Changed.NOTHING
        self.cells = cells_of_owners(self.view)
        return Changed.CELLS

    def _set_view(self, view: CacheView) -> None:
        self.view = view
        leases = {int(lease.seq_id): lease for lease in view.leases}
        if leases != self.leases or not self.history.leases:
            self.leases = leases
            self.history.leases.append((view.snapshot.operation, leases))
            if len(self.history.leases) > MAX_LEASES:
                del self.history.leases[: MAX_LEASES // 10]
        self.sequences = {lease.conversation: int(lease.seq_id) for lease in view.leases if not lease.inactive}

    def _end_answer(self, answer: MessageId) -> Changed:
        self.answering.pop(answer, None)
        return Changed.RUNNING

    def _apply_use(self, event: TextDelta | ContextUse | MessageSpans) -> Changed:
        """While the branch that is shown is answered, its use follows that answer, not what was counted before it.

        Other answers to the same question count nothing.
        """
        name = event.conversation
        match event:
            case TextDelta():
                known = self.use.get(name)
                if known is None or not self._is_shown(name, event.answer):
                    return Changed.NOTHING
                return Changed.GROWTH if self._use(name, known.n_tokens + len(event.tokens)) else Changed.NOTHING
            case ContextUse():
                if event.last is not None and not self._is_shown(name, event.last):
                    return Changed.NOTHING
                if any(name == of and self._is_shown(name, answer) for answer, of in self.answering.items()):
                    return Changed.NOTHING
                self.use[name] = event
                return Changed.USE
            case MessageSpans():
                if name in self.running and self.written.get(name, event.seq_id) != event.seq_id:
                    return Changed.NOTHING
                self.spans[name] = event
                is_counted = bool(event.spans) and name in self.running
                return Changed.SPANS | (self._use(name, event.spans[-1].p1) if is_counted else Changed.NOTHING)

    def _is_shown(self, conversation: ConversationId, answer: MessageId) -> bool:
        """Whether an answer is the last message of the branch that is shown, as far as that is known."""
        known = self.conversations.get(conversation)
        return known is None or known.leaf is None or known.leaf == answer

    def _apply_features(self, features: frozenset[Feature]) -> Changed:
        """Another back end has no context of the one before."""
        lost = self.features != features and Feature.CACHE_VIEW not in features
        self.features = features
        if not lost:
            return Changed.FEATURES
        self.context, self.view = None, None
        self.leases, self.sequences = {}, {}
        self.use.clear()
        self.written.clear()
        self.cells.clear()
        return Changed.FEATURES | Changed.CONTEXT | Changed.CELLS | Changed.VIEW | Changed.USE

    def _apply_engine(self, event: ModelLoaded | ContextReady | EngineRestarted | EngineDied) -> Changed:
        """A model, a context, or the end of them. The history of a lost context can be read until the next is made."""
        match event:
            case ModelLoaded():
                self.model, self.limit = event.model, event.limit
                return Changed.MODEL
            case EngineDied():
                self.dead, self.model = True, None
                self.answering.clear()
                return Changed.DEAD | Changed.RUNNING | Changed.MODEL
            case EngineRestarted():
                self.context = None
            case ContextReady():
                self.context = event.context
                self.possible = {row.operation: row for row in event.possible}
                self.leases, self.sequences, self.history = {}, {}, History()
                self.spans.clear()
                self.retention.clear()
        self.view = None
        self.use.clear()
        self.written.clear()
        self.cells.clear()
        return Changed.CONTEXT | Changed.CELLS | Changed.VIEW

    def _apply_operation(self, done: OperationDone) -> Changed:
        """Remember the effect of one by hand. Without views it alone tells which sequences hold nothing any more."""
        changed = Changed.NOTHING
        if done.effect is not None:
            effects = self.history.effects
            effects[done.operation] = done
            while len(effects) > MAX_EFFECTS:
                del effects[next(iter(effects))]
            changed |= Changed.EFFECTS
        if self.view is None and done.emptied:
            for name in [done.conversation] if done.conversation else list(self.cells):
                self.cells.pop(name, None)
            changed |= Changed.CELLS
        return changed

    def _use(self, conversation: ConversationId, n_tokens: int) -> Changed:
        """While it is answered a conversation is in the cache as far as it goes."""
        if self.context is None:
            return Changed.NOTHING
        known = self.use.get(conversation, ContextUse(conversation, 0, 0, 0))
        self.use[conversation] = replace(known, n_tokens=n_tokens, n_cached=n_tokens, n_ctx=self.context.n_ctx_seq)
        return Changed.USE

    def _count_turn(self, event: TurnEnded) -> Changed:
        """Without views: a conversation holds what the turn took, and the cells that no other one is known to hold."""
        name, stats = event.conversation, event.stats
        if stats.prompt_tokens:
            self.turns[name] = stats
        is_request = name in self.requests  # it has no row
        self.requests.discard(name)
        if self.view is not None or self.context is None or is_request:
            return Changed.NOTHING
        if stats.prompt_tokens:
            held = stats.prompt_tokens + stats.generated_tokens
            if not self.running - {name}:
                held = max(held, stats.cells_used - sum(n for other, n in self.cells.items() if other != name))
            self.cells[name] = held
        return Changed.CELLS

    # --- readings -------------------------------------------------------------------------------------------------

    @property
    def running(self) -> frozenset[ConversationId]:
        """The conversations that are being answered: each until its last answer has ended."""
        return frozenset(self.answering.values())

    @property
    def turn(self) -> TurnStats | None:
        """What the last answer of the shown conversation took; None before the first."""
        return self.turns.get(self.selected) if self.selected is not None else None

    def missing(self, feature: Feature) -> str:
        """What to say where the back end does not have it; empty where it has."""
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
        """Colours (`palette.branch_index`) and titles of sequences, for a map."""
        known = {seq: lease for seq, lease in leases.items() if lease.conversation in self.conversations}
        colours = {s: branch_index(self.conversations[of.conversation].colour, of.branch) for s, of in known.items()}
        requests = {seq: request_index(seq) for seq, lease in leases.items() if lease.client}
        return colours | requests, {seq: self.title_in(leases, seq) for seq in (*known, *requests)}

    def title_in(self, leases: Leases, seq_id: int) -> str:
        """Title of the conversation that has the sequence; with its seq_id where the conversation has several, which
        are not numbered as the chat numbers its branches.
        """
        lease = leases.get(seq_id)
        if lease is not None and lease.client:
            return tr("request of {program}").format(program=lease.client)
        title = self.title(lease.conversation if lease else None, seq_id)
        return (
            tr("{title}, sequence {seq_id}").format(title=title, seq_id=seq_id) if branch_of(leases, seq_id) else title
        )

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
        """The sequence in which a conversation goes on, None where it has none and is not swapped out."""
        if conversation is None:
            return None
        seq_id = self.sequences.get(conversation, -1)
        return next((t for t in self.targets() if (t.conversation, t.seq_id) == (conversation, seq_id)), None)

    def span_of(self, conversation: ConversationId, message: MessageId) -> MessageSpan | None:
        """Where a message lies in its sequence, None while it is not known."""
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
    """Number of the branch; 0 where the conversation has no other in the cache, or the sequence has no owner."""
    lease = leases.get(seq_id)
    if lease is None or sum(other.conversation == lease.conversation for other in leases.values()) < 2:
        return 0
    return lease.branch
