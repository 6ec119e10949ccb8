"""Arabic and Hebrew inside a window that goes from left to right: each paragraph in its own direction, code never."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage, QPainter, QTextBlock, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit, QTextBrowser
from pytestqt.qtbot import QtBot

from kvdesk.chat import Conversation
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.access.direction import drawing_flags, is_right_to_left
from kvdesk.ui.widgets.controls import ElidedLabel
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.samples import ONE, STATS, message, show_messages

HEBREW, ARABIC = "שלום, מה זה KV cache?", "ما هي ذاكرة التخزين؟"
RTL, LTR = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight


def paragraphs(document: QTextDocument) -> list[tuple[str, Qt.LayoutDirection]]:
    """Those that have a text, and their directions."""
    found, block = [], document.firstBlock()
    while block.isValid():
        if block.text():
            found.append((block.text(), block.textDirection()))
        block = block.next()
    return found


def starts_right(block: QTextBlock, width: int) -> bool:
    """Whether its first line lies at the right edge."""
    line = block.layout().lineAt(0)
    return line.naturalTextRect().right() > width - 40 and line.naturalTextRect().left() > 8


def test_each_paragraph_of_a_message_has_its_direction(window: MainWindow) -> None:
    answer = f"{HEBREW}\n\nIn English.\n\n- {ARABIC}\n\n> {HEBREW}\n\n```python\n# {HEBREW}\n```\n"
    show_messages(
        window, ONE, (message("q", "user", f"{ARABIC}\nHello"), message("a", "assistant", answer, stats=STATS))
    )
    question, reply = window.chat.view.widgets
    (asked,) = question.findChildren(ProseView)
    assert paragraphs(asked.document()) == [(ARABIC, RTL), ("Hello", LTR)]
    assert starts_right(asked.document().firstBlock(), asked.viewport().width())
    prose = [view for view in reply.findChildren(QTextBrowser) if view.toPlainText()]
    found = [part for view in prose for part in paragraphs(view.document())]
    assert found == [(HEBREW, RTL), ("In English.", LTR), (ARABIC, RTL), (HEBREW, RTL)]
    (code,) = [view for view in reply.findChildren(QPlainTextEdit) if view.isReadOnly()]
    assert paragraphs(code.document()) == [(f"# {HEBREW}", LTR)]


def test_code_in_prose_stays_left_to_right(window: MainWindow) -> None:
    """An indented program is a part of the prose."""
    show_messages(
        window, ONE, (message("a", "assistant", f"{HEBREW}\n\n1. {HEBREW}\n\n       # {HEBREW}\n", stats=STATS),)
    )
    found = [
        part for view in window.chat.view.widgets[0].findChildren(QTextBrowser) for part in paragraphs(view.document())
    ]
    assert found == [(HEBREW, RTL), (HEBREW, RTL), (f"# {HEBREW}", LTR)]


def test_the_composer_writes_in_the_direction_of_what_is_typed(window: MainWindow, qtbot: QtBot) -> None:
    edit = window.chat.composer.edit
    window.chat.composer.set_text(f"{HEBREW}\nand English")
    assert paragraphs(edit.document()) == [(HEBREW, RTL), ("and English", LTR)]
    assert starts_right(edit.document().firstBlock(), edit.viewport().width())
    cursor = edit.textCursor()
    cursor.setPosition(0)
    edit.setTextCursor(cursor)
    assert edit.cursorRect().x() > edit.viewport().width() // 2
    qtbot.keyClick(edit, Qt.Key.Key_End)
    assert edit.cursorRect().x() < edit.viewport().width()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEBREW, True),
        (ARABIC, True),
        ("Hello שלום", False),
        ("123 - שלום", True),
        ("“ٱ”", True),
        ("你好", False),
        ("", False),
        ("1, 2", False),
    ],
)
def test_the_first_letter_with_a_direction_decides(text: str, expected: bool) -> None:
    assert is_right_to_left(text) is expected
    assert bool(drawing_flags(text)) is expected


def drawn(label: ElidedLabel) -> QImage:
    return label.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)


def inked(image: QImage) -> tuple[int, int]:
    """The leftmost and the rightmost column that has another colour than the first pixel."""
    ground = image.pixel(0, 0)
    columns = [x for x in range(image.width()) if any(image.pixel(x, y) != ground for y in range(image.height()))]
    return columns[0], columns[-1]


@pytest.mark.usefixtures("styled")
def test_a_title_is_drawn_from_right_to_left_at_its_place(theme: Theme, qtbot: QtBot) -> None:
    """A full stop comes last, which is at the left; drawn from left to right it would stand at the right."""
    label = ElidedLabel("שלום" + "." * 12)
    qtbot.addWidget(label)
    label.setFont(theme.text)
    label.resize(400, 24)
    own = QImage(400, 24, QImage.Format.Format_Grayscale8)
    own.fill(255)
    painter = QPainter(own)
    painter.setFont(label.font())
    flags = Qt.TextFlag.TextForceRightToLeft.value | Qt.AlignmentFlag.AlignAbsolute.value | int(label.alignment())
    painter.drawText(QRect(0, 0, 400, 24), flags, label.full_text)
    painter.end()
    shown = drawn(label)
    assert inked(shown) == inked(own)
    assert inked(shown)[0] < 20, "at the left, as every title"
    low = [x for x in range(60) if shown.pixel(x, 21) != shown.pixel(x, 0) or shown.pixel(x, 17) != shown.pixel(x, 0)]
    assert low, "the dots are at its left end"


def test_a_title_in_the_header_and_in_the_list(window: MainWindow) -> None:
    window.store.show_conversations((Conversation(ONE, HEBREW, 0),), ONE)
    assert window.chat.header._title.full_text == HEBREW
    window.conversations.view.viewport().grab()  # drawn without an error
