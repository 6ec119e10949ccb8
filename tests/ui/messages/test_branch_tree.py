"""The tree of branches over the messages: walked with the arrows, the chat follows."""

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.conversations.branch_rows import BranchRow
from kvdesk.message import MessageId
from kvdesk.protocol.cache import Lease
from kvdesk.ui.messages.branch_tree import BranchTree
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.kit import Kit
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import CONVERSATIONS, ONE, cache_view, message, show_messages

M = MessageId
ROWS = (
    BranchRow(-1, (M("q"),), "user", "Tell me\na joke"),
    BranchRow(0, (M("a1"), M("q2"), M("a2")), "assistant", "A horse walks into a bar."),
    BranchRow(0, (M("b1"),), "assistant", "Knock, knock."),
)
SHOWN = frozenset({M("q"), M("b1")})


def texts(tree: BranchTree) -> list[str]:
    return [str(item.data(0, Qt.ItemDataRole.AccessibleTextRole)) for item in tree._items]


def test_a_row_says_whether_it_is_shown_and_in_the_cache(kit: Kit, qtbot: QtBot) -> None:
    tree = BranchTree(kit)
    qtbot.addWidget(tree)
    tree.show_rows(ROWS, SHOWN, 0)
    assert texts(tree) == [
        "You: Tell me a joke, shown",
        "Answer: A horse walks into a bar., +2 more",
        "Answer: Knock, knock., shown",
    ], "nobody knows what is in the cache"
    tree.show_cached({M("q2"): (2, 5)})
    assert texts(tree) == [
        "You: Tell me a joke, shown, sequence 5",
        "Answer: A horse walks into a bar., +2 more, sequence 5",
        "Answer: Knock, knock., shown, not in the cache",
    ]
    assert [item.text(1) for item in tree._items] == ["", "+2 more  ·  sequence 5", ""], "at the end of a branch"
    tree.show_cached({})
    assert all(text.endswith("not in the cache") for text in texts(tree))
    current = tree.tree.currentItem()
    assert current.text(0) == "Answer: Knock, knock."


def test_walking_shows_the_branch_on_which_one_stands_still(kit: Kit, qtbot: QtBot, record: Record) -> None:
    tree = BranchTree(kit)
    qtbot.addWidget(tree)
    chosen = record(kit.commands.conversations.turns.show_branch)
    kit.store.show_conversations(CONVERSATIONS, ONE)
    tree.show_rows(ROWS, SHOWN, 0)
    tree.open_tree()
    qtbot.keyClick(tree.tree, Qt.Key.Key_Up)
    qtbot.keyClick(tree.tree, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: not tree._walking.isActive())
    assert chosen == [], "the question is shown already"
    qtbot.keyClick(tree.tree, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: bool(chosen))
    assert chosen == [(ONE, "a2")]
    tree.show_rows(ROWS, frozenset({M("q"), M("a1"), M("q2"), M("a2")}), 0)
    current = tree.tree.currentItem()
    assert current.text(0).startswith("Answer: A horse"), "one stays where one is"
    assert not tree._walking.isActive()


def test_it_is_opened_from_the_header_by_keys_and_closed_by_escape(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, (message("q", "user", "Joke?"), message("b1", "assistant", "Knock.")))
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    tree = window.chat.branch_tree
    qtbot.keyClick(window, Qt.Key.Key_B, keys)
    assert not tree.isVisible()
    assert "one branch only" in window.activity.text
    window.store.show_forks({M("a1"): (M("a1"), M("b1")), M("b1"): (M("a1"), M("b1"))})
    qtbot.keyClick(window, Qt.Key.Key_B, keys)
    assert tree.isVisible()
    tree.show_rows(ROWS, SHOWN, 0)
    view = cache_view()
    window.store.apply(replace(view, leases=(Lease(ONE, 0, last=M("b1")), *view.leases[1:])))
    qtbot.waitUntil(lambda: texts(tree)[2].endswith(", sequence 0"))
    assert texts(tree)[1].endswith("not in the cache")
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not tree.isVisible()
    assert window.chat.composer.edit.hasFocus()


def test_closing_it_takes_the_keyboard_from_nobody_else(window: MainWindow) -> None:
    tree = window.chat.branch_tree
    show_messages(window, ONE, (message("q", "user", "Joke?"), message("b1", "assistant", "Knock.")))
    tree.show_rows(ROWS, SHOWN, 0)
    tree.open_tree()
    window.conversations.view.setFocus()
    tree.close_tree()
    assert not tree.isVisible()
    assert window.conversations.view.hasFocus()


def test_walking_while_an_answer_is_written_says_why_nothing_comes(
    window: MainWindow, qtbot: QtBot, record: Record
) -> None:
    chosen = record(window.commands.conversations.turns.show_branch)
    show_messages(window, ONE, (message("q", "user", "Joke?"), message("b1", "assistant", "", "streaming")))
    tree = window.chat.branch_tree
    tree.show_rows(ROWS, SHOWN, 0)
    tree.open_tree()
    qtbot.keyClick(tree.tree, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: window.activity.text == "An answer is being written; stop it first.")
    assert chosen == []
