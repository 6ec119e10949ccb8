"""The branches of a conversation as rows."""

from kvdesk.conversations.branch_rows import branch_rows
from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, Message, MessageId, Role

C = ConversationId("c")


def said(name: str, parent: str | None, role: Role = "user") -> Message:
    return Message(MessageId(name), C, None if parent is None else MessageId(parent), role, name)


def drawn(tree: Tree) -> list[tuple[int, str]]:
    return [(row.parent, " ".join(row.messages)) for row in branch_rows(tree)]


def test_a_conversation_without_forks_is_one_row() -> None:
    assert drawn(Tree([said("q", None), said("a", "q", "assistant"), said("q2", "a")])) == [(-1, "q a q2")]
    assert drawn(Tree()) == []


def test_every_fork_begins_rows_in_the_order_in_which_they_were_made() -> None:
    tree = Tree(
        [
            said("q", None),
            said("a1", "q", "assistant"),
            said("q2", "a1"),
            said("a2", "q", "assistant"),
            said("b1", "q2", "assistant"),
            said("b2", "q2", "assistant"),
            said("other", None),
        ]
    )
    assert drawn(tree) == [(-1, "q"), (0, "a1 q2"), (1, "b1"), (1, "b2"), (0, "a2"), (-1, "other")]
    assert branch_rows(tree)[1].role == "assistant"


def test_an_answer_without_a_word_is_no_branch_and_one_that_is_being_written_is() -> None:
    empty = Message(MessageId("no"), C, MessageId("q"), "assistant", "", "stopped")
    running = Message(MessageId("now"), C, MessageId("q"), "assistant", "", "streaming")
    tree = Tree([said("q", None), said("a1", "q", "assistant"), empty, running])
    assert drawn(tree) == [(-1, "q"), (0, "a1"), (0, "now")]


def test_a_deep_tree_and_a_damaged_one_are_drawn() -> None:
    deep = [said("0", None)]
    for n in range(1, 3000):
        deep += [said(str(n), str(n - 1)), said(f"x{n}", str(n - 1))]
    assert len(branch_rows(Tree(deep))) == 2 * 3000 - 1
    assert drawn(Tree([said("b", "nobody")])) == [(-1, "b")]
    assert drawn(Tree([said("a", "b"), said("b", "a")])) == []
