"""Attachments of a draft, by paste, drop and button: costs, shortened, removed, text again; and cards afterwards."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QFrame
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.message import Attachment, MessageId, attachment_as_read
from kvdesk.protocol.chat import TurnPreview
from kvdesk.session.changed import Notice
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.messages.attachment_cards import AttachmentCard
from kvdesk.ui.messages.message_edit import LONG_PASTE
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.chat.attachment_facts import shortened
from tests.ui.drops import dragged, drop
from tests.ui.recording import Record, hear
from tests.ui.samples import ONE, TWO, message, show_messages
from tests.ui.seen import encoding, row_button

PAPER = Attachment("paper.pdf", "pdf", "All work and no play. " * 60, "3 pages")
NOTES = Attachment("notes & more.txt", "text", "short")


@pytest.fixture
def kept(window: MainWindow) -> list[tuple[Attachment, ...]]:
    """What is to be attached, in order; the window is shown each, as the conversations would."""
    changes: list[tuple[Attachment, ...]] = []

    def change(conversation: str, attachments: tuple[Attachment, ...]) -> None:
        changes.append(attachments)
        assert conversation == ONE
        show(window, *attachments)

    hear(window.commands.attach, change)
    return changes


def show(window: MainWindow, *attachments: Attachment) -> None:
    one = Conversation(ONE, "A village far away", 0, draft_attachments=attachments)
    window.store.show_conversations((one, Conversation(TWO, "Caches", 1)), ONE)


def preview(window: MainWindow, *n_tokens: int, text: str = "", refused: str = "", n_fitting: int = 0) -> None:
    """The engine has counted the draft."""
    chars = tuple(len(attachment_as_read(a)) for a in window.chat.composer.attachments.attachments)
    found = TurnPreview(ONE, 0, sum(n_tokens), 1000.0, "about 1 s", 1024, 100, sum(n_tokens), 128, text=text)
    found = replace(found, n_attached=n_tokens, attached_chars=chars, refused=refused, n_attached_fitting=n_fitting)
    window.store.apply(found)


def test_a_pasted_picture_is_refused_with_a_sentence(window: MainWindow) -> None:
    """A screenshot; from a spreadsheet, which gives text and a picture of it, the text is pasted."""
    edit = window.chat.composer.edit
    heard: list[object] = []
    forget = window.store.listen(lambda _changed, update: heard.append(update))
    pasted = QMimeData()
    pasted.setImageData(QImage(8, 8, QImage.Format.Format_RGB32))
    paste(window, pasted)
    forget()
    (said,) = (one for one in heard if isinstance(one, Notice))
    assert said.sentence.startswith("A picture cannot be pasted.")
    assert edit.toPlainText() == ""
    pasted.setText("1\t2")
    paste(window, pasted)
    assert edit.toPlainText() == "1\t2"
    edit.clear()


def test_a_long_paste_becomes_an_attachment_and_text_again(
    window: MainWindow, kept: list[tuple[Attachment, ...]], qtbot: QtBot
) -> None:
    composer = window.chat.composer
    composer.edit.setFocus()
    for length in (LONG_PASTE, LONG_PASTE + 1, LONG_PASTE + 2):
        QGuiApplication.clipboard().setText("x" * length)
        qtbot.keyClick(composer.edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert composer.text == "x" * LONG_PASTE
    assert [a.name for a in kept[-1]] == ["Pasted text", "Pasted text 2"]
    composer.set_text("before ")
    button = row_button(composer.attachments, 1, "Put Pasted text 2 into the message box as text")
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert composer.text == "before " + "x" * (LONG_PASTE + 2)
    assert [a.name for a in kept[-1]] == ["Pasted text"]


def test_files_are_pasted_dropped_and_chosen(
    window: MainWindow, record: Record, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = record(window.commands.attach_files)
    opened = record(window.commands.open_model)
    paste(window, dragged(tmp_path / "a.txt"))
    assert window.chat.composer.text == ""
    for target in (window.chat.composer.edit.viewport(), window.chat):
        assert drop(target, tmp_path / "b.pdf")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(tmp_path / "c.docx")], ""))
    qtbot.keyClick(window, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert given == [(ONE, [str(tmp_path / name)]) for name in ("a.txt", "b.pdf", "b.pdf", "c.docx")]
    assert opened == []


@pytest.mark.parametrize(("name", "text"), [("tiny.gguf", ""), ("chats.json", '{"format": "kvdesk conversations"}')])
def test_files_that_are_dragged_are_left_to_the_window(
    window: MainWindow, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    data = dragged(tmp_path / name)
    about = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    edit = window.chat.composer.edit
    QApplication.sendEvent(edit.viewport(), QDragEnterEvent(QPoint(5, 5), *about))
    assert window.drops.hint.startswith("Drop to "), "the window says what it does"
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert edit.toPlainText() == ""


def paste(window: MainWindow, data: QMimeData) -> None:
    """As Qt pastes, but not from its clipboard: that would delete what Python made (a run ended there by SIGSEGV)."""
    edit = window.chat.composer.edit
    assert edit.canInsertFromMimeData(data)
    edit.insertFromMimeData(data)


def test_a_web_address_is_pasted_as_text(window: MainWindow) -> None:
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/a.pdf")])
    data.setText("https://example.org/a.pdf")
    paste(window, data)
    assert window.chat.composer.text == "https://example.org/a.pdf"


def test_the_cost_is_shown_and_what_is_attached_alone_can_be_sent(
    window: MainWindow, kept: list[tuple[Attachment, ...]], record: Record, qtbot: QtBot
) -> None:
    conversations = window.commands.conversations
    sent, asked = record(conversations.send), record(conversations.turns.preview)
    show(window, PAPER, NOTES)
    composer = window.chat.composer
    assert [cost.full_text for cost in composer.attachments._costs] == ["1.3 kB  ·  3 pages", "5 B"]
    qtbot.waitUntil(lambda: asked == [(ONE, "")])
    preview(window, 300, 20)
    costs = ["1.3 kB  ·  300 tokens  ·  0.94 s  ·  3 pages", "5 B  ·  20 tokens  ·  0.06 s"]
    assert [cost.full_text for cost in composer.attachments._costs] == costs
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == [(ONE, "")]
    assert [a.n_tokens for a in kept[-1]] == [300, 20], "the message keeps what the model counted"


def test_one_can_be_removed_by_keyboard(window: MainWindow, kept: list[tuple[Attachment, ...]], qtbot: QtBot) -> None:
    show(window, PAPER, NOTES)
    remove = row_button(window.chat.composer.attachments, 0, "Remove paper.pdf")
    remove.setFocus()
    qtbot.keyClick(remove, Qt.Key.Key_Space)
    assert kept == [(NOTES,)]
    assert window.chat.composer.edit.hasFocus()


def test_what_fits_is_offered_and_all_of_it_again(
    window: MainWindow, kept: list[tuple[Attachment, ...]], qtbot: QtBot
) -> None:
    show(window, PAPER)
    composer = window.chat.composer
    preview(window, 2000, refused="The conversation needs 2,100 tokens.", n_fitting=400)
    link = composer.help.links[0]
    assert (link.text(), link.isVisible(), composer.help.isVisible()) == ("Keep what fits", True, True)
    qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    ((part,),) = kept
    assert (part.name, PAPER.text.startswith(part.text)) == ("paper.pdf, first part", True)
    assert 380 < len(attachment_as_read(part)) <= 400
    assert not composer.help.isVisible()
    qtbot.mouseClick(row_button(composer.attachments, 0, "Attach all of paper.pdf"), Qt.MouseButton.LeftButton)
    assert kept[-1] == (PAPER,)
    preview(window, 2000, refused="The conversation needs 2,100 tokens.")
    assert not link.isVisible(), "nothing of it fits"


def test_files_without_room_are_named(window: MainWindow) -> None:
    show(window, PAPER, NOTES, replace(NOTES, name="more.md"))
    preview(window, 2000, 20, 20, refused="The conversation needs 2,100 tokens.", n_fitting=400)
    heard: list[object] = []
    forget = window.store.listen(lambda _changed, update: heard.append(update))
    window.chat.composer.help.links[0].click()
    forget()
    assert Notice(f"There is no room for {NOTES.name}, more.md.", "warning") in heard


def test_shortening_takes_from_the_end() -> None:
    n = len(attachment_as_read(NOTES))
    assert shortened((NOTES, PAPER), n + 100)[0] == NOTES
    assert len(attachment_as_read(shortened((NOTES, PAPER), n + 100)[1])) <= 100
    assert shortened((NOTES, PAPER), n + 3) == (NOTES,)
    assert shortened((NOTES, PAPER), 3) == ()


def test_files_that_are_read_are_shown_and_can_be_stopped(window: MainWindow, record: Record, qtbot: QtBot) -> None:
    stopped = record(window.commands.cancel_reading)
    window.store.show_reading({ONE: {7: "long.pdf"}, TWO: {8: "other.pdf"}}, {})
    rows = window.chat.composer.attachments
    assert rows.isVisible()
    qtbot.mouseClick(row_button(rows, 0, "Stop reading long.pdf"), Qt.MouseButton.LeftButton)
    assert stopped == [(7,)]
    window.store.show_reading({}, {})
    assert not rows.isVisible()


def test_a_message_waits_for_the_file_that_is_being_read(window: MainWindow, record: Record, qtbot: QtBot) -> None:
    composer, sent = window.chat.composer, record(window.commands.conversations.send)
    composer.set_text("What is in it?")
    window.store.show_reading({ONE: {7: "long.pdf"}}, {})
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    assert composer.hint.full_text == "long.pdf is being read. Send when it is attached, or stop reading it."
    window.store.show_reading({}, {})
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == [(ONE, "What is in it?")]


def test_what_is_known_of_a_draft_is_not_said_of_another_chat(window: MainWindow) -> None:
    composer, chats = window.chat.composer, tuple(window.store.conversations.values())
    window.store.show_conversations(chats, TWO)
    composer.set_text("Go on")
    window.store.show_conversations(chats, ONE)
    composer.set_text("Go on")
    preview(window, text="Go on", refused="It is too long.", n_fitting=2)
    assert composer.is_too_long
    window.store.show_conversations(chats, TWO)
    assert composer.text == "Go on"
    assert not composer.is_too_long


def test_an_edited_message_keeps_what_is_attached_and_the_draft_its_own(window: MainWindow, record: Record) -> None:
    given = record(window.commands.attach_files)
    show(window, NOTES)
    show_messages(window, ONE, (replace(message("q", "user", "What is it?"), attachments=(PAPER,)),))
    composer = window.chat.composer
    widget = window.chat.view.widgets[0]
    widget.start_edit()
    assert widget.editor is not None
    assert widget.findChildren(AttachmentCard)[0].isVisible()
    assert composer.attachments.attachments == (NOTES,)
    window.chat.attachments.give(["a.txt"])
    assert given == [(ONE, ["a.txt"])]
    widget.editor.edit.clear()
    assert widget.editor._save.isEnabled(), "what is attached is a question too"


@pytest.mark.usefixtures("fresh")
def test_a_sent_attachment_is_a_card_that_unfolds(window: MainWindow, qtbot: QtBot) -> None:
    asked = replace(message("q", "user", "What is it?"), attachments=(replace(PAPER, n_tokens=300), NOTES))
    show_messages(window, ONE, (asked,))
    first, second = window.chat.view.findChildren(AttachmentCard)
    assert first.title.full_text == "paper.pdf  ·  1.3 kB  ·  300 tokens  ·  3 pages"
    assert second.button.accessibleName() == "Show the text of notes & more.txt"
    height = window.chat.view.widgets[0].sizeHint().height()
    second.button.setFocus()
    qtbot.keyClick(second.button, Qt.Key.Key_Space)
    assert (first.is_open, second.is_open) == (False, True)
    boxes = [frame for frame in second.findChildren(QFrame) if frame.property("card") == "code"]
    assert [box.isVisible() for box in boxes] == [True], "it does not look as if it had been typed"
    assert window.chat.view.widgets[0].sizeHint().height() > height
    qtbot.keyClick(second.button, Qt.Key.Key_Space)
    assert not second.is_open


def test_characters_of_the_text_are_counted_after_what_is_attached(window: MainWindow, record: Record) -> None:
    asked = replace(message("q", "user", "What is it?"), attachments=(NOTES,))
    show_messages(window, ONE, (asked,))
    selected = record(window.chat.view.text_selected)
    (widget,) = window.chat.view.widgets
    before = len(attachment_as_read(NOTES))
    widget._on_selected(0, 4)
    assert selected == [("q", before, before + 4)]


@pytest.mark.usefixtures("fresh")
def test_a_search_unfolds_and_marks_what_it_found_in_an_attachment(window: MainWindow) -> None:
    show_messages(window, ONE, (replace(message("q", "user", "What is it?"), attachments=(PAPER, NOTES)),))
    first, second = window.chat.view.findChildren(AttachmentCard)
    window.chat.view.mark_found(("short",), MessageId("q"))
    assert (first.is_open, second.is_open) == (False, True)
    (prose,) = second.findChildren(ProseView)
    assert [prose.toPlainText()[at : at + 5] for at in marked(prose)] == ["short"]
    window.chat.view.mark_found(())
    assert marked(prose) == []


def marked(prose: ProseView) -> list[int]:
    """Where marks begin."""
    return [selection.cursor.selectionStart() for selection in prose.extraSelections()]


def test_another_encoding_can_be_chosen_beside_the_note(window: MainWindow, record: Record, qtbot: QtBot) -> None:
    chosen = record(window.commands.read_again)
    old = Attachment("old.txt", "text", "Ïðèâåò", "read as Windows-1252")
    show(window, old, NOTES)
    window.store.show_reading({}, {old: "Windows-1252"})
    rows = window.chat.composer.attachments
    choice = encoding(rows, 0)
    assert encoding(rows, 1) is None, "it is UTF-8 beyond doubt"
    assert (choice.currentText(), choice.accessibleName()) == ("Windows-1252", "Encoding of old.txt")
    choice.setFocus()
    qtbot.keyClick(choice, Qt.Key.Key_Down)
    qtbot.keyClick(choice, Qt.Key.Key_Up)
    assert [(one[0], one[1]) for one in chosen] == [(ONE, old)]
    assert chosen[0][2] != "Windows-1252"
