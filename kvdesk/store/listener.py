"""Keeps in the database what a `ConversationService` tells, and reads from it what the service asks for."""

from typing import assert_never

from kvdesk.chat import Conversation
from kvdesk.conversations.changes import (
    AnswerEnded,
    AnswersGrew,
    BranchChanged,
    Change,
    ConversationChanged,
    ConversationDeleted,
    ConversationsAdded,
    DeletionBegan,
    DraftChanged,
    MessagesAdded,
    MessagesChanged,
    MessagesDeleted,
    QueuesChanged,
    ReadFailed,
)
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, MessageId
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter


class StoreListener:
    """An empty conversation is kept while a user wants something of it: a draft, a title, a folder, a pin."""

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer
        self._kept: set[ConversationId] = set()

    def load(self) -> tuple[Conversation, ...]:
        """Every stored conversation, without its messages, the one used last first. Waits for the database."""
        found = self._writer.ask(Store.conversations).result()
        self._kept = {conversation.id for conversation in found}
        return found

    def __call__(self, change: Change) -> None:
        match change:
            case ConversationChanged() | DraftChanged():
                self._keep(change.conversation)
            case ConversationsAdded():
                for conversation in change.conversations:
                    self._keep(conversation)
            case MessagesAdded() | MessagesChanged() | AnswersGrew():
                for message in change.messages:
                    self._writer.put_message(message)
            case MessagesDeleted():
                self._writer.delete_messages(change.deleted)
            case AnswerEnded():
                if change.is_gone:
                    self._writer.delete_messages((change.message.id,))
                else:
                    self._writer.put_message(change.message)
            case ConversationDeleted():
                self._kept.discard(change.conversation)
                self._writer.delete_conversation(change.conversation)
            case BranchChanged() | ReadFailed() | QueuesChanged() | DeletionBegan():
                pass  # what is shown, and what waits for what, begins again with kvdesk; a deletion can be undone
            case _:
                assert_never(change)

    def _keep(self, conversation: Conversation) -> None:
        if not conversation.is_unused:
            self._kept.add(conversation.id)
            self._writer.put_conversation(conversation)
        elif conversation.id in self._kept:
            self._kept.discard(conversation.id)
            self._writer.delete_conversation(conversation.id)


def read_tree(store: Store, conversation: ConversationId, leaf: MessageId | None) -> Tree:
    """The conversation's messages, the branch that is shown first walked already. On the store's thread: 20,000 of them
    take a tenth of a second, which the window shall not wait for.
    """
    tree = Tree(store.all_messages(conversation))
    tree.branch(leaf)
    return tree
