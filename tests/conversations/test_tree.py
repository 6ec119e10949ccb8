"""The messages of a conversation as a tree."""

from kvdesk.conversations.tree import Tree
from kvdesk.message import ConversationId, Message, MessageId

C = ConversationId("c")


def made(name: str, parent: str | None, role: str = "user", text: str = "x", state: str = "complete") -> Message:
    return Message(MessageId(name), C, MessageId(parent) if parent else None, role, text, state)  # type: ignore[arg-type]


TREE = [
    made("q", None),
    made("a1", "q", "assistant"),
    made("a2", "q", "assistant"),
    made("follow", "a1"),
    made("a3", "q", "assistant", "", "stopped"),
    made("q2", None),
]


def test_a_branch_is_walked_from_its_leaf() -> None:
    tree = Tree(TREE)
    assert [m.id for m in tree.branch(MessageId("follow"))] == ["q", "a1", "follow"]
    assert [m.id for m in tree.branch(None)] == ["q2"], "without a leaf the newest message is it"
    assert Tree().branch(None) == []


def test_siblings_are_of_one_place_and_have_said_something() -> None:
    tree = Tree(TREE)
    assert tree.siblings(MessageId("a2")) == ("a1", "a2")
    assert tree.siblings(MessageId("q2")) == ("q", "q2")
    assert tree.siblings(MessageId("follow")) == ("follow",)


def test_the_tip_is_the_newest_that_follows() -> None:
    tree = Tree(TREE)
    assert tree.tip(MessageId("a1")) == "follow"
    assert tree.tip(MessageId("q")) == "a2"


def test_forks_are_the_places_where_several_stand() -> None:
    tree = Tree(TREE)
    assert tree.forks() == {name: tree.siblings(name) for name in ("q", "a1", "a2", "a3", "q2")}  # type: ignore[arg-type]
    assert Tree(TREE[:2]).forks() == {}


def test_a_branch_that_was_walked_before_has_what_was_put_since() -> None:
    tree = Tree(TREE)
    tree.branch(MessageId("a1"))
    tree.put(made("a1", "q", "assistant", "other"))
    assert [m.text for m in tree.branch(MessageId("a1"))] == ["x", "other"]
    tree.branch(MessageId("q2")).clear()
    assert [m.id for m in tree.branch(MessageId("q2"))] == ["q2"]


def test_a_circle_in_a_damaged_database_ends() -> None:
    tree = Tree([made("one", "two"), made("two", "one")])
    assert len(tree.branch(MessageId("one"))) == 2
    assert tree.tip(MessageId("one")) in ("one", "two")
