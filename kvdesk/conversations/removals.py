"""Deleting single messages, and undoing the last time that was done in a conversation.

Only the messages themselves go: those that followed hang on what was before. What is stored of them goes at once; a
removal is remembered for as long as kvdesk runs, and undoing it stores them again.
"""

from collections.abc import Callable, Sequence

from kvdesk.chat import Conversation, EvictedMessages
from kvdesk.conversations.changes import MessagesChanged, MessagesDeleted
from kvdesk.conversations.state import ConversationState
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.protocol.chat import DropMessages
from kvdesk.protocol.messages import Command
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Removal:
    """What was before it: the messages that went and those that followed them, their order, and the conversation."""

    messages: tuple[Message, ...]
    order: tuple[MessageId, ...]
    conversation: Conversation


class Removals:
    """`submit` gives the back end a command: the cells of deleted messages go, too."""

    def __init__(self, state: ConversationState, submit: Callable[[Command], None]) -> None:
        self._state, self._known, self._submit = state, state.known, submit
        self._last: dict[ConversationId, _Removal] = {}

    def delete(self, conversation: ConversationId, message: MessageId, *, with_pair: bool) -> bool:
        """`remove` a message; `with_pair`: the question with all versions of its answer."""
        return self.remove(conversation, self._exchange_of(conversation, message) if with_pair else [message])

    def _exchange_of(self, conversation: ConversationId, message: MessageId) -> tuple[MessageId, ...]:
        """A question with all versions of its answer, whichever of them this message is."""
        tree, known = self._known.tree(conversation), self._known.message(conversation, message)
        if tree is None or known is None:
            return ()
        question = known if known.role == "user" else tree.get(known.parent)
        if question is None or question.role != "user":
            return (message,)
        answers = [other.id for other in tree.following(question.id) if other.role == "assistant"]
        return (question.id, *answers)

    def remove(self, conversation: ConversationId, messages: Sequence[MessageId]) -> bool:
        """Delete these messages, and no others. Whether that was done: not while an answer is running."""
        tree, known = self._known.tree(conversation), self._known.get(conversation)
        if tree is None or known is None or self._state.is_answered(conversation):
            return False
        names = tuple(name for name in messages if tree.get(name) is not None)
        if not names:
            return False
        order, leaf = tree.order, self._leaf_without(tree, known.leaf, names)
        dropped = _with_all_after(tree, names)
        before: dict[MessageId, Message] = {}
        for name in names:
            for message in (tree.get(name), *tree.following(name)):
                if message is not None:
                    before.setdefault(message.id, message)
            tree.remove(name)
        if leaf is None and len(tree):
            leaf = tree.order[-1]
        self._last[conversation] = _Removal(tuple(before.values()), order, known)
        changed = tuple(message for name in before if (message := tree.get(name)) is not None)
        if changed:
            self._state.tell(MessagesChanged(changed))
        edits = tuple(edit for edit in known.edits if edit[0] not in names)
        self._state.put(replace(known, leaf=leaf, evicted=_without(known.evicted, set(names)), edits=edits))
        self._state.tell(MessagesDeleted(conversation, names, tuple(self._state.branch(conversation))))
        self._submit(DropMessages(conversation, dropped))
        return True

    def undo(self, conversation: ConversationId) -> MessageId | None:
        """Bring back what was deleted last; returns the first of it. None if that cannot be, or nothing was."""
        tree, known = self._known.tree(conversation), self._known.get(conversation)
        if tree is None or known is None or self._state.is_answered(conversation):
            return None
        removal = self._last.pop(conversation, None)
        if removal is None:
            return None
        back = tuple(m for m in removal.messages if tree.get(m.id) is None)
        kept = tuple(replace(now, parent=m.parent) for m in removal.messages if (now := tree.get(m.id)) is not None)
        leaf = known.leaf if len(set(tree.order) - set(removal.order)) else removal.conversation.leaf
        tree.put_back((*back, *kept), removal.order)
        self._state.put(replace(known, leaf=leaf, evicted=removal.conversation.evicted))
        self._state.tell(MessagesChanged((*back, *kept)))
        self._state.tell_branch(conversation)
        return back[0].id if back else None

    def forget(self, conversation: ConversationId) -> None:
        """The conversation is no more."""
        self._last.pop(conversation, None)

    def _leaf_without(self, tree: Tree, leaf: MessageId | None, names: Sequence[MessageId]) -> MessageId | None:
        """Where the shown branch ends without these messages: where one of several versions goes, with another."""
        if leaf not in names or leaf is None:
            return leaf
        others = [name for name in tree.siblings(leaf) if name != leaf]
        if len(names) == 1 and others:
            return tree.tip(others[-1])
        left = [message.id for message in tree.branch(leaf) if message.id not in names]
        return left[-1] if left else None


def _with_all_after(tree: Tree, names: Sequence[MessageId]) -> tuple[MessageId, ...]:
    """These messages, and those that were computed from them. A question without an answer was read as the beginning
    of the next one (`history`), under whose name it is in the cache.
    """
    found = dict.fromkeys(names)
    left = list(names)
    while left:
        after = [message.id for message in tree.following(left.pop()) if message.id not in found]
        found.update(dict.fromkeys(after))
        left += after
    return tuple(found)


def _without(evicted: EvictedMessages, names: set[MessageId]) -> EvictedMessages:
    """What was evicted, without these."""
    partial = None if evicted.partial is not None and evicted.partial[0] in names else evicted.partial
    cuts = tuple(cut for cut in evicted.cuts if cut[0] not in names)
    return replace(evicted, messages=evicted.messages - names, partial=partial, cuts=cuts)
