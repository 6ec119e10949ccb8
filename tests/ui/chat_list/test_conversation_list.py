"""The list of conversations, by mouse and keyboard."""

from PySide6.QtCore import QMimeData, QModelIndex, Qt
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId, MessageId
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.chat.found import FoundRow
from tests.ui.recording import Record
from tests.ui.samples import CONVERSATIONS, ONE, TWO

WORK = tuple(Conversation(ConversationId(name), name, 0, folder="Work") for name in ("plan", "budget"))
PINNED = Conversation(ConversationId("top"), "top", 0, pinned=True)
OLD = Conversation(ConversationId("old"), "old", 0, archived=True)
ALL = (*CONVERSATIONS, *WORK, PINNED, OLD)


def names(window: MainWindow) -> list[str]:
    model = window.conversations.view.model()
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def go_to(window: MainWindow, name: str) -> QModelIndex:
    view = window.conversations.view
    index = view.model().index(names(window).index(name), 0)
    view.setCurrentIndex(index)
    return index


def entries(menu: QMenu) -> dict[str, object]:
    return {action.text().split("\t")[0]: action for action in menu.actions() if action.text()}


def choose(window: MainWindow, *path: str) -> None:
    menu = window.conversations.menu()
    assert menu is not None
    for name in path[:-1]:
        menu = entries(menu)[name].menu()  # type: ignore[attr-defined]
    entries(menu)[path[-1]].trigger()  # type: ignore[attr-defined]


def test_pinned_first_then_folders_then_the_rest(window: MainWindow) -> None:
    window.store.show_conversations(ALL, ONE)
    assert names(window) == ["top", "Work", "plan", "budget", "A village far away", "Caches"]
    window.store.show_conversations([replace(known, pinned=known.pinned or known.id == "budget") for known in ALL], ONE)
    assert names(window)[:4] == ["top", "Work", "budget", "plan"], "a pinned chat stays in its folder"
    assert window.conversations.view.currentIndex().data() == "A village far away"
    accessible = Qt.ItemDataRole.AccessibleTextRole
    assert go_to(window, "Work").data(accessible) == "Folder Work, open, chats: 2"
    assert str(go_to(window, "top").data(accessible)).startswith("top, pinned")


def test_a_folder_is_collapsed_and_opened_by_keys_and_mouse(window: MainWindow, qtbot: QtBot) -> None:
    window.store.show_conversations(ALL, ONE)
    view = window.conversations.view
    collapsed: list[tuple[str, ...]] = []
    settings = window.store.settings
    window.destroyed.connect(settings.listen(lambda _changed: collapsed.append(settings.current.collapsed_folders)))
    view.setFocus()
    go_to(window, "plan")
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.folder == "Work", "Left goes from a chat to the head of its folder"
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert names(window) == ["top", "Work", "A village far away", "Caches"]
    assert view.folder == "Work", "and stays there"
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert "plan" in names(window)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert "plan" not in names(window)
    head = view.visualRect(view.model().index(1, 0)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=head)
    assert "plan" in names(window)
    assert collapsed == [("Work",), (), ("Work",), ()]


def test_the_folder_of_a_chat_that_is_gone_to_opens(window: MainWindow) -> None:
    window.store.show_conversations(ALL, ONE)
    window.store.settings.change(collapsed_folders=("Work",))
    assert "plan" not in names(window)
    window.store.show_conversations(ALL, WORK[0].id)
    assert window.conversations.view.currentIndex().data() == "plan"


def test_a_menu_arranges_the_chat(window: MainWindow, record: Record) -> None:
    listed = window.conversations
    window.store.show_conversations(ALL, ONE)
    pinned, archived = record(window.commands.conversations.arrangement.pin), record(window.commands.archive)
    moved = record(window.commands.move)
    choose(window, "Pin")
    choose(window, "Archive")
    choose(window, "Move to folder", "Work")
    assert (pinned, archived, moved) == ([(ONE, True)], [(ONE, True)], [(ONE, "Work")])
    go_to(window, "top")
    choose(window, "Unpin")
    assert pinned[-1] == ("top", False)
    menu = listed.menu()
    assert menu is not None
    assert list(entries(menu)) == ["Rename", "Unpin", "Move to folder", "Archive", "Export…", "Cache", "Delete"]
    cache = entries(menu)["Cache"].menu()  # type: ignore[attr-defined]
    assert {"Forget cells", "Keep only its cells", "Swap out of the cache"} <= set(entries(cache))


