"""The branches of a conversation as a small tree: a row for each run of messages without a fork in it. Pure values."""

from kvdesk.conversations.tree import Tree
from kvdesk.message import Message, MessageId, Role
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class BranchRow:
    """Messages that follow each other, up to a fork or the end of a branch.

    parent    index of the row after which it comes, -1 for the beginning of the conversation
    messages  oldest first; role and text are those of the first one
    """

    parent: int
    messages: tuple[MessageId, ...]
    role: Role
    text: str


def branch_rows(tree: Tree) -> tuple[BranchRow, ...]:
    """Every row after that which it follows, branches of one fork in the order in which they were made.

    Answers that were stopped before they said anything are no branch.
    """
    following: dict[MessageId | None, list[Message]] = {}
    for name in tree.order:
        message = tree.get(name)
        if message is not None and (message.text or message.state != "stopped"):
            before = message.parent if tree.get(message.parent) is not None else None
            following.setdefault(before, []).append(message)
    rows: list[BranchRow] = []
    waiting = [(-1, first) for first in reversed(following.get(None, ()))]
    while waiting:
        parent, first = waiting.pop()
        run = [first]
        while len(after := following.get(run[-1].id, [])) == 1:
            run.append(after[0])
        rows.append(BranchRow(parent, tuple(message.id for message in run), first.role, first.text))
        number = len(rows) - 1
        waiting += ((number, branch) for branch in reversed(following.get(run[-1].id, ())))
    return tuple(rows)
