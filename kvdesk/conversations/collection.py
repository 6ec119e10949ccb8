"""All conversations and their messages, as far as they were read. Tells nobody of what is changed in it."""

import heapq
import time
from collections.abc import Iterable

from kvdesk.chat import Conversation
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, Message, MessageId, new_conversation_id


class Collection:
    """In the order in which a user used them, the last one first. `n_colours`: of the palette they are drawn in."""

    def __init__(self, n_colours: int = 1) -> None:
        self._n_colours = n_colours
        self._conversations: dict[ConversationId, Conversation] = {}
        self._trees: dict[ConversationId, Tree] = {}
        self._hidden: dict[ConversationId, None] = {}  # of which the deletion can be undone, oldest first

    def __len__(self) -> int:
        return len(self._conversations) - len(self._hidden)

    def __contains__(self, conversation: ConversationId) -> bool:
        return conversation in self._conversations

    def __getitem__(self, conversation: ConversationId) -> Conversation:
        return self._conversations[conversation]

    def get(self, conversation: ConversationId) -> Conversation | None:
        return self._conversations.get(conversation)

    def all(self) -> tuple[Conversation, ...]:
        """Those that a user sees."""
        return tuple(known for name, known in self._conversations.items() if name not in self._hidden)

    @property
    def hidden(self) -> tuple[ConversationId, ...]:
        """Those that were deleted and can be restored, in the order in which they were."""
        return tuple(self._hidden)

    def waiting(self) -> list[ConversationId]:
        """Those in which messages wait to be sent."""
        return [name for name, known in self._conversations.items() if known.queued]

    def tree(self, conversation: ConversationId) -> Tree | None:
        """All its messages; None if they were not read."""
        return self._trees.get(conversation)

    def message(self, conversation: ConversationId, message: MessageId) -> Message | None:
        """One of its messages; None if it is none of them, or they were not read."""
        tree = self._trees.get(conversation)
        return tree.get(message) if tree is not None else None

    def branch(self, conversation: ConversationId) -> list[Message]:
        """Its messages from the first to the leaf of the branch that is shown; none if they were not read."""
        tree, known = self._trees.get(conversation), self._conversations.get(conversation)
        return tree.branch(known.leaf) if tree is not None and known is not None else []

    # --- changes ------------------------------------------------------------------------------------------------------

    def load(self, conversations: Iterable[Conversation]) -> None:
        """These and no others, in this order."""
        self._conversations = {conversation.id: conversation for conversation in conversations}
        self._hidden.clear()

    def add(self, conversations: Iterable[Conversation]) -> None:
        """New ones, among the others by the time of their last change."""
        new = sorted(conversations, key=_changed_last)
        merged = heapq.merge(self._conversations.values(), new, key=_changed_last)
        self._conversations = {conversation.id: conversation for conversation in merged}

    def put(self, conversation: Conversation) -> None:
        """What is known of a conversation from now on. Its place stays."""
        self._conversations[conversation.id] = conversation

    def put_first(self, conversation: Conversation) -> None:
        """The same of a new one, or one that a user has just used."""
        rest = {name: known for name, known in self._conversations.items() if name != conversation.id}
        self._conversations = {conversation.id: conversation, **rest}

    def put_tree(self, conversation: ConversationId, tree: Tree) -> Tree:
        """Its messages, read or begun. What is known of them already counts more."""
        return self._trees.setdefault(conversation, tree)

    def put_message(self, message: Message) -> None:
        """A message as it is from now on."""
        self.put_tree(message.conversation, Tree()).put(message)

    def hide(self, conversation: ConversationId) -> None:
        """It is known, and not seen."""
        self._hidden[conversation] = None

    def unhide(self, conversation: ConversationId) -> None:
        """It is where it was."""
        self._hidden.pop(conversation, None)

    def remove(self, conversation: ConversationId) -> None:
        self._hidden.pop(conversation, None)
        self._conversations.pop(conversation, None)
        self._trees.pop(conversation, None)

    # --- new ones -----------------------------------------------------------------------------------------------------

    def made(self, title: str, system_prompt: str, overflow: str = "", leaf: MessageId | None = None) -> Conversation:
        """A new conversation in the colour that is used least. It is not among these yet."""
        colours = [known.colour for known in self._conversations.values()]
        colour = min(range(self._n_colours), key=lambda index: (colours.count(index), index))
        now = now_ms()
        return Conversation(new_conversation_id(), title, colour, leaf, system_prompt, now, now, overflow)


def _changed_last(conversation: Conversation) -> int:
    return -conversation.updated_ms


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000
