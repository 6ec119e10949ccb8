"""Files that are dropped on the window: what happens is said before, and no file is ever moved."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication

from kvdesk.protocol.chat import EngineDied, ModelLoaded
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.drops import dragged
from tests.ui.recording import Record
from tests.ui.samples import MODEL, ONE

COPY, MOVE, LINK = Qt.DropAction.CopyAction, Qt.DropAction.MoveAction, Qt.DropAction.LinkAction
ABOUT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


def enter(window: MainWindow, data: QMimeData, possible: Qt.DropAction = COPY | MOVE | LINK) -> QDragEnterEvent:
    """What a file manager asks for while Shift is held: that the files are moved."""
    event = QDragEnterEvent(QPoint(5, 5), possible, data, *ABOUT)
    event.setDropAction(MOVE)
    QApplication.sendEvent(window, event)
    return event


def drop(window: MainWindow, data: QMimeData, possible: Qt.DropAction = COPY | MOVE | LINK) -> QDropEvent:
    enter(window, data, possible)
    event = QDropEvent(QPointF(5, 5), possible, data, *ABOUT)
    event.setDropAction(MOVE)
    QApplication.sendEvent(window, event)
    return event


@pytest.mark.parametrize(
    ("names", "said", "done"),
    [
        (("big.GGUF", "b.txt"), "Drop to open the model big.GGUF", "open_model"),
        (("slot.bin",), "Drop to look into the saved cache slot.bin", "open_state"),
        (("chats.json", "b.txt"), "Drop to import the chats of chats.json", "import_chats"),
        (("chats.json", "more.json"), "Drop to import the chats of 2 files", "import_chats"),
        (("b.txt",), "Drop to attach b.txt", "attach_files"),
        (("b.txt", "c.pdf"), "Drop to attach 2 files", "attach_files"),
    ],
)
def test_what_a_drop_does_is_said_before(
    window: MainWindow, record: Record, tmp_path: Path, names: tuple[str, ...], said: str, done: str
) -> None:
    (tmp_path / "slot.bin").write_bytes(b"qsgg" + bytes(8))
    for name in ("chats.json", "more.json"):
        (tmp_path / name).write_text('{"format": "kvdesk conversations"}')
    asked = {name: record(getattr(window.commands, name)) for name in ("open_model", "open_state", "import_chats")}
    asked["attach_files"] = record(window.commands.attach_files)
    data = dragged(*(tmp_path / name for name in names))
    event = enter(window, data)
    assert (event.isAccepted(), event.dropAction(), window.drops.hint) == (True, COPY, said)
    moved = QDragMoveEvent(QPoint(6, 6), COPY | MOVE | LINK, data, *ABOUT)
    moved.setDropAction(MOVE)
    window.dragMoveEvent(moved)
    assert moved.dropAction() is COPY
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert window.drops.hint == ""
    assert drop(window, data).dropAction() is COPY
    assert window.drops.hint == ""
    whole: tuple[object, ...] = (tmp_path / names[0],)
    if done == "attach_files":
        whole = ONE, [str(tmp_path / name) for name in names]
    if names[-1] == "more.json":
        whole = tuple(tmp_path / name for name in names)
    assert asked == {name: [whole] if name == done else [] for name in asked}


def test_a_source_that_only_moves_keeps_its_files(window: MainWindow, record: Record, tmp_path: Path) -> None:
    attached, data = record(window.commands.attach_files), dragged(tmp_path / "b.txt")
    assert not drop(window, data, MOVE).isAccepted()
    assert drop(window, data, MOVE | LINK).dropAction() is LINK
    assert len(attached) == 1


@pytest.mark.usefixtures("fresh")
def test_nothing_is_promised_that_cannot_be_done(window: MainWindow, tmp_path: Path) -> None:
    text, model = dragged(tmp_path / "b.txt"), dragged(tmp_path / "a.gguf")
    window.rooms.show_settings()
    assert not enter(window, text).isAccepted(), "no chat is shown"
    assert enter(window, model).isAccepted()
    window.rooms.show_chats()
    window.store.apply(ModelLoaded(replace(MODEL, has_text=False)))
    assert not enter(window, text).isAccepted(), "the model cannot read"
    window.store.apply(EngineDied("It has stopped.", ""))
    window.drops.leave()
    assert not enter(window, model).isAccepted()
    assert window.drops.hint == ""