def test_the_menu_of_any_row_comes_from_its_dots_a_right_click_or_the_menu_key(
    window: MainWindow, qtbot: QtBot, record: Record
) -> None:
    listed = window.conversations
    window.store.show_conversations(ALL, ONE)
    view, deleted, selected = listed.view, record(window.commands.delete), record(window.commands.select)
    other = view.model().index(names(window).index("plan"), 0)
    left, right = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
    qtbot.mouseClick(view.viewport(), left, pos=view.more_rect(other).center())
    assert menu_of("Delete") == "Delete\tDel"
    assert deleted == [("plan",)]
    at = view.visualRect(other).center()
    qtbot.mouseClick(view.viewport(), right, pos=at)
    reason = QContextMenuEvent.Reason
    view.contextMenuEvent(QContextMenuEvent(reason.Mouse, at, view.viewport().mapToGlobal(at)))
    menu_of("Delete")
    assert deleted == [("plan",), ("plan",)]
    assert selected == [], "the chat that one reads stays"
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    menu_of("Delete")
    assert deleted[-1] == (ONE,), "by key it is that of the current row"
    qtbot.mouseClick(view.viewport(), left, pos=view.more_rect(view.model().index(1, 0)).center())
    assert menu_of("").startswith("Rename the folder")
    assert "plan" in names(window), "a folder is not collapsed by that"


def menu_of(name: str) -> str:
    """Trigger an entry of the menu that is open, the first for an empty name; its whole text."""
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    action = next(action for action in menu.actions() if action.text().startswith(name))
    if name:
        action.trigger()
    menu.close()
    return action.text()


def test_a_new_folder_is_named_in_the_list(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    listed, moved = window.conversations, record(window.commands.move)
    window.store.show_conversations(ALL, ONE)
    choose(window, "Move to folder", "New folder…")
    assert listed.folder_field.isVisible()
    view, row = listed.view, listed.view.visualRect(listed.view.currentIndex())
    below = view.viewport().mapTo(listed, row.bottomLeft()).y() + 1
    assert listed.folder_field.y() == below, "at the row of the chat"
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not listed.folder_field.isVisible()
    assert listed.view.hasFocus()
    choose(window, "Move to folder", "New folder…")
    qtbot.keyClicks(listed.folder_field.edit, "Holidays")
    qtbot.keyClick(listed.folder_field.edit, Qt.Key.Key_Return)
    assert moved == [(ONE, "Holidays")]
    assert not listed.folder_field.isVisible()


def test_a_folder_is_renamed_and_removed(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    listed, renamed = window.conversations, record(window.commands.conversations.arrangement.rename_folder)
    window.store.show_conversations(ALL, ONE)
    listed.view.setFocus()
    go_to(window, "Work")
    qtbot.keyClick(listed.view, Qt.Key.Key_F2)
    editor = listed.view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    editor.setText("Job")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(renamed))
    choose(window, "Remove the folder")
    assert renamed == [("Work", "Job"), ("Work", "")]


def test_a_name_that_is_being_typed_stays_when_the_list_changes(
    window: MainWindow, qtbot: QtBot, record: Record
) -> None:
    view, renamed = window.conversations.view, record(window.commands.conversations.rename)
    window.store.show_conversations(ALL, ONE)
    window.action_set.run("chat.rename")
    editor = view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    editor.setText("Puffins")
    later = [replace(known, title="Named meanwhile", updated_ms=9) if known.id == ONE else known for known in ALL]
    window.store.show_conversations(later, ONE)
    window.store.show_conversations((PINNED, *later[:2], *WORK), ONE)
    window.store.show_conversations((*later[:2], Conversation(ConversationId("new"), "new", 99)), ONE)
    assert editor.isVisible()
    qtbot.waitUntil(lambda: editor.geometry().top() == view.visualRect(view.currentIndex()).top())
    assert editor.text() == "Puffins"
    assert editor.hasFocus()
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(renamed))
    assert renamed == [(ONE, "Puffins")]


