"""The conversations: what a window, a server and the command line hold in common.

Owns conversations, their messages, running answers, drafts and queues, and asks a back end for answers. Listeners are
told what has changed (`changes`), in the order in which they subscribed: the store first, so that nothing that is shown
can be lost. One that fails costs neither a token nor what the others are told.

Everything here is called from one thread, that which takes the back end's events. Must never know: Qt, the database and
the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kvdesk.chat import Conversation, ConversationId, Message, MessageId, MessageState, Role, new_message_id
from kvdesk.conversations import requests
from kvdesk.conversations.answers import RunningAnswer, RunningAnswers
from kvdesk.conversations.changes import (
    AnswerEnded,
    AnswersGrew,
    BranchChanged,
    Change,
    ConversationChanged,
    ConversationDeleted,
    DraftChanged,
    Listener,
    MessagesAdded,
    QueuesChanged,
    QueueState,
    ReadFailed,
)
from kvdesk.conversations.collection import Collection, now_ms, title_of
from kvdesk.conversations.queues import Queues
from kvdesk.conversations.tree import Tree
from kvdesk.errors import KvdeskError, guarded
from kvdesk.protocol.chat import (
    CloseConversation,
    EngineDied,
    LoadModel,
    MessagesEvicted,
    ModelLoaded,
    TextDelta,
    TurnEnded,
)
from kvdesk.protocol.messages import Command, CommandFailed, Event, SubscriptionDropped
from kvdesk.settings import Overflow, Settings

ReadTree = Callable[[ConversationId, MessageId | None], None]
"""Asks for the messages of a conversation (and the leaf of its shown branch); `tree_read` or `tree_failed` answers."""

_HOLDS: Mapping[MessageState, QueueState] = {"stopped": "stopped", "failed": "failed"}


def _nothing_stored(conversation: ConversationId, _leaf: MessageId | None) -> None:
    raise LookupError(f"nothing is stored of conversation {conversation}")


class ConversationService:
    """Conversations held with one back end.

    submit     gives the back end a command; stop: stops an answer, also while the back end computes
    settings   those that count now: the system prompt of new conversations, sampling, what happens on overflow
    read_tree  see `ReadTree`; n_colours: of the palette in which conversations are drawn
    """

    def __init__(
        self,
        submit: Callable[[Command], None],
        stop: Callable[[MessageId], None],
        settings: Callable[[], Settings],
        read_tree: ReadTree = _nothing_stored,
        n_colours: int = 1,
    ) -> None:
        self._submit, self._stop, self._settings = submit, stop, settings
        self._read_tree = read_tree
        self._listeners: list[Listener] = []
        self._known = Collection(n_colours)
        self._reading: set[ConversationId] = set()
        self._unsent: dict[ConversationId, list[str]] = {}  # sent before the conversation was read
        self._answers = RunningAnswers()
        self._queues = Queues()
        self._may_send = False  # an event came after which a queued message may go
        self.model_name = ""  # of the model that is open: it writes the next answers

    def subscribe(self, listener: Listener) -> None:
        """It is told every change from now on, after those that subscribed before."""
        self._listeners.append(listener)

    # --- what there is ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._known)

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """All of them, the one a person used last first."""
        return self._known.all()

    def get(self, conversation: str) -> Conversation | None:
        return self._known.get(ConversationId(conversation))

    def is_read(self, conversation: ConversationId) -> bool:
        """Whether its messages are known."""
        return self._known.tree(conversation) is not None

    def branch(self, conversation: ConversationId) -> list[Message]:
        """The messages that are shown, with the text that has come so far of those that are running."""
        shown = self._known.branch(conversation)
        return [self._answers.so_far(message) for message in shown] if len(self._answers) else shown

    def forks(self, conversation: ConversationId) -> dict[MessageId, tuple[MessageId, ...]]:
        """Of every message that has others at its place all that stand there, in the order they were made."""
        tree = self._known.tree(conversation)
        return tree.forks() if tree is not None else {}

    def answer_of(self, conversation: ConversationId) -> MessageId | None:
        """The answer that is running in the conversation, the first of several."""
        return next(iter(self.answers_of(conversation)), None)

    def answers_of(self, conversation: ConversationId) -> list[MessageId]:
        """All answers that are running in the conversation."""
        return self._answers.of(conversation)

    def overflow_of(self, conversation: ConversationId) -> Overflow:
        """What happens when the conversation's context is full."""
        return requests.overflow_of(self._known[conversation], self._settings())

    # --- conversations ------------------------------------------------------------------------------------------------

    def load(self, conversations: Iterable[Conversation]) -> None:
        """Those that are stored, the one used last first. What waited in their queues waits for a person."""
        self._known.load(conversations)
        self._queues.hold("kvdesk closed", *self._known.waiting())
        self._tell_queues()

    def open(self, conversation: ConversationId) -> None:
        """Have its messages read, and its branch told (`BranchChanged`): at once where they are known."""
        if self.is_read(conversation):
            self._tell_branch(conversation)
        elif conversation not in self._reading:
            self._reading.add(conversation)
            self._read_tree(conversation, self._known[conversation].leaf)

    def tree_read(self, conversation: ConversationId, tree: Tree) -> None:
        """The answer to `read_tree`. What was sent meanwhile goes now."""
        self._reading.discard(conversation)
        if conversation not in self._known:
            return  # deleted while it was read
        self._known.put_tree(conversation, tree)
        self._tell_branch(conversation)
        for text in self._unsent.pop(conversation, ()):
            self.send(conversation, text)
        self._send_first_queued(conversation)

    def tree_failed(self, conversation: ConversationId, error: KvdeskError) -> None:
        """The other answer: nothing can be added to this conversation."""
        self._reading.discard(conversation)
        self._tell(ReadFailed(conversation, error, tuple(self._unsent.pop(conversation, ()))))

    def unused(self) -> ConversationId | None:
        """A conversation without a message, where there is one."""
        return next((known.id for known in self._known.all() if known.leaf is None), None)

    def create(self, system_prompt: str | None = None) -> ConversationId:
        """An empty conversation; None: with the system prompt of the settings."""
        prompt = self._settings().system_prompt if system_prompt is None else system_prompt
        new = self._known.made("", prompt)
        self._known.put_tree(new.id, Tree())
        self._put_first(new)
        return new.id

    def rename(self, conversation: ConversationId, title: str) -> None:
        known = self._known.get(conversation)
        if known is not None and title.strip():
            self._put(replace(known, title=title.strip()))

    def choose_overflow(self, conversation: ConversationId, overflow: Overflow) -> None:
        """What happens when its context is full, from its next answer on."""
        if (known := self._known.get(conversation)) is not None:
            self._put(replace(known, overflow=overflow.value))

    def keep_draft(self, conversation: ConversationId, text: str) -> None:
        """What is typed and not sent outlives the process."""
        known = self._known.get(conversation)
        if known is not None and known.draft != text:
            changed = replace(known, draft=text)
            self._known.put(changed)
            self._tell(DraftChanged(changed))

    def delete(self, conversation: ConversationId) -> None:
        """Forget it, its messages and its running answers, and have its cells freed."""
        for answer in self._answers.of(conversation):
            self._stop(answer)
            self._answers.end(answer)
        self._submit(CloseConversation(conversation))
        self._known.remove(conversation)
        self._unsent.pop(conversation, None)
        self._tell(ConversationDeleted(conversation))

    def fork(self, conversation: ConversationId, last: MessageId | None) -> ConversationId | None:
        """A new conversation with copies of the messages up to `last` (None: all). None where there are none."""
        known = self._known.get(conversation)
        messages = [m for m in self.branch(conversation) if m.state != "streaming"]
        if last is not None:
            end = next((i for i, message in enumerate(messages) if message.id == last), len(messages) - 1)
            messages = messages[: end + 1]
        if known is None or not messages:
            return None
        new = self._known.made(f"{known.title}, forked", known.system_prompt, known.overflow)
        copies: list[Message] = []
        for message in messages:
            parent = copies[-1].id if copies else None
            copies.append(replace(message, id=new_message_id(), conversation=new.id, parent=parent))
        self._known.put_tree(new.id, Tree(copies))
        self._put_first(replace(new, leaf=copies[-1].id))
        self._tell(MessagesAdded(tuple(copies)))
        return new.id

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, conversation: ConversationId, text: str) -> MessageId | None:
        """Add the person's message, ask for an answer and return its id. None where it is queued: while an answer is
        running, a model is being opened, or others wait before it.
        """
        known = self._known.get(conversation)
        if known is None or not text.strip():
            return None
        place = self._queues.take_place(known)
        others_wait = bool(known.queued) and not self._queues.is_held(conversation)
        if not (self.answer_of(conversation) or self._queues.waits_for_model or others_wait):
            if self.is_read(conversation):
                return self._send_now(known, text, "" if text.startswith(known.draft) else known.draft)
            self._unsent.setdefault(conversation, []).append(text)
            self.open(conversation)
            return None
        draft = "" if text.startswith(known.draft) else known.draft  # else something else is typed by now
        self._put(replace(known, queued=(*known.queued[:place], text, *known.queued[place:]), draft=draft))
        self._tell_queues()
        return None

    def edit(self, conversation: ConversationId, message: MessageId, text: str) -> MessageId | None:
        """The person's message in other words, as a branch beside the first; asks for an answer to it."""
        tree = self._known.tree(conversation)
        old = tree.get(message) if tree is not None else None
        if old is None or old.role != "user" or not text.strip() or self.answer_of(conversation) is not None:
            return None
        self._cut_branch(conversation, old.parent)
        self._add(conversation, "user", text, old.parent)
        return self._ask(conversation)

    def regenerate(self, conversation: ConversationId, n: int = 1) -> None:
        """`n` new answers beside the last one, made together: all stay, as branches of the same question."""
        branch = self.branch(conversation)
        if self.answer_of(conversation) is None and branch and branch[-1].role == "assistant":
            for _ in range(n):
                self._cut_branch(conversation, branch[-1].parent)
                self._ask(conversation, replaces=branch[-1].id)

    def stop(self, conversation: ConversationId) -> None:
        """Stop its running answers; what waits in its queue then waits for a person."""
        self._hold("stopped", conversation)
        for answer in self._answers.of(conversation):
            self._stop(answer)

    def show_branch(self, conversation: ConversationId, message: MessageId) -> None:
        """Show the newest branch that goes through a message."""
        tree = self._known.tree(conversation)
        if tree is None or tree.get(message) is None or self.answer_of(conversation) is not None:
            return
        self._put_first(replace(self._known[conversation], leaf=tree.tip(message)))
        self._tell_branch(conversation)

    def preview(self, conversation: ConversationId, text: str, replaced: MessageId | None = None) -> None:
        """Ask what sending `text` now would cost, in the place of a message or after all of them; nothing while the
        conversation is not read yet.
        """
        tree = self._known.tree(conversation)
        if tree is None or not text.strip():
            return
        old = tree.get(replaced)
        before = self.branch(conversation)
        if old is not None:
            before = tree.branch(old.parent) if old.parent is not None else []
        self._submit(requests.preview(self._known[conversation], before, text, self._settings()))

    def measure(self, conversation: ConversationId) -> None:
        """Ask how full its context is. Not while it is answered: then the turn tells."""
        if self.is_read(conversation) and self.answer_of(conversation) is None:
            known, shown = self._known[conversation], self.branch(conversation)
            self._submit(requests.measure(known, shown, self._settings()))

    # --- queued messages ----------------------------------------------------------------------------------------------

    def release_queue(self, conversation: ConversationId) -> None:
        """A person says that what stood still is to be sent."""
        self._queues.release(conversation)
        self._tell_queues()
        if self.is_read(conversation):
            self._send_first_queued(conversation)
        else:
            self.open(conversation)

    def cancel_queued(self, conversation: ConversationId, index: int, text: str, *, edited: bool = False) -> None:
        """The message is not sent; nothing where another one stands there. `edited`: what is sent next takes its place,
        of several that are edited together that of the first.
        """
        known = self._known.get(conversation)
        if known is not None and known.queued[index : index + 1] == (text,):
            self._unqueue(known, index)
        if edited:
            self._queues.keep_place(conversation, index)

    def wait_for_model(self) -> None:
        """A model is being opened: what is sent waits for it."""
        self._queues.wait_for_model()
        self._tell_queues()

    def close_queues(self) -> None:
        """Nothing is sent by itself any more."""
        self._queues.closed = True

    # --- events of the back end ---------------------------------------------------------------------------------------

    def take(self, events: Iterable[Event]) -> None:
        """For whoever shows nothing in between: apply events, then tell what grew and send what waited for them."""
        for event in events:
            guarded(partial(self.apply, event))
        self.tell_growth()
        self.send_queued()

    def apply(self, event: Event) -> None:
        """Take an event over, and tell what it changed. Text is told by `tell_growth`, once for many events."""
        match event:
            case TextDelta():
                self._answers.append(event)
            case TurnEnded():
                self._may_send = True
                self._end_turn(event)
            case MessagesEvicted():
                if (known := self._known.get(event.conversation)) is not None:
                    self._put(replace(known, evicted=event.evicted))
            case ModelLoaded():
                self.model_name = event.model.name
                self._may_send = True
                self._queues.model_ready()
                self._tell_queues()
            case CommandFailed() if isinstance(event.command, LoadModel):
                self._queues.model_failed(self._known.waiting())
                self._tell_queues()
            case EngineDied():
                self.interrupt(event.sentence)
                self._hold("engine ended", *self._known.waiting())
            case SubscriptionDropped():
                for conversation in self._answers.begin_anew():
                    self._tell_branch(conversation)

    def tell_growth(self) -> None:
        """Tell the text so far of the answers that became longer."""
        if grown := self._answers.take_grown():
            self._tell(AnswersGrew(grown))

    def send_queued(self) -> None:
        """After events: send the next message of every queue that nothing holds back any more."""
        if self._may_send:
            self._may_send = False
            for conversation in self._known.waiting():
                self._send_first_queued(conversation)

    def interrupt(self, note: str) -> None:
        """No more text will come: what runs ends here."""
        for running in list(self._answers):
            self._answers.end(running.message.id)
            self._end_answer(replace(running.so_far(), state="interrupted", note=note))

    # --- inside: answers ----------------------------------------------------------------------------------------------

    def _send_now(self, known: Conversation, text: str, draft: str) -> MessageId:
        """The person's message and an answer to it, after the branch that is shown."""
        shown = self.branch(known.id)
        title = known.title if shown or known.title else title_of(text)
        self._known.put(replace(known, draft=draft, title=title))
        self._add(known.id, "user", text, shown[-1].id if shown else None)
        return self._ask(known.id)

    def _ask(self, conversation: ConversationId, replaces: MessageId | None = None) -> MessageId:
        """Ask for an answer to the conversation as it is."""
        asked = self.branch(conversation)
        answer = self._add(conversation, "assistant", "", asked[-1].id, replaces=replaces)
        known = self._known[conversation]
        self._submit(requests.generate(known, answer.id, asked, self._settings()))
        return answer.id

    def _add(
        self,
        conversation: ConversationId,
        role: Role,
        text: str,
        parent: MessageId | None,
        replaces: MessageId | None = None,
    ) -> Message:
        """A person's message, or an answer that begins to run."""
        now = now_ms()
        message = Message(new_message_id(), conversation, parent, role, text, created_ms=now)
        if role == "assistant":
            message = replace(message, state="streaming", model=self.model_name)
            self._answers.start(message, replaces)
        self._known.put_tree(conversation, Tree()).put(message)
        self._put_first(replace(self._known[conversation], leaf=message.id, updated_ms=now))
        self._tell(MessagesAdded((message,)))
        return message

    def _end_turn(self, event: TurnEnded) -> None:
        running = self._answers.end(event.answer)
        if running is not None:  # else its conversation was deleted meanwhile
            if running.replaces is not None and not running.parts:
                self._take_back(running, running.replaces)
            else:
                ended = replace(running.so_far(), state=event.state, stats=event.stats, note=event.note)
                self._end_answer(ended)
            self._put(replace(self._known[event.conversation], updated_ms=now_ms()))
        if event.state != "complete":
            self._hold(_HOLDS.get(event.state, "interrupted"), event.conversation)

    def _take_back(self, empty: RunningAnswer, shown: MessageId) -> None:
        """Another answer that never said anything gives way to the one that was shown before."""
        conversation = empty.message.conversation
        self._known.put_tree(conversation, Tree()).discard(empty.message.id)
        self._tell(AnswerEnded(replace(empty.message, state="stopped")))
        known = self._known[conversation]
        if known.leaf == empty.message.id:
            self._known.put(replace(known, leaf=shown))
        self._tell_branch(conversation)

    def _end_answer(self, message: Message) -> None:
        self._known.put_tree(message.conversation, Tree()).put(message)
        self._tell(AnswerEnded(message))

    def _cut_branch(self, conversation: ConversationId, leaf: MessageId | None) -> None:
        """What is added next follows `leaf` (None: nothing)."""
        self._known.put(replace(self._known[conversation], leaf=leaf))
        tree = self._known.tree(conversation)
        messages = tree.branch(leaf) if tree is not None and leaf is not None else []
        self._tell(BranchChanged(conversation, tuple(messages), is_cut=True))

    # --- inside: queues -----------------------------------------------------------------------------------------------

    def _hold(self, why: QueueState, *conversations: ConversationId) -> None:
        held = [name for name in conversations if (known := self._known.get(name)) and known.queued]
        if held:
            self._queues.hold(why, *held)
            self._tell_queues()

    def _send_first_queued(self, conversation: ConversationId) -> None:
        """Send the next message, where nothing is in its way."""
        known = self._known[conversation]
        free = self._queues.open and not self._queues.is_held(conversation) and self.is_read(conversation)
        if not free or not known.queued or self.answer_of(conversation) is not None:
            return
        self._send_now(known, known.queued[0], known.draft)  # what is typed is another text, and is typed still
        self._unqueue(self._known[conversation], 0)  # last, so that a crash loses nothing

    def _unqueue(self, known: Conversation, index: int) -> None:
        self._put(replace(known, queued=(*known.queued[:index], *known.queued[index + 1 :])))
        self._queues.removed(known.id, index)
        self._tell_queues()

    def _tell_queues(self) -> None:
        self._tell(QueuesChanged(self._queues.states(self._known.waiting())))

    # --- inside: all --------------------------------------------------------------------------------------------------

    def _put_first(self, conversation: Conversation) -> None:
        """Remember a conversation that a person has just used: it comes first."""
        self._known.put_first(conversation)
        self._tell(ConversationChanged(conversation))

    def _put(self, conversation: Conversation) -> None:
        """Remember what has changed by itself. Its place stays: a pointer may be on it."""
        self._known.put(conversation)
        self._tell(ConversationChanged(conversation))

    def _tell_branch(self, conversation: ConversationId) -> None:
        self._tell(BranchChanged(conversation, tuple(self.branch(conversation))))

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            guarded(partial(listener, change))
