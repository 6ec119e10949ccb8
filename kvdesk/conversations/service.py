"""The conversations: what a window, a server and the command line hold in common.

Owns conversations, their messages, running answers, drafts and queues, and asks a back end for answers. Listeners are
told what has changed (`changes`), in the order in which they subscribed: the store first, so that nothing that is shown
can be lost. One that fails costs neither a token nor what the others get.

What is done with messages and answers is in `turns`, with those that wait to be sent in `queued`, deleting messages in
`removals`, folders, pins and the archive in `arrangement`, deleting conversations in `deletions`: all are called
directly. They share `state`, all that is known. Everything here is called from one thread, that which takes the back
end's events. Must never know: Qt, the database and the cache.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from kvdesk.chat import Conversation, typed
from kvdesk.conversations import changes, requests
from kvdesk.conversations.arrangement import Arrangement
from kvdesk.conversations.branch_rows import BranchRow, branch_rows
from kvdesk.conversations.deletions import Deletions
from kvdesk.conversations.parameters import Parameters
from kvdesk.conversations.queued_messages import QueuedMessages
from kvdesk.conversations.removals import Removals
from kvdesk.conversations.state import ConversationState
from kvdesk.conversations.toolbox import NoTools, Toolbox, ToolResult
from kvdesk.conversations.tree import Tree
from kvdesk.conversations.turns import Turns
from kvdesk.errors import KvdeskError, guarded
from kvdesk.message import Attachment, ConversationId, Message, MessageId, new_message_id
from kvdesk.protocol import chat
from kvdesk.protocol.cache import MessageSpans
from kvdesk.protocol.messages import Command, CommandFailed, Event, SubscriptionDropped
from kvdesk.settings import Overflow, Settings
from kvdesk.translation import tr
from kvdesk.values import replace

ReadTree = Callable[[ConversationId, MessageId | None], None]
"""Asks for the messages of a conversation (and the leaf of its shown branch); `tree_read` or `tree_failed` answers."""


def _nothing_stored(conversation: ConversationId, _leaf: MessageId | None) -> None:
    raise LookupError(f"nothing is stored of conversation {conversation}")


class ConversationService:
    """Conversations held with one back end.

    submit     gives the back end a command; stop: stops an answer, also while the back end computes
    settings   those that count now: the system prompt of new conversations, sampling, what happens on overflow
    toolbox    has the tools that answers may call
    read_tree  see `ReadTree`; n_colours: of the palette in which conversations are drawn
    """

    def __init__(
        self,
        submit: Callable[[Command], None],
        stop: Callable[[MessageId], None],
        settings: Callable[[], Settings],
        read_tree: ReadTree = _nothing_stored,
        n_colours: int = 1,
        toolbox: Toolbox | None = None,
    ) -> None:
        self._submit, self._settings = submit, settings
        self._read_tree = read_tree
        self._state = ConversationState(n_colours)
        self._known = self._state.known
        self.turns = Turns(self._state, submit, stop, settings, toolbox or NoTools())
        self.removals = Removals(self._state, submit)
        self.queued = QueuedMessages(self._state, self.turns)
        self.arrangement = Arrangement(self._state)
        self.deletions = Deletions(self._state, self.stop, self.delete)
        self._reading: set[ConversationId] = set()
        self._unsent: dict[ConversationId, list[tuple[str, bool]]] = {}  # sent before the conversation was read

    def subscribe(self, listener: changes.Listener) -> None:
        """It is notified of every change from now on, after those that subscribed before."""
        self._state.subscribe(listener)

    # --- what there is ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._known)

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """All of them, the one a user used last first."""
        return self._known.all()

    def get(self, conversation: str) -> Conversation | None:
        """None also for one whose deletion can still be undone."""
        name = ConversationId(conversation)
        return self._known.get(name) if name not in self._known.hidden else None

    def is_read(self, conversation: ConversationId) -> bool:
        """Whether its messages are known."""
        return self._state.is_read(conversation)

    def branch(self, conversation: ConversationId) -> list[Message]:
        """The messages that are shown, with the text that has come so far of those that are running."""
        return self._state.branch(conversation)

    def all_messages(self, conversation: ConversationId) -> tuple[Message, ...] | None:
        """Those of every branch, in the order they were made, with the text that has come so far; None if they were
        not read.
        """
        tree = self._known.tree(conversation)
        return None if tree is None else tuple(map(self._state.answers.so_far, tree.messages))

    def forks(self, conversation: ConversationId) -> dict[MessageId, tuple[MessageId, ...]]:
        """For every message with others at its place: all of them, in the order they were made."""
        tree = self._known.tree(conversation)
        return tree.forks() if tree is not None else {}

    def branch_rows(self, conversation: ConversationId) -> tuple[BranchRow, ...]:
        """All its branches as a small tree; none while it is not read."""
        tree = self._known.tree(conversation)
        return branch_rows(tree) if tree is not None else ()

    def alternatives(self, conversation: ConversationId, message: MessageId) -> tuple[Message, ...]:
        """What is at the place of a message, itself included, in the order they were made, with the text so far."""
        tree = self._known.tree(conversation)
        if tree is None or tree.get(message) is None:
            return ()
        found = (tree.get(name) for name in tree.siblings(message))
        return tuple(self._state.answers.so_far(one) for one in found if one is not None)

    def answer_of(self, conversation: ConversationId) -> MessageId | None:
        """The answer that is running in the conversation, the first of several."""
        return next(iter(self.answers_of(conversation)), None)

    def answers_of(self, conversation: ConversationId) -> list[MessageId]:
        """All answers that are running in the conversation."""
        return self._state.answers.of(conversation)

    def overflow_of(self, conversation: ConversationId) -> Overflow:
        """What happens when the conversation's context is full."""
        return requests.overflow_of(self._known[conversation], self._settings())

    # --- conversations ------------------------------------------------------------------------------------------------

    def load(self, conversations: Iterable[Conversation]) -> None:
        """Those that are stored, the one used last first. What waited in their queues waits for a user."""
        self._known.load(conversations)
        self.queued.hold_loaded()

    def add_stored(self, conversations: Iterable[Conversation]) -> None:
        """Conversations that are stored with their messages, such as imported ones, are among the others now."""
        new = tuple(replace(conversation, messages=()) for conversation in conversations)
        self._known.add(new)
        self._state.tell(changes.ConversationsAdded(new))
        self.queued.hold("kvdesk closed", *(conversation.id for conversation in new))

    def open(self, conversation: ConversationId) -> None:
        """Have its messages read, and its branch told (`BranchChanged`): at once where they are known."""
        if self.is_read(conversation):
            self._state.tell_branch(conversation)
            self._send_unsent(conversation)
        elif conversation not in self._reading:
            self._reading.add(conversation)
            self._read_tree(conversation, self._known[conversation].leaf)

    def tree_read(self, conversation: ConversationId, tree: Tree) -> None:
        """The answer to `read_tree`. What was sent meanwhile goes now."""
        self._reading.discard(conversation)
        if conversation not in self._known:
            return  # deleted while it was read
        self._known.put_tree(conversation, tree)
        if conversation in self._known.hidden:
            return  # nothing is sent in one that is being deleted
        self._state.tell_branch(conversation)
        self._send_unsent(conversation)
        self.queued.send_first(conversation)

    def _send_unsent(self, conversation: ConversationId) -> None:
        for text, is_draft in self._unsent.pop(conversation, ()):
            self.send(conversation, text, is_draft=is_draft)

    def tree_failed(self, conversation: ConversationId, error: KvdeskError) -> None:
        """The other answer: nothing can be added to this conversation."""
        self._reading.discard(conversation)
        unsent = tuple(text for text, _ in self._unsent.pop(conversation, ()))
        self._state.tell(changes.ReadFailed(conversation, error, unsent))

    def unused(self) -> ConversationId | None:
        """A conversation in which nothing was done but typing, if there is one."""
        return next((known.id for known in self._known.all() if replace(known, draft="").is_unused), None)

    def create(self, system_prompt: str | None = None) -> ConversationId:
        """An empty conversation; None: with the system prompt of the settings."""
        prompt = self._settings().system_prompt if system_prompt is None else system_prompt
        new = self._known.made("", prompt)
        self._known.put_tree(new.id, Tree())
        self._state.put_first(new)
        return new.id

    def rename(self, conversation: ConversationId, title: str) -> None:
        known = self._known.get(conversation)
        if known is not None and title.strip():
            self._state.put(replace(known, title=title.strip()))

    def choose_overflow(self, conversation: ConversationId, overflow: Overflow) -> None:
        """What happens when its context is full, from its next answer on."""
        if (known := self._known.get(conversation)) is not None:
            self._state.put(replace(known, overflow=overflow.value))
            self.turns.measure(conversation)

    def choose_tools(self, conversation: ConversationId, servers: tuple[str, ...]) -> None:
        """The servers whose tools it may call from its next answer on."""
        known = self._known.get(conversation)
        if known is not None and known.tools != servers:
            self._state.put(replace(known, tools=servers))

    def set_parameters(self, conversation: ConversationId, parameters: Parameters) -> None:
        """Another system prompt, sampling or chat template, from its next answer on."""
        known = self._known.get(conversation)
        if known is not None and Parameters.of(known) != parameters:
            self._state.put(parameters.put_into(known))
            self.turns.measure(conversation)

    def preview_prompt(self, conversation: ConversationId, parameters: Parameters, number: int = 0) -> None:
        """Ask how its prompt, with the draft, would be with other parameters, and what the change costs. The answer has
        the `number`.
        """
        if (known := self._known.get(conversation)) is not None and self.is_read(conversation):
            shown, settings = self.branch(conversation), self._settings()
            tools = self.turns.offered(known)
            self._submit(requests.preview_prompt(known, parameters, shown, settings, number, tools))

    def keep_draft(self, conversation: ConversationId, text: str) -> None:
        """What is typed and not sent outlives the process."""
        known = self._known.get(conversation)
        if known is not None and known.draft != text:
            changed = replace(known, draft=text)
            self._known.put(changed)
            self._state.tell(changes.DraftChanged(changed))

    def keep_edits(self, conversation: ConversationId, edits: Mapping[MessageId, str]) -> None:
        """What is typed into messages that are being edited outlives the process too, unless they were deleted."""
        known, tree = self._known.get(conversation), self._known.tree(conversation)
        if known is None or tree is None:
            return
        kept = tuple(edit for edit in edits.items() if tree.get(edit[0]) is not None)
        if known.edits != kept:
            changed = replace(known, edits=kept)
            self._known.put(changed)
            self._state.tell(changes.DraftChanged(changed))

    def attach(self, conversation: ConversationId, attachments: tuple[Attachment, ...]) -> None:
        """What is attached to the draft from now on."""
        known = self._known.get(conversation)
        if known is not None:
            self._state.put(replace(known, draft_attachments=attachments))

    def delete(self, conversation: ConversationId) -> None:
        """Forget it, its messages and its running answers, and have its cells freed. For good: see `deletions`."""
        self.turns.drop(conversation)
        self._submit(chat.CloseConversation(conversation))
        self._known.remove(conversation)
        self._unsent.pop(conversation, None)
        self.removals.forget(conversation)
        self._state.tell(changes.ConversationDeleted(conversation))

    def fork(self, conversation: ConversationId, last: MessageId | None) -> ConversationId | None:
        """A new conversation with copies of the messages up to `last` (None: all). None if there are none."""
        known = self._known.get(conversation)
        messages = [m for m in self.branch(conversation) if m.state != "streaming"]
        if last is not None:
            end = next((i for i, message in enumerate(messages) if message.id == last), len(messages) - 1)
            messages = messages[: end + 1]
        if known is None or not messages:
            return None
        new = self._known.made(tr("{title}, forked").format(title=known.title), known.system_prompt, known.overflow)
        copies: list[Message] = []
        for message in messages:
            parent = copies[-1].id if copies else None
            copies.append(replace(message, id=new_message_id(), conversation=new.id, parent=parent))
        self._known.put_tree(new.id, Tree(copies))
        self._state.put_first(Parameters.of(known).put_into(replace(new, leaf=copies[-1].id, tools=known.tools)))
        self._state.tell(changes.MessagesAdded(tuple(copies)))
        return new.id

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, conversation: ConversationId, text: str, *, is_draft: bool = True) -> MessageId | None:
        """Add the user's message with what is attached to the draft, ask for an answer and return its id. None if
        it is queued: while an answer is running, a model is being opened, or others wait before it.
        Without `is_draft`, `text` is not what was typed: the draft stays, and so does what is attached to it.
        """
        known = self._known.get(conversation)
        attachments = known.draft_attachments if known is not None and is_draft else ()
        if known is None or not (text.strip() or attachments):
            return None
        message, rest = typed(text, attachments), known
        if is_draft:  # unless something else is typed by now
            draft = "" if text.startswith(known.draft) else known.draft
            rest = replace(known, draft=draft, draft_attachments=())
        if (place := self.queued.take_place(known)) is not None:
            self.queued.add(rest, place, message)
            return None
        if self.is_read(conversation):
            return self.turns.send(rest, message)
        self._unsent.setdefault(conversation, []).append((text, is_draft))
        self.open(conversation)
        return None

    def stop(self, conversation: ConversationId) -> None:
        """Stop its running answers; what waits in its queue then waits for a user."""
        self.turns.stop(conversation)
        self.queued.stop(conversation)

    # --- queued messages ----------------------------------------------------------------------------------------------

    def release_queue(self, conversation: ConversationId) -> None:
        """A user says that what stood still is to be sent."""
        self.queued.release(conversation)
        if self.is_read(conversation):
            self.queued.send_first(conversation)
        else:
            self.open(conversation)

    # --- tools --------------------------------------------------------------------------------------------------------

    def tool_ended(self, message: MessageId, result: ToolResult) -> None:
        """A call that the toolbox was given has a result. On the thread of all other methods."""
        self.turns.tool_ended(message, result)
        self.queued.send_due()

    # --- events of the back end ---------------------------------------------------------------------------------------

    def take(self, events: Iterable[Event]) -> None:
        """For whoever shows nothing in between: apply events, then tell what grew and send what waited for them."""
        for event in events:
            guarded(partial(self.apply, event))
        self.turns.tell_growth()
        self.queued.send_due()

    def apply(self, event: Event) -> None:
        """Apply an event and notify listeners of its changes. Those of text wait for `turns.tell_growth`."""
        match event:
            case chat.TextDelta():
                self._state.answers.append(event)
            case chat.TurnStarted():
                self.turns.started(event)
            case chat.TurnEnded():
                self.turns.end(event)
                self.queued.turn_ended(event)
            case MessageSpans() | chat.BackendReady() | SubscriptionDropped():
                self.turns.take(event)
            case chat.MessagesEvicted():
                if (known := self._known.get(event.conversation)) is not None:
                    self._state.put(replace(known, evicted=event.evicted))
            case chat.ModelLoaded():
                self.turns.model_name = event.model.name
                self.queued.model_ready()
            case CommandFailed() if isinstance(event.command, chat.LoadModel):
                self.queued.model_failed(stopped=event.stopped)
            case CommandFailed() if isinstance(event.command, chat.Generate):
                self.turns.refused(event.command)
            case chat.EngineDied():
                self.turns.interrupt(event.sentence)
                self.queued.hold_all("engine ended")