def test_what_is_renamed_or_begun_is_brought_into_the_list(window: MainWindow, qtbot: QtBot) -> None:
    listed = window.conversations
    window.store.show_conversations(ALL, ONE)
    qtbot.mouseClick(listed.archive, Qt.MouseButton.LeftButton)
    assert names(window) == ["old"]
    window.action_set.run("chat.new")
    assert "A village far away" in names(window)
    window.store.show_conversations(ALL, WORK[0].id)
    window.store.settings.change(collapsed_folders=("Work",))
    assert "plan" not in names(window)
    window.action_set.run("chat.rename")
    editor = listed.view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    assert editor.text() == "plan"
    qtbot.keyClick(editor, Qt.Key.Key_Escape)
    window.store.show_conversations(ALL, OLD.id)
    window.action_set.run("chat.rename")
    assert names(window) == ["old"]
    assert listed.view.findChildren(QLineEdit)[-1].text() == "old"


def test_the_archive_is_behind_a_button(window: MainWindow, qtbot: QtBot) -> None:
    button = window.conversations.archive
    assert not button.isVisible()
    window.store.show_conversations(ALL, ONE)
    assert button.text() == "Archived (1)"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert names(window) == ["old"]
    go_to(window, "old")
    menu = window.conversations.menu()
    assert menu is not None
    assert "Take out of the archive" in entries(menu)
    window.store.show_conversations((*CONVERSATIONS, replace(OLD, archived=False)), ONE)
    assert names(window) == ["A village far away", "Caches", "old"], "an empty archive is left"


def test_a_chat_is_dragged_into_a_folder_and_out_of_it(window: MainWindow, record: Record) -> None:
    window.store.show_conversations(ALL, ONE)
    moved, view = record(window.commands.move), window.conversations.view
    model = view.model()
    rows = {name: model.index(number, 0) for number, name in enumerate(names(window))}
    move = Qt.DropAction.MoveAction
    dragged = model.mimeData([rows["Caches"]])
    assert model.flags(rows["Caches"]) & Qt.ItemFlag.ItemIsDragEnabled
    assert not model.flags(rows["Work"]) & Qt.ItemFlag.ItemIsDragEnabled
    model.dropMimeData(dragged, move, -1, -1, rows["Work"])
    model.dropMimeData(dragged, move, -1, -1, rows["plan"])
    model.dropMimeData(model.mimeData([rows["plan"]]), move, -1, -1, QModelIndex())
    model.dropMimeData(QMimeData(), move, -1, -1, rows["Work"])
    assert moved == [(TWO, "Work"), (TWO, "Work"), ("plan", "")]


