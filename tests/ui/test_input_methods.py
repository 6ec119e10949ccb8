"""Writing with an input method, by the events that one sends: what is composed is not sent, kept, counted or run."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent, QTextCharFormat
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.recording import Record
from tests.ui.samples import ONE, STATS, TWO, append_message, message, show_messages

KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_Tab)


def compose(field: QWidget, preedit: str) -> None:
    """What is composed so far, underlined as input methods do it."""
    line = QInputMethodEvent.Attribute(QInputMethodEvent.AttributeType.TextFormat, 0, len(preedit), QTextCharFormat())
    QApplication.sendEvent(field, QInputMethodEvent(preedit, [line]))


def commit(field: QWidget, text: str) -> None:
    event = QInputMethodEvent()
    event.setCommitString(text)
    QApplication.sendEvent(field, event)


def focused(window: MainWindow, field: QWidget, qtbot: QtBot) -> None:
    window.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)


def test_a_message_is_composed_and_then_sent(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent, told = record(window.commands.conversations.send), record(window.commands.conversations.keep_draft)
    composer = window.chat.composer
    edit = composer.edit
    focused(window, edit, qtbot)
    qtbot.keyClicks(edit, "a")
    window.chat.drafts.keep()
    composer._pause.stop()
    told.clear()
    compose(edit, "ni hao")
    for key in KEYS:
        qtbot.keyClick(edit, key)
    assert sent == []
    assert (composer.text, edit.hasFocus()) == ("a", True)
    window.chat.drafts.keep()
    assert told == []
    assert not composer._pause.isActive(), "what is composed is not counted"
    commit(edit, "你好")
    assert composer.text == "a你好"
    window.chat.drafts.keep()
    assert told == [(ONE, "a你好")]
    assert composer._pause.isActive()
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert sent == [(ONE, "a你好")]


def test_what_is_composed_is_a_part_of_what_a_click_sends(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent = record(window.commands.conversations.send)
    composer = window.chat.composer
    focused(window, composer.edit, qtbot)
    qtbot.keyClicks(composer.edit, "a ")
    compose(composer.edit, "ni hao")
    composer._send.click()
    assert sent == [(ONE, "a ni hao")]
    assert composer.text == composer.edit.textCursor().block().layout().preeditAreaText() == ""


def test_what_is_composed_stays_with_its_chat(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    told = record(window.commands.conversations.keep_draft)
    edit = window.chat.composer.edit
    focused(window, edit, qtbot)
    compose(edit, "ni hao")
    window.store.show_conversations(window.store.conversations.values(), TWO)
    assert (told, edit.toPlainText()) == ([(ONE, "ni hao")], "")
    assert edit.textCursor().block().layout().preeditAreaText() == ""


def test_esc_while_composing_stops_no_answer(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    stopped = record(window.commands.conversations.stop)
    append_message(window, message("a", "assistant", "", "streaming"))
    edit = window.chat.composer.edit
    focused(window, edit, qtbot)
    compose(edit, "ni")
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert stopped == []
    compose(edit, "")  # given up
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert stopped == [(ONE,)]


def test_a_long_composition_gets_its_line(window: MainWindow, qtbot: QtBot) -> None:
    edit = window.chat.composer.edit
    focused(window, edit, qtbot)
    low = edit.height()
    compose(edit, "zhe shi yi ge hen chang de ju zi " * 12)
    assert edit.height() > low
    compose(edit, "")
    assert edit.height() == low


def test_an_answer_that_is_edited(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, (message("q", "user", "Hi"), message("a", "assistant", "Hello", stats=STATS)))
    widget = window.chat.view.widget_of(MessageId("a"))
    widget.start_edit()
    edit = widget.editor.edit
    focused(window, edit, qtbot)
    compose(edit, "ni")
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert widget.editor is not None
    commit(edit, "你")
    assert edit.toPlainText() == "Hello你"
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert widget.editor is None


def search_fields(window: MainWindow) -> dict[str, QLineEdit]:
    window.rooms.show_models()
    window.rooms.show_settings()
    models, page = window.rooms.models, window.rooms.settings
    assert page is not None
    return {
        "chats": window.conversations.search,
        "folder": window.conversations.folder_field.edit,
        "models": models.filter,
        "hub": models.get_models.search,
        "settings": page.search,
        "log": window.inspector.log.filter_field,
        "palette": window.help.palette.edit,
    }


def test_every_search_field_composes(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    for name, field in search_fields(window).items():
        entered, changed = record(field.returnPressed), record(field.textChanged)
        compose(field, "ni")
        for key in KEYS:
            qtbot.keyClick(field, key)
        assert (name, entered, changed, field.text()) == (name, [], [], "")
        commit(field, "你")
        assert (name, changed, field.text()) == (name, [("你",)], "你")


def test_the_palette_runs_nothing_and_stays(window: MainWindow, qtbot: QtBot) -> None:
    helps = window.help
    helps.open_palette()
    edit, chosen = helps.palette.edit, helps.palette.chosen
    qtbot.waitUntil(edit.isVisible)
    compose(edit, "she")
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Escape):
        qtbot.keyClick(edit, key)
    assert helps.palette.isVisible()
    assert helps.palette.chosen is chosen
    compose(edit, "")
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert not helps.palette.isVisible()


def test_every_field_one_writes_in_composes(window: MainWindow) -> None:
    """A field without it would send, or leave, in the middle of a word."""
    fields = [*search_fields(window).values(), *window.findChildren(QPlainTextEdit)]
    lacking = {
        f"{type(field).__name__} {field.accessibleName()}"
        for field in fields
        if not (isinstance(field, QPlainTextEdit) and field.isReadOnly())
        and not any(type(child).__name__ == "_Composition" for child in field.children())
    }
    assert lacking == set()
