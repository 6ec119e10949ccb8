"""Files a person attaches: read beside the window, kept with the draft, sent with the message, told where they fail."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event as Flag

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.app.chat import attaching
from kvdesk.attachments.reader import FileRead, ReadingCancelled
from kvdesk.chat import Conversation
from kvdesk.errors import UserError
from kvdesk.message import Attachment
from kvdesk.protocol.chat import PreviewTurn
from kvdesk.store import Store
from kvdesk.ui.messages.attachment_cards import AttachmentCard
from tests.app.conftest import Rig
from tests.app.test_controller import conversations, stored
from tests.attachments.files import pdf
from tests.ui.seen import encoding, row_button


def shown(rig: Rig) -> list[str]:
    return [attachment.name for attachment in rig.window.chat.composer.attachments.attachments]


def test_a_pdf_is_read_counted_sent_and_kept(ready: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "paper.pdf"
    file.write_bytes(pdf("Cells have positions."))
    ready.window.chat.attachments.give([str(file)])
    qtbot.waitUntil(lambda: shown(ready) == ["paper.pdf"], timeout=20_000)
    assert conversations(ready)[0].draft_attachments[0].text == "Cells have positions.", "over a crash too"
    qtbot.waitUntil(lambda: any(isinstance(c, PreviewTurn) and c.n_attached for c in ready.worker.commands))
    qtbot.keyClicks(ready.window.chat.composer.edit, "Really?")
    qtbot.keyClick(ready.window.chat.composer.edit, Qt.Key.Key_Return)
    (asked,) = ready.worker.asked
    assert asked.messages[-1].text == "paper.pdf:\n```\nCells have positions.\n```\n\nReally?"
    assert shown(ready) == []
    (card,) = ready.window.chat.view.findChildren(AttachmentCard)
    assert card.title.full_text.startswith("paper.pdf")
    (known,) = conversations(ready)
    assert known.draft_attachments == ()
    assert [a.name for a in stored(ready, known.id)[0].attachments] == ["paper.pdf"]


def test_what_cannot_be_read_is_said_and_nothing_is_lost(ready: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good")
    for name in ("b.pdf", "c.pdf"):
        (tmp_path / name).write_bytes(pdf("x", encrypted=True))
    banner = ready.window.chat.banner
    ready.window.chat.composer.set_text("half a thought")
    ready.window.chat.attachments.give([str(tmp_path / name) for name in ("a.txt", "b.pdf", "c.pdf")])
    said = [f"{name} is protected with a password, so it cannot be read." for name in ("b.pdf", "c.pdf")]
    qtbot.waitUntil(lambda: sorted(banner.sentence.splitlines()) == said and shown(ready) == ["a.txt"], timeout=20_000)
    ready.window.chat.attachments.give([str(tmp_path / "c.pdf")])
    qtbot.waitUntil(lambda: banner.sentence == said[1], timeout=20_000)
    assert ready.window.chat.composer.text == "half a thought"


def test_a_file_is_read_again_in_the_encoding_that_is_chosen(ready: Rig, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "old.txt"
    file.write_bytes("Ελ".encode("cp1253"))
    other = tmp_path / "plain.txt"
    other.write_text("plain")
    rows = ready.window.chat.composer.attachments
    ready.window.chat.attachments.give([str(file)])
    qtbot.waitUntil(lambda: shown(ready) == ["old.txt"], timeout=20_000)
    ready.window.chat.attachments.give([str(other)])
    qtbot.waitUntil(lambda: shown(ready) == ["old.txt", "plain.txt"], timeout=20_000)
    choice = encoding(rows, 0)
    assert choice is not None
    assert encoding(rows, 1) is None

    def reads(text: str) -> bool:
        return rows.attachments[0].text == text

    for wanted, text in (("Windows-1251", "Ел"), ("Windows-1253", "Ελ")):
        choice = encoding(rows, 0)
        choice.textActivated.emit(wanted)
        qtbot.waitUntil(partial(reads, text), timeout=20_000)
        assert rows.attachments[0].note == f"read as {wanted}"
        assert shown(ready) == ["old.txt", "plain.txt"]
    file.unlink()
    choice = encoding(rows, 0)
    choice.textActivated.emit("KOI8-R")
    qtbot.waitUntil(lambda: "old.txt could not be read" in ready.window.chat.banner.sentence, timeout=20_000)
    assert rows.attachments[0].text == "Ελ", "what was read stays"
    again = encoding(rows, 0)
    assert again.currentText() == "Windows-1253"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Flag:
    """Files whose reading takes until the flag is set, or until it is cancelled."""
    go_on = Flag()

    def read(path: Path, cancelled: Callable[[], bool], _encoding: str) -> FileRead:
        deadline = time.monotonic() + 20.0
        while not go_on.wait(0.005):
            if cancelled() or time.monotonic() > deadline:
                raise ReadingCancelled
        if path.suffix == ".bad":
            raise UserError("It is bad.")
        return FileRead(Attachment(path.name, "text", "text"))

    monkeypatch.setattr(attaching, "read_file", read)
    return go_on


def test_each_file_goes_to_the_chat_it_was_given_to(ready: Rig, slow: Flag, qtbot: QtBot) -> None:
    rig = ready
    chats = rig.controller.chats
    first = rig.window.store.selected
    assert first is not None
    rig.controller.conversations.rename(first, "Not new any more")
    rig.window.chat.attachments.give(["one.txt", "two.txt", "three.txt"])
    rows = rig.window.chat.composer.attachments
    assert rows.isVisible()
    qtbot.mouseClick(row_button(rows, 1, "Stop reading two.txt"), Qt.MouseButton.LeftButton)
    chats.new()
    assert rig.window.store.selected != first
    assert not rows.isVisible()
    slow.set()
    qtbot.waitUntil(lambda: not rig.controller.attaching._reading)
    known = rig.controller.conversations.get(first)
    assert sorted(a.name for a in known.draft_attachments) == ["one.txt", "three.txt"]
    assert shown(rig) == []


def test_too_many_files_are_refused_at_once(ready: Rig, slow: Flag) -> None:
    ready.window.chat.attachments.give([f"{i}.txt" for i in range(21)])
    assert ready.window.chat.banner.sentence == "21 files at once are too many: at most 20 can be attached."
    assert not ready.controller.attaching._reading
    slow.set()


def test_closing_waits_for_no_file(ready: Rig, slow: Flag) -> None:
    ready.window.chat.attachments.give(["one.txt"])
    ready.window.close()
    assert not ready.controller.attaching._reading
    assert not slow.is_set()


def test_a_draft_is_written_within_250_ms(ready: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """So much of it a kill may cost at most."""
    written: list[tuple[str, float]] = []
    put = Store.put_conversation

    def note(store: Store, conversation: Conversation) -> None:
        put(store, conversation)
        written.append((conversation.draft, time.monotonic()))

    def is_written(text: str) -> bool:
        return bool(written) and written[-1][0] == text

    monkeypatch.setattr(Store, "put_conversation", note)
    edit = ready.window.chat.composer.edit
    for text in ("half", "half a thought"):
        qtbot.keyClicks(edit, text[len(edit.toPlainText()) :])
        begin = time.monotonic()
        qtbot.waitUntil(partial(is_written, text))
        assert written[-1][1] - begin < 0.25
