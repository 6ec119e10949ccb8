"""The conversations and their messages as they are now: memory, database and window say the same.

Asks the worker for answers and puts together what it sends. Must never know models, contexts and the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from kvdesk.chat import (
    Conversation,
    ConversationId,
    Message,
    MessageId,
    Role,
    history,
    new_conversation_id,
    new_message_id,
)
from kvdesk.conversations.markdown_file import save_markdown
from kvdesk.conversations.tree import Tree
from kvdesk.errors import KvdeskError, guarded
from kvdesk.protocol.chat import (
    EngineDied,
    Generate,
    MeasureContext,
    MessagesEvicted,
    ModelLoaded,
    PreviewTurn,
    TextDelta,
    TurnEnded,
)
from kvdesk.protocol.messages import Command, Event, SubscriptionDropped
from kvdesk.settings import Overflow, Settings
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.palette import N_COLOURS

TITLE_LENGTH = 48

Shows = tuple[Callable[[], object], ...]
"""What shows in the window what was taken over already; each may fail without the others."""


@dataclass(slots=True)
class Running:
    """An answer that is being generated."""

    message: Message
    replaces: MessageId | None = None  # the answer that was shown before, when this is another one to its question
    parts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def now(self) -> Message:
        return replace(self.message, text="".join(self.parts), tokens=tuple(self.tokens))


class Chats(QObject):
    """Owns conversations, message trees and running answers."""

    _tree_read = Signal(str, object)

    def __init__(
        self, window: MainWindow, store: StoreWriter, send: Callable[[Command], None], settings: Callable[[], Settings]
    ) -> None:
        super().__init__(window)
        self._window, self._store, self._send, self._settings = window, store, send, settings
        self._conversations: dict[ConversationId, Conversation] = {}
        self._trees: dict[ConversationId, Tree] = {}
        self._running: dict[MessageId, Running] = {}
        self._longer: set[MessageId] = set()  # running answers that got longer since they were last stored
        self._unsent: dict[ConversationId, str] = {}  # sent before the conversation was read
        self._selected: ConversationId | None = None
        self.model_name = ""  # of the model that is open: it writes the next answers
        self._tree_read.connect(self._on_tree_read)

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def selected(self) -> ConversationId | None:
        """The conversation that is shown."""
        return self._selected

    def __len__(self) -> int:
        return len(self._conversations)

    def get(self, conversation: str) -> Conversation | None:
        return self._conversations.get(ConversationId(conversation))

    def branch(self, conversation: ConversationId) -> list[Message]:
        """The messages that are shown, with the text that has come so far of those that are running."""
        tree, known = self._trees.get(conversation), self._conversations.get(conversation)
        shown = tree.branch(known.leaf) if tree is not None and known is not None else []
        if not self._running:
            return shown
        return [self._running[m.id].now() if m.id in self._running else m for m in shown]

    def answer_of(self, conversation: ConversationId) -> MessageId | None:
        """The answer that is running in the conversation, the first of several."""
        return next(iter(self.answers_of(conversation)), None)

    def answers_of(self, conversation: ConversationId) -> list[MessageId]:
        """All answers that are running in the conversation."""
        return [r.message.id for r in self._running.values() if r.message.conversation == conversation]

    def start(self) -> None:
        """Show the stored conversations, the one used last selected."""
        self._conversations = {c.id: c for c in self._store.ask(Store.conversations).result()}
        if self._conversations:
            self.select(next(iter(self._conversations)))
        else:
            self.new()

    # --- conversations ------------------------------------------------------------------------------------------------

    def new(self) -> None:
        """Select an empty conversation; it is stored with its first message, or the draft of one."""
        for conversation in self._conversations.values():
            if conversation.leaf is None:
                self.select(conversation.id)
                return
        new = self._made("", self._settings().system_prompt)
        self._conversations = {new.id: new, **self._conversations}
        self._trees[new.id] = Tree()
        self.select(new.id)

    def select(self, conversation: ConversationId) -> None:
        self._selected = conversation
        self.show_list()
        if conversation in self._trees:
            self._show(conversation)
            return
        leaf = self._conversations[conversation].leaf
        reading = self._store.ask(lambda store: read_tree(store, conversation, leaf))
        reading.add_done_callback(lambda done: self._tree_read.emit(conversation, done))

    def rename(self, conversation: ConversationId, title: str) -> None:
        known = self._conversations.get(conversation)
        if known is not None and title.strip():
            self._update(replace(known, title=title.strip()))
            self.show_list()

    def keep_draft(self, conversation: ConversationId, text: str) -> None:
        """What is typed and not sent outlives the process. An empty chat is stored for as long as it has a draft."""
        known = self._conversations.get(conversation)
        if known is None or known.draft == text:
            return
        self._change(replace(known, draft=text))

    def queue(self, conversation: ConversationId, texts: tuple[str, ...], newest: str = "") -> None:
        """What waits to be sent, stored as a draft is; `newest` is what was typed last."""
        known = self._conversations.get(conversation)
        if known is None or known.queued == texts:
            return
        draft = "" if newest and newest.startswith(known.draft) else known.draft
        self._change(replace(known, queued=texts, draft=draft))
        self.show_list()

    def waiting(self) -> list[ConversationId]:
        """The conversations in which messages wait to be sent."""
        return [name for name, known in self._conversations.items() if known.queued]

    def export(self, conversation: ConversationId, path: Path) -> None:
        """Write its shown branch as Markdown. Raises UserError."""
        save_markdown(path, (self._conversations[conversation], self.branch(conversation)))

    def export_all(self, conversations: Iterable[ConversationId], path: Path) -> None:
        """Write the shown branches of all of these that were opened since the start. Raises UserError."""
        known = [name for name in conversations if name in self._conversations and name in self._trees]
        save_markdown(path, *((self._conversations[name], self.branch(name)) for name in known))

    def delete(self, conversation: ConversationId) -> None:
        """Forget it, its messages and its running answers."""
        for answer in self.answers_of(conversation):
            del self._running[answer]
        self._store.delete_conversation(conversation)
        self._conversations.pop(conversation, None)
        self._trees.pop(conversation, None)
        if self._selected == conversation:
            self._selected = None
            self.select(next(iter(self._conversations))) if self._conversations else self.new()
        self.show_list()

    def fork(self, conversation: ConversationId, last: MessageId | None) -> ConversationId | None:
        """A new conversation with copies of the messages up to `last` (None: all). None where there are none."""
        known = self._conversations.get(conversation)
        messages = [m for m in self.branch(conversation) if m.state != "streaming"]
        if last is not None:
            end = next((i for i, message in enumerate(messages) if message.id == last), len(messages) - 1)
            messages = messages[: end + 1]
        if known is None or not messages:
            return None
        new = replace(self._made(f"{known.title}, forked", known.system_prompt), overflow=known.overflow)
        parent: MessageId | None = None
        copies = []
        for message in messages:
            copies.append(replace(message, id=new_message_id(), conversation=new.id, parent=parent))
            parent = copies[-1].id
        self._trees[new.id] = Tree(copies)
        self._keep(replace(new, leaf=parent))
        for copy in copies:
            self._store.put_message(copy)
        self.select(new.id)
        return new.id

    def overflow_of(self, conversation: ConversationId) -> Overflow:
        """What happens when the conversation's context is full."""
        chosen = self._conversations[conversation].overflow
        return Overflow(chosen) if chosen in set(Overflow) else self._settings().cache.overflow

    def choose_overflow(self, conversation: ConversationId, overflow: Overflow) -> None:
        """From its next answer on."""
        if (known := self._conversations.get(conversation)) is not None:
            self._update(replace(known, overflow=overflow.value))
            self.show_list()

    def show_list(self) -> None:
        self._window.show_conversations(tuple(self._conversations.values()), self._selected)

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, conversation: ConversationId, text: str) -> MessageId | None:
        """Add the person's message and ask for an answer. Returns the answer's id; None while one is running."""
        if not text.strip() or self.answer_of(conversation) is not None:
            return None
        if conversation not in self._trees:
            self._unsent[conversation] = text
            return None
        now = self._conversations[conversation]
        if text.startswith(now.draft):  # else something else is typed by now
            now = replace(now, draft="")
        if not len(self._trees[conversation]) and not now.title:
            now = replace(now, title=_title(text))
        self._conversations[conversation] = now
        shown = self.branch(conversation)
        self._add(conversation, "user", text, shown[-1].id if shown else None)
        return self._ask(conversation)

    def preview(self, conversation: ConversationId, text: str, replaced: MessageId | None = None) -> None:
        """Ask what sending `text` now would cost, in the place of a message or after all of them; nothing while the
        conversation is not read yet.
        """
        tree = self._trees.get(conversation)
        if tree is None or not text.strip():
            return
        old = tree.get(replaced) if replaced is not None else None
        before = self.branch(conversation)
        if old is not None:
            before = tree.branch(old.parent) if old.parent is not None else []
        question = Message(new_message_id(), conversation, None, "user", text)
        told = self._told(conversation, [*before, question])
        settings, evicted = self._settings(), self._conversations[conversation].evicted
        asked = PreviewTurn(conversation, told, self.overflow_of(conversation), settings.cache.n_keep, evicted)
        self._send(replace(asked, max_tokens=settings.sampling.max_tokens, n_typed=len(text)))

    def measure(self) -> None:
        """Ask how full the context of the shown conversation is; of one that is answered its turn tells.

        A question whose answer failed counts: it is what is asked when the answer is made again.
        """
        where = self._selected
        if where is None or where not in self._trees or self.answer_of(where) is not None:
            return
        shown = self.branch(where)
        while shown and shown[-1].role == "assistant" and not shown[-1].text:
            shown.pop()
        told = self._told(where, shown) if shown else ()
        evicted = self._conversations[where].evicted
        self._send(MeasureContext(where, told, self.overflow_of(where), self._settings().cache.n_keep, evicted))

    def edit(self, conversation: ConversationId, message: MessageId, text: str) -> MessageId | None:
        """The person's message in other words, as a branch beside the first; asks for an answer to it."""
        tree = self._trees.get(conversation)
        old = tree.get(message) if tree is not None else None
        if old is None or old.role != "user" or not text.strip() or self.answer_of(conversation) is not None:
            return None
        self._turn_to(conversation, old.parent)
        self._add(conversation, "user", text, old.parent)
        return self._ask(conversation)

    def regenerate(self, conversation: ConversationId, n: int = 1) -> None:
        """`n` new answers beside the last one, made together: all stay, as branches of the same question."""
        branch = self.branch(conversation)
        if self.answer_of(conversation) is None and branch and branch[-1].role == "assistant":
            for _ in range(n):
                self._turn_to(conversation, branch[-1].parent)
                self._ask(conversation, replaces=branch[-1].id)

    def show_branch(self, conversation: ConversationId, message: MessageId) -> None:
        """Show the newest branch that goes through a message."""
        tree = self._trees.get(conversation)
        if tree is None or tree.get(message) is None or self.answer_of(conversation) is not None:
            return
        self._keep(replace(self._conversations[conversation], leaf=tree.tip(message)))
        self._show(conversation)
        self.show_list()

    # --- events of the worker -----------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Shows:
        """Take an event over into conversations and store; touches no widget. Returns what then shows it."""
        match event:
            case TextDelta():
                if (running := self._running.get(event.answer)) is not None:
                    running.parts.append(event.text)
                    running.tokens += event.tokens
                    self._longer.add(event.answer)
            case TurnEnded():
                return self._end_turn(event)
            case MessagesEvicted():
                if (known := self._conversations.get(event.conversation)) is not None:
                    self._update(replace(known, evicted=event.evicted))
            case ModelLoaded():
                self.model_name = event.model.name
            case EngineDied():
                return self._end_running(event.sentence)
            case SubscriptionDropped():
                return self._begin_anew()
        return ()

    def store_running(self) -> None:
        """Hand the text so far of the answers that got longer to the writer, which keeps only the newest."""
        for answer in self._longer & self._running.keys():
            self._store.put_message(self._running[answer].now())
        self._longer.clear()

    def interrupt(self, note: str) -> None:
        """No more text will come: what runs ends here."""
        for show in self._end_running(note):
            guarded(show)

    # --- inside -------------------------------------------------------------------------------------------------------

    @Slot(str, object)
    def _on_tree_read(self, conversation: str, done: object) -> None:
        where = ConversationId(conversation)
        try:
            tree = done.result()  # type: ignore[attr-defined]
        except KvdeskError as error:
            unsent = self._unsent.pop(where, "")
            self._window.show_error(f"{error} Nothing can be added to this chat.", error.detail or unsent)
            return
        if where not in self._conversations:
            return  # deleted while it was read
        self._trees.setdefault(where, tree)
        if self._selected == where:
            self._show(where)
        if text := self._unsent.pop(where, ""):
            self.send(where, text)

    def _show(self, conversation: ConversationId) -> None:
        for show in self._branch_shows(conversation):
            show()

    def _branch_shows(self, conversation: ConversationId) -> Shows:
        """What shows its branch as it is now, with the text that has come so far."""
        if conversation != self._selected:
            return ()
        messages = tuple(self.branch(conversation))
        return (
            lambda: self._window.show_messages(conversation, messages),
            lambda: self._show_branches(conversation),
            self.measure,
        )

    def _show_branches(self, conversation: ConversationId) -> None:
        """Which messages have others at their place."""
        self._window.show_branches(conversation, self._trees[conversation].forks())

    def _turn_to(self, conversation: ConversationId, leaf: MessageId | None) -> None:
        """What is added next follows `leaf` (None: nothing)."""
        self._conversations[conversation] = replace(self._conversations[conversation], leaf=leaf)
        messages = self._trees[conversation].branch(leaf) if leaf is not None else []
        if conversation == self._selected:
            self._window.show_messages(conversation, tuple(messages))

    def _ask(self, conversation: ConversationId, replaces: MessageId | None = None) -> MessageId:
        """Ask for an answer to the conversation as it is."""
        asked = self.branch(conversation)
        answer = self._add(conversation, "assistant", "", asked[-1].id, streaming=True)
        self._running[answer.id] = Running(answer, replaces)
        settings, overflow = self._settings(), self.overflow_of(conversation)
        told = self._told(conversation, asked)
        n_keep, evicted = settings.cache.n_keep, self._conversations[conversation].evicted
        self._send(Generate(conversation, answer.id, told, settings.sampling, overflow, n_keep, evicted))
        return answer.id

    def _told(self, conversation: ConversationId, messages: list[Message]) -> tuple[Message, ...]:
        """What the model is shown: the system prompt and the messages that count."""
        prompt = self._conversations[conversation].system_prompt
        name = MessageId(f"{conversation}:system")  # the same in every turn
        system = (Message(name, conversation, None, "system", prompt),) if prompt.strip() else ()
        return system + history(messages)

    def _add(
        self,
        conversation: ConversationId,
        role: Role,
        text: str,
        parent: MessageId | None,
        *,
        streaming: bool = False,
    ) -> Message:
        state = "streaming" if streaming else "complete"
        model = self.model_name if role == "assistant" else ""
        message = Message(
            *(new_message_id(), conversation, parent, role, text, state),  # type: ignore[arg-type]
            created_ms=_now_ms(),
            model=model,
        )
        self._trees.setdefault(conversation, Tree()).put(message)
        self._keep(replace(self._conversations[conversation], leaf=message.id, updated_ms=_now_ms()))
        self._store.put_message(message)
        self._window.append_message(message)
        self._show_branches(conversation)
        self.show_list()
        return message

    def _end_turn(self, event: TurnEnded) -> Shows:
        running = self._running.pop(event.answer, None)
        if running is None:
            return ()  # its conversation was deleted meanwhile
        if running.replaces is not None and not running.parts:
            shows = self._take_back(running.message, running.replaces)
        else:
            shows = self._end(replace(running.now(), state=event.state, stats=event.stats, note=event.note))
        self._update(replace(self._conversations[event.conversation], updated_ms=_now_ms()))
        return (*shows, self.show_list)

    def _end_running(self, note: str) -> Shows:
        running, self._running = list(self._running.values()), {}
        return tuple(show for r in running for show in self._end(replace(r.now(), state="interrupted", note=note)))

    def _begin_anew(self) -> Shows:
        """The texts of the answers under way come again from their beginning."""
        for running in self._running.values():
            running.parts.clear()
            running.tokens.clear()
        return () if self._selected is None else self._branch_shows(self._selected)

    def _take_back(self, empty: Message, shown: MessageId) -> Shows:
        """A second answer that never said anything gives way to the first."""
        self._store.put_message(replace(empty, state="stopped"))
        self._trees[empty.conversation].discard(empty.id)
        self._update(replace(self._conversations[empty.conversation], leaf=shown))
        return self._branch_shows(empty.conversation)

    def _end(self, message: Message) -> Shows:
        """Put the final state of a message where it belongs: memory and database, then the window."""
        self._trees[message.conversation].put(message)
        self._store.put_message(message)
        return (lambda: self._window.update_message(message),)

    def _keep(self, conversation: Conversation) -> None:
        """Remember a conversation that a person has just used: it comes first in the list."""
        rest = {k: v for k, v in self._conversations.items() if k != conversation.id}
        self._conversations = {conversation.id: conversation, **rest}
        self._update(conversation)

    def _update(self, conversation: Conversation) -> None:
        """Remember what has changed by itself. Its place in the list stays: a pointer may be on it."""
        self._conversations[conversation.id] = conversation
        if conversation.leaf is not None or conversation.draft or conversation.queued:
            self._store.put_conversation(conversation)

    def _change(self, conversation: Conversation) -> None:
        """`_update`, where nothing may be left of an empty chat: then it is not stored any more."""
        self._update(conversation)
        if conversation.leaf is None and not conversation.draft and not conversation.queued:
            self._store.delete_conversation(conversation.id)

    def _made(self, title: str, system_prompt: str) -> Conversation:
        """A new conversation in the colour that is used least."""
        colours = [c.colour for c in self._conversations.values()]
        colour = min(range(N_COLOURS), key=lambda index: (colours.count(index), index))
        now = _now_ms()
        return Conversation(new_conversation_id(), title, colour, None, system_prompt, created_ms=now, updated_ms=now)


def read_tree(store: Store, conversation: ConversationId, leaf: MessageId | None) -> Tree:
    """The conversation's messages, the branch that is shown first walked already. On the store's thread: 20,000 of them
    take a tenth of a second, which the window shall not wait for.
    """
    tree = Tree(store.all_messages(conversation))
    tree.branch(leaf)
    return tree


def _title(text: str) -> str:
    """A title from the first message: its first line, shortened at a word."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
