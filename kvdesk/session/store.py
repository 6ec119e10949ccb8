"""The state of one run, without Qt: settings, selection, conversations, model, requests, cells and measurements."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

from kvdesk.chat import Conversation
from kvdesk.conversations import changes
from kvdesk.errors import KvdeskError, guarded
from kvdesk.message import Attachment, ConversationId, Message, MessageId
from kvdesk.protocol import cache, chat
from kvdesk.protocol.attention import Attend, Attended, AttentionPreview
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.operations import Operate
from kvdesk.protocol.prompt import ToolPrice
from kvdesk.session.changed import MEASURED, OFTEN, Changed, MessageChange, Notice, Problem, Range, Served, Tone, Update
from kvdesk.session.settings_store import Save, SettingsStore
from kvdesk.session.state import MAX_LEASES, History, State, ToolQuestion
from kvdesk.settings import Settings
from kvdesk.tools.servers import ServerState, Tool
from kvdesk.values import replace
from kvdesk.viewmodel.cells.attention import Looking
from kvdesk.viewmodel.cells.readout import cells_of_owners

_COUNT_S: Final = 0.2  # from one count of cells to the next while an answer is written
MAX_EFFECTS: Final = 256
"""Operations by hand whose effects are kept for the timeline; the oldest go first."""


Listener: TypeAlias = Callable[[Changed, Update | None], None]
"""Called with what has changed, and what came if something did; it reads the rest from the store."""


class Store(State):
    """Everything at this moment. Widgets and controllers read it and keep no copy; `apply` takes events over, the other
    methods of the first part what the user or the application does. Each tells the listeners what it changed.

    `save` stores each change of a setting at once; `complain` is called if that failed.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        save: Save = lambda _before, _now: None,
        complain: Callable[[KvdeskError], None] = lambda _error: None,
    ) -> None:
        super().__init__()
        self.settings = SettingsStore(settings or Settings(), save, complain)
        self._listeners: list[tuple[Listener, int | None, tuple[type, ...]]] = []
        self._operation: int | None = None  # of the view that was measured last
        self._counted_s = 0.0

    def listen(
        self, listener: Listener, to: Changed | None = None, *, often: tuple[type, ...] = OFTEN
    ) -> Callable[[], None]:
        """`listener` is called after each change, or those of the parts `to`, until what is returned is called. often:
        of the events `OFTEN`, those for which it is called.
        """
        ignored = tuple(kind for kind in OFTEN if kind not in often)
        known = listener, None if to is None else to.value, ignored
        self._listeners.append(known)
        return partial(self._listeners.remove, known)

    def _tell(self, changed: Changed, update: Update | None = None) -> Changed:
        """A listener that fails does not affect others."""
        kind, parts = type(update), changed.value
        for listener, to, ignored in tuple(self._listeners):
            if kind not in ignored and (to is None or parts & to):
                guarded(partial(listener, changed, update))
        return changed

    # --- changes --------------------------------------------------------------------------------------------------

    def apply(self, update: Event | MessageChange) -> Changed:
        """Apply an event of the engine, or a change of messages. Returns the parts of the state that it changed."""
        changed = Changed.NOTHING
        if type(update) not in MEASURED:
            changed = guarded(partial(self._take, update)) or changed
        guarded(partial(self._measure, update))
        return self._tell(changed, update)

    def notify(self, sentence: str, tone: Tone = "", file: str = "", ends: str = "") -> None:
        """Show the outcome of a command: "good" disappears automatically, "warning" and "danger" stay until they are
        dismissed. `file`: what was saved, whose folder can be opened; `ends`: the sentence that is no longer true.
        """
        self._tell(Changed.NOTHING, Notice(sentence, tone, file, ends))

    def complain(self, sentence: str, detail: str = "") -> None:
        """Show an error in the message box, until it is dismissed."""
        self._tell(Changed.NOTHING, Problem(sentence, detail))

    def _take(self, event: Event | MessageChange) -> Changed:
        match event:
            case (
                changes.BranchChanged()
                | changes.MessagesAdded()
                | changes.MessagesChanged()
                | changes.AnswerEnded()
                | changes.MessagesDeleted()
            ):
                return self._take_messages(event)
            case chat.TextDelta() | chat.ContextUse() | cache.MessageSpans():
                return self._apply_use(event)
            case cache.CacheView():
                self._set_view(event)
                return Changed.VIEW
            case cache.OperationDone() | cache.RecordingTaken():
                return self._apply_operation(event)
            case chat.TurnStarted():
                self.answering[event.answer] = event.conversation
                if event.client:
                    self.requests.add(event.conversation)
                    return Changed.RUNNING
                if not self._is_shown(event.conversation, event.answer):
                    return Changed.RUNNING
                self.written[event.conversation] = event.seq_id
                return Changed.RUNNING | self._use(event.conversation, event.prompt_tokens)
            case chat.TurnEnded():
                return self._end_answer(event.answer) | self._count_turn(event)
            case chat.MessageRetention():
                self.retention[event.conversation] = dict(event.retention)
                return Changed.RETENTION
            case AttentionPreview() | Attended() | CommandFailed() | chat.Working():
                return self._apply_reply(event)
            case (
                chat.ModelLoading()
                | chat.ModelLoaded()
                | cache.ContextReady()
                | chat.EngineRestarted()
                | chat.EngineDied()
                | chat.BackendReady()
            ):
                return self._apply_engine(event)
            case _:
                return Changed.NOTHING

    def show_conversations(self, conversations: Iterable[Conversation], selected: ConversationId | None) -> Changed:
        """The conversations there are, and the one that is shown; None if `selected` is none of them."""
        before, known = self.selected, self.conversations
        self.conversations = {one.id: one for one in conversations}
        self.selected = selected if selected in self.conversations else None
        if self.selected == before:
            looks_same = _look_same(known.values(), self.conversations.values())
            return Changed.NOTHING if looks_same else self._tell(Changed.CONVERSATIONS)
        self.forks = {}
        return self._tell(Changed.CONVERSATIONS | Changed.SELECTED | self._forget_attention())

    def keep_draft(self, conversation: Conversation) -> None:
        """Only what is typed for a conversation is another text: nobody shows that but who typed it."""
        if conversation.id in self.conversations:
            self.conversations[conversation.id] = conversation

    def show_forks(self, forks: Mapping[MessageId, tuple[MessageId, ...]]) -> None:
        """Messages of the shown branch that have others at their place, and all of those in the order they were made;
        after `BranchChanged`, with which none are known.
        """
        self.forks = forks
        self._tell(Changed.FORKS)

    def show_queues(self, queues: Mapping[ConversationId, changes.QueueState]) -> None:
        self.queues = queues
        self._tell(Changed.CONVERSATIONS)

    def show_deleted(self, titles: Iterable[str]) -> None:
        before, self.deleted = len(self.deleted), tuple(titles)
        self.messages_last = self.messages_last and len(self.deleted) <= before
        self._tell(Changed.DELETED)

    def show_reading(
        self, reading: Mapping[ConversationId, Mapping[int, str]], encodings: Mapping[Attachment, str]
    ) -> None:
        self.reading, self.encodings = reading, encodings
        self._tell(Changed.CONVERSATIONS)

    def show_unsaved(self, sentence: str) -> None:
        """What the disk does not take; "" once everything is saved."""
        self.unsaved = sentence
        self._tell(Changed.UNSAVED)

    def show_served(self, address: str, n_running: int) -> None:
        """Other programs are served there, that many requests of them now; "": none are."""
        self.served = Served(address, n_running)
        self._tell(Changed.SERVED)

    def show_embedded(self, *, installed: bool | None = None, is_open: bool | None = None) -> None:
        """Whether there is a model that comes with kvdesk, and whether it is open; None: as before."""
        self.has_embedded = self.has_embedded if installed is None else installed
        self.is_toy = self.is_toy if is_open is None else is_open
        self._tell(Changed.EMBEDDED)

    def choose_range(self, seq_id: int, p0: int, p1: int) -> None:
        """Positions `[p0, p1)` of a sequence are selected, and chosen for an operation by hand; -1: start, end."""
        self.range = Range(seq_id, p0, p1)
        self._tell(Changed.RANGE)

    def look(self, looking: Looking) -> None:
        """This is wanted of attention from now on, or known of it."""
        if looking is not self.attention:
            self.attention = looking
            self._tell(Changed.ATTENTION)

    def show_tools(
        self,
        *,
        states: Mapping[str, ServerState] | None = None,
        lists: Mapping[str, tuple[Tool, ...]] | None = None,
        questions: Mapping[MessageId, ToolQuestion] | None = None,
        prices: Mapping[str, ToolPrice] | None = None,
        chat_prices: Mapping[str, ToolPrice] | None = None,
    ) -> None:
        """What is known of tools now; None: as it was."""
        self.tool_states = self.tool_states if states is None else states
        self.tool_lists = self.tool_lists if lists is None else lists
        self.tool_questions = self.tool_questions if questions is None else questions
        self.tool_prices = self.tool_prices if prices is None else prices
        self.chat_prices = self.chat_prices if chat_prices is None else chat_prices
        self._tell(Changed.TOOLS)

    def begin_rebuild(self) -> None:
        """The wait for `ContextReady` or `CommandFailed` begins."""
        self.rebuilding = True
        self._tell(Changed.REBUILDING)

    def _apply_reply(self, event: AttentionPreview | Attended | CommandFailed | chat.Working) -> Changed:
        looking = self.attention
        match event:
            case AttentionPreview():
                self.attention = looking.priced(event)
            case Attended():
                self.attention = looking.answered(event)
            case CommandFailed(command=Attend() as command):
                self.attention = looking.failed(command, event.sentence)
            case CommandFailed():
                return self._fail(event.command)
            case chat.Working(total=0):
                self.attention = looking.over()
        return Changed.ATTENTION if self.attention is not looking else Changed.NOTHING

    def _fail(self, command: Command) -> Changed:
        if isinstance(command, chat.Generate):
            return self._end_answer(command.answer)
        if isinstance(command, cache.RebuildContext):
            self.rebuilding = False
            return Changed.REBUILDING
        if isinstance(command, chat.LoadModel) and command.source == self.loading:
            self.loading = None
        return Changed.NOTHING

    def _take_messages(self, change: MessageChange) -> Changed:
        """Messages that stream are being written, the others are not. Answers that are not among them go on."""
        match change:
            case changes.BranchChanged():
                if change.conversation != self.selected:
                    return Changed.NOTHING
                self.forks = {}
                messages: tuple[Message, ...] = change.messages
            case changes.MessagesAdded() | changes.MessagesChanged():
                messages = change.messages
            case changes.AnswerEnded():
                messages = (change.message,)
            case changes.MessagesDeleted():
                self.undeletable.add(change.conversation)
                self.messages_last = True
                return Changed.DELETED
        before = dict(self.answering)
        for message in messages:
            if message.stats is not None and message.stats.prompt_tokens:
                self.turns[message.conversation] = message.stats
            if message.state == "streaming":
                self.answering[message.id] = message.conversation
            else:
                self.answering.pop(message.id, None)
        return Changed.RUNNING if self.answering != before else Changed.NOTHING

    def undelete(self, conversation: ConversationId) -> None:
        """The messages that were deleted last are restored."""
        self.undeletable.discard(conversation)
        self._tell(Changed.DELETED)

    def forget_view(self) -> Changed:
        """No views will come: what the conversations hold is known from their turns from now on."""
        self.view = None
        return self._tell(Changed.VIEW)

    def count(self) -> None:
        """Count the cells of every conversation in the view, which costs more than a view may; numbers are written."""
        if self.view is not None:
            self.cells = cells_of_owners(self.view)
        self._tell(Changed.NUMBERS | (Changed.CELLS if self.view is not None else Changed.NOTHING))

    def _set_view(self, view: cache.CacheView) -> None:
        self.view = view
        leases = {int(lease.seq_id): lease for lease in view.leases}
        if leases != self.leases or not self.history.leases:
            self.leases = leases
            self.history.leases.append((view.snapshot.operation, leases))
            if len(self.history.leases) > MAX_LEASES:
                del self.history.leases[: MAX_LEASES // 10]
        self.sequences = {lease.conversation: int(lease.seq_id) for lease in view.leases if not lease.inactive}

    def _forget_attention(self) -> Changed:
        before, self.attention = self.attention, self.attention.forgotten()
        return Changed.ATTENTION if self.attention is not before else Changed.NOTHING

    def _end_answer(self, answer: MessageId) -> Changed:
        self.answering.pop(answer, None)
        return Changed.RUNNING

    def _apply_use(self, event: chat.TextDelta | chat.ContextUse | cache.MessageSpans) -> Changed:
        """While the branch that is shown is answered, its use follows that answer, not what was counted before it.

        Other answers to the same question count nothing.
        """
        name = event.conversation
        match event:
            case chat.TextDelta():
                known = self.use.get(name)
                if known is None or not self._is_shown(name, event.answer):
                    return Changed.NOTHING
                return Changed.GROWTH if self._use(name, known.n_tokens + len(event.tokens)) else Changed.NOTHING
            case chat.ContextUse():
                if event.last is not None and not self._is_shown(name, event.last):
                    return Changed.NOTHING
                if any(name == of and self._is_shown(name, answer) for answer, of in self.answering.items()):
                    return Changed.NOTHING
                self.use[name] = event
                return Changed.USE
            case cache.MessageSpans():
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
        forgotten = self._forget_attention()
        self.context, self.view = None, None
        self.leases, self.sequences = {}, {}
        self.use.clear()
        self.written.clear()
        self.cells.clear()
        return Changed.FEATURES | Changed.CONTEXT | Changed.CELLS | Changed.VIEW | Changed.USE | forgotten

    def _apply_engine(
        self,
        event: chat.ModelLoading
        | chat.ModelLoaded
        | cache.ContextReady
        | chat.EngineRestarted
        | chat.EngineDied
        | chat.BackendReady,
    ) -> Changed:
        """A model, a context, or the end of them. The history of a lost context can be read until the next is made."""
        match event:
            case chat.BackendReady():
                return self._apply_features(event.features)
            case chat.ModelLoading():
                self.loading = event.source
                return Changed.NOTHING
            case chat.ModelLoaded():
                self.model, self.limit, self.past, self.loading = event.model, event.limit, None, None
                return Changed.MODEL
            case chat.EngineDied():
                self.dead, self.model, self.loading = True, None, None
                self.answering.clear()
                self.rebuilding = False
                forgotten = self._forget_attention()
                return Changed.DEAD | Changed.RUNNING | Changed.MODEL | Changed.REBUILDING | forgotten
            case chat.EngineRestarted():
                self.context = None
            case cache.ContextReady():
                self.context, self.loading = event.context, None
                self.possible = {row.operation: row for row in event.possible}
                self.leases, self.sequences, self.history = {}, {}, History()
                self.spans.clear()
                self.retention.clear()
        self.view, self.rebuilding = None, False
        self.use.clear()
        self.written.clear()
        self.cells.clear()
        return Changed.CONTEXT | Changed.CELLS | Changed.VIEW | Changed.REBUILDING | self._forget_attention()

    def _apply_operation(self, done: cache.OperationDone | cache.RecordingTaken) -> Changed:
        """Remember the effect of one by hand. Without views it alone tells which sequences hold nothing any more. The
        journal of a context that is over is kept, too.
        """
        changed = Changed.NOTHING
        if isinstance(done, cache.RecordingTaken):
            if done.is_over and len(done.recording):
                self.past = done.recording, self.history
            return changed
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
        known = self.use.get(conversation, chat.ContextUse(conversation, 0, 0, 0))
        self.use[conversation] = replace(known, n_tokens=n_tokens, n_cached=n_tokens, n_ctx=self.context.n_ctx_seq)
        return Changed.USE

    def _count_turn(self, event: chat.TurnEnded) -> Changed:
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

    def _measure(self, event: Event | MessageChange) -> None:
        """Add an event to the measurements."""
        measured = self.measured
        match event:
            case cache.SpeedSample():
                measured.add_speed(event)
            case cache.CacheView():
                self._measure_view(event)
            case cache.OperationDone():
                known = self.conversations.get(event.conversation) if event.conversation else None
                measured.add_operation(event, known.colour if known else None)
            case cache.LoadSample():
                measured.add_load(event)
            case cache.MemoryLedger():
                measured.set_ledger(event)
            case cache.TokenTexts():
                self.texts.update(event.texts)
            case chat.TurnStarted():
                measured.start_turn()
            case chat.PrefillProgress() if event.done >= event.total:
                measured.end_prefill()
            case chat.TurnEnded():
                measured.add_turn(event.stats)
            case CommandFailed(command=Operate()):
                measured.add_refused_call()
            case chat.ModelLoaded():  # readings and token texts of the one before are not its own
                measured.forget()
                self.texts.clear()

    def _measure_view(self, view: cache.CacheView) -> None:
        """Views without an operation between them are the same; while answers are written a few in a second do."""
        if view.snapshot.operation == self._operation:
            return
        self._operation, now = view.snapshot.operation, time.monotonic()
        if not self.running or now - self._counted_s >= _COUNT_S:
            self._counted_s = now
            self.measured.add_view(view, self.context)


def _look_same(before: Collection[Conversation], after: Collection[Conversation]) -> bool:
    """Whether only their last messages and times of use differ, which nothing shows."""
    return len(before) == len(after) and all(
        one is other or replace(one, leaf=other.leaf, updated_ms=other.updated_ms) == other
        for one, other in zip(before, after, strict=True)
    )