def test_undo_is_offered_and_has_a_key(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    listed, undone = window.conversations, record(window.commands.undo_delete)
    window.store.show_deleted(["Puffins"])
    assert listed.undo.text == "Deleted: “Puffins”"
    window.store.show_deleted(["Puffins", "Caches"])
    assert listed.undo.text == "Deleted: “Caches” and 1 more"
    qtbot.mouseClick(listed.undo.button, Qt.MouseButton.LeftButton)
    window.store.show_deleted(["Puffins"])
    listed.view.setFocus()
    qtbot.keyClick(listed.view, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert len(undone) == 2
    window.store.show_deleted([])
    assert listed.undo.text == ""


ROWS = (
    FoundRow(TWO, None, "Caches", is_hit=False),
    FoundRow(TWO, MessageId("m1"), "…of a ring buffer in it…"),
    FoundRow(TWO, MessageId("m2"), "Ring by ring"),
    FoundRow(ONE, None, "The ring"),
)


def search(listed: ConversationList, qtbot: QtBot) -> None:
    listed.search.setFocus()
    qtbot.keyClicks(listed.search, "ring")
    listed.show_found("ring", ("ring",), ROWS)


def test_what_a_search_found_takes_the_place_of_the_list(window: MainWindow, qtbot: QtBot) -> None:
    listed = window.conversations
    search(listed, qtbot)
    assert listed.results.isVisible()
    assert not listed.view.isVisible()
    listed.show_found("rin", ("rin",), ())
    assert listed.results.rows == ROWS, "an answer to what was typed before is ignored"
    assert not listed.results.grab().isNull()
    listed.show_found("ring", ("ring",), ())
    assert not listed.results.isVisible()
    listed.search.clear()
    assert listed.view.isVisible()
    listed.show_found("ring", ("ring",), ROWS)
    assert listed.view.isVisible()


def test_hits_are_walked_with_f3_from_anywhere(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    listed, chosen = window.conversations, record(window.commands.open_found)
    search(listed, qtbot)
    qtbot.keyClick(listed.search, Qt.Key.Key_Return)
    window.chat.composer.focus_edit()
    for _ in range(3):
        qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_F3)
    assert chosen == [(TWO, "m1"), (TWO, "m2"), (ONE, None), (TWO, "m1")], "a title that has not the word is no hit"
    for _ in range(2):
        qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
    assert chosen[-2:] == [(ONE, None), (TWO, "m2")]
    listed.search.clear()
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_F3)
    assert listed.search.hasFocus(), "nothing is looked for yet"


def test_results_are_walked_with_the_arrows_and_left_with_escape(
    window: MainWindow, qtbot: QtBot, record: Record
) -> None:
    listed, chosen = window.conversations, record(window.commands.open_found)
    search(listed, qtbot)
    qtbot.keyClick(listed.search, Qt.Key.Key_Down)
    assert listed.results.hasFocus()
    qtbot.keyClick(listed.results, Qt.Key.Key_Down)
    qtbot.keyClick(listed.results, Qt.Key.Key_Down)
    assert chosen[-1] in {(TWO, "m1"), (TWO, "m2")}
    qtbot.keyClick(listed.results, Qt.Key.Key_Escape)
    assert listed.search.text() == ""
    assert listed.view.isVisible()


def test_the_chat_that_is_shown_is_arranged_from_the_palette(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    listed = window.conversations
    window.store.show_conversations(ALL, ONE)
    pinned, archived, deleted = (
        record(window.commands.conversations.arrangement.pin),
        record(window.commands.archive),
        record(window.commands.delete),
    )
    window.chat.composer.focus_edit()
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_T, keys)
    for name in ("chat.archive", "chat.delete", "chat.rename"):
        window.action_set.run(name)
    assert (pinned, archived, deleted) == ([(ONE, True)], [(ONE, True)], [(ONE,)])
    editor = listed.view.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    assert editor.text() == "A village far away"
    assert window.action_set["chat.undo"].refusal() != ""
    window.store.show_deleted(["Puffins"])
    assert window.action_set["chat.undo"].refusal() == ""


def test_a_folder_is_chosen_by_keys_alone(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    moved = record(window.commands.move)
    window.store.show_conversations(ALL, ONE)
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_M, keys)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert [action.text() for action in menu.actions() if action.text()] == ["No folder", "Work", "New folder…"]
    qtbot.keyClick(menu, Qt.Key.Key_Down)
    qtbot.keyClick(menu, Qt.Key.Key_Return)
    assert moved == [(ONE, "Work")]


def test_collapsed_folders_are_a_setting(window: MainWindow) -> None:
    window.store.show_conversations(ALL, ONE)
    store = window.store.settings
    window.conversations.view.collapsed.emit("Work", True)
    assert store.current.collapsed_folders == ("Work",)
    store.change(collapsed_folders=())
    assert "plan" in names(window)
    store.change(collapsed_folders=("Work",))
    assert "plan" not in names(window)


def test_the_cross_of_the_search_is_grey_on_both_grounds(window: MainWindow) -> None:
    window.conversations.search.setText("words")
    action = window.conversations.search.findChild(QAction, "_q_qlineeditclearaction")
    window.conversations.search.clear()
    image = action.icon().pixmap(20, 20).toImage()
    drawn = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    assert {100 < ink.value() < 160 for ink in drawn if ink.alpha() > 200} == {True}


def test_the_dot_of_a_chat_grows_with_the_text(window: MainWindow, qtbot: QtBot) -> None:
    view, theme = window.conversations.view, window.theme
    window.resize(1900, 900)
    window.store.show_conversations([Conversation(ConversationId("x"), "x", 3)], None)
    view.setCurrentIndex(QModelIndex())

    def widest() -> int:
        """Of the ring, in pixels."""
        picture, row = view.viewport().grab().toImage(), view.visualRect(view.model().index(0, 0))
        ground, places = picture.pixelColor(theme.px(2), row.center().y()), range(theme.px(2), theme.px(24))
        at = [x for x in places for y in range(row.top(), row.bottom()) if picture.pixelColor(x, y) != ground]
        return max(at) - min(at) + 1 if at else 0

    before = widest()
    assert 8 <= before <= 12
    window.store.settings.change(zoom=200)
    qtbot.waitUntil(lambda: abs(widest() - 2 * before) <= 3)
