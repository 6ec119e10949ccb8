from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QTextBlockFormat, QTextDocument, QTextFormat, QTextListFormat, QTextTable
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk.settings import ThemeChoice
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.wheel import NOTCH, turned

ANSWER = """First *paragraph* of `code`.

- one
- two
  - nested

1. a
2. b

| x | y |
|---|---|
| 1 | 2 |

> quoted

# Title
last words
"""


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> ProseView:
    view = ProseView(theme)
    qtbot.addWidget(view)
    view.resize(400, 50)
    return view


def shape(document: QTextDocument) -> list[tuple[str, bool, float]]:
    found = []
    block = document.begin()
    while block.isValid():
        found.append((block.text(), block.textList() is not None, block.blockFormat().bottomMargin()))
        block = block.next()
    return found


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        *(f"a{end}b{end}c{end}d\n\ne\n\nf\n\ng" for end in "\f\v\x1c\x85\u2028\r"),
        "---\nA rule first, *and* text\n\nEnd",
        "Read [the manual].\n\nThen try.\n\n- [the manual]: http://a.b\n\nEnd",
    ],
)
def test_growing_letter_by_letter_ends_as_written_at_once(
    theme: Theme, view: ProseView, qtbot: QtBot, answer: str
) -> None:
    for end in range(1, len(answer) + 1):
        view.show_markdown(answer[:end])
    whole = ProseView(theme)
    qtbot.addWidget(whole)
    whole.resize(400, 50)
    whole.show_markdown(answer)
    assert view.toPlainText() == whole.toPlainText()
    assert shape(view.document()) == shape(whole.document())


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("> one\n>\n> two\n\nafter", [0]),
        ("> one\n> > deeper\n\nafter", [0, 1]),
        ("- item\n\n  > in it\n\nafter", [1]),
        ("> - item\n> - other\n\nafter", [0]),
    ],
)
def test_a_bar_stands_at_the_left_of_a_quote(view: ProseView, source: str, columns: list[int]) -> None:
    view.show_markdown(source)
    bars = list(view.quote_bars(view.viewport().rect()))
    step = view.document().indentWidth()
    assert sorted({int(bar.left() // step) for bar in bars}) == columns
    layout, last = view.document().documentLayout(), view.document().lastBlock()
    assert max(bar.bottom() for bar in bars) <= layout.blockBoundingRect(last).top(), "what follows is no quote"
    first = [bar for bar in bars if int(bar.left() // step) == columns[0]]
    assert all(a.bottom() == b.top() for a, b in pairwise(first)), "without a gap"
    picture = view.grab().toImage()
    middle = first[0].center().toPoint()
    assert picture.pixelColor(middle).name() == view._theme.colours.line
    view.show_markdown("no quote")
    assert list(view.quote_bars(view.viewport().rect())) == []


def test_settled_blocks_are_not_written_again(view: ProseView) -> None:
    view.show_markdown("one\n\ntwo\n\nthr")
    cursor = view.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(1, cursor.MoveMode.KeepAnchor)
    cursor.insertText("X")  # a mark that a new writing would remove
    view.show_markdown("one\n\ntwo\n\nthree and more")
    assert view.toPlainText().startswith("Xne\ntwo\nthree and")


def test_another_text_replaces_everything(view: ProseView) -> None:
    view.show_markdown("one\n\ntwo\n\nthree")
    view.show_markdown("other")
    assert view.toPlainText() == "other"


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "<b>bold</b>", "&lt;i&gt;", "<img src='file:///etc/passwd'>"]
)
def test_html_is_text(view: ProseView, hostile: str) -> None:
    view.show_plain(hostile)
    assert view.toPlainText() == hostile
    view.show_markdown(hostile)
    assert "<" in view.toPlainText()
    assert "<img" not in view.toHtml()
    assert "<script" not in view.toHtml()


def test_what_a_person_typed_is_not_markdown(view: ProseView) -> None:
    view.show_plain("**not bold** # no title")
    assert view.toPlainText() == "**not bold** # no title"


def test_images_are_never_loaded(view: ProseView) -> None:
    view.show_markdown("![a picture](/etc/hostname.png)")
    assert view.toPlainText() == "a picture"
    assert "<img" not in view.toHtml()


@pytest.mark.parametrize("address", ["file:///etc/passwd", "javascript:alert(1)", "/etc/passwd", "ssh://host"])
def test_only_safe_links_are_links(view: ProseView, address: str) -> None:
    view.show_markdown(f"[text]({address}) [ok](https://example.org)")
    html = view.toHtml()
    assert "https://example.org" in html
    assert f'href="{address}"' not in html


def test_two_lists_in_a_row_count_for_themselves(view: ProseView) -> None:
    view.show_markdown("1. a\n2. b\n\ntext\n\n3) c\n4) d")
    block = view.document().lastBlock()
    found = block.textList()
    assert found.itemText(block) == "4."
    assert found.format().style() == QTextListFormat.Style.ListDecimal


def test_it_is_as_tall_as_its_text(view: ProseView) -> None:
    view.show_markdown("one line")
    low = view.height()
    view.show_markdown("word " * 200)
    assert view.height() > 4 * low
    tall = view.height()
    view.resize(800, view.height())
    view.show_markdown("word " * 200 + "end")
    assert view.height() < tall


def test_it_follows_the_theme(theme: Theme, view: ProseView) -> None:
    view.show_markdown("text")
    theme.set_theme(ThemeChoice.LIGHT)
    assert view.document().begin().charFormat().foreground().color().name() in {theme.colours.text, "#000000"}
    cursor = view.textCursor()
    cursor.setPosition(1)
    assert cursor.charFormat().foreground().color().name() == theme.colours.text
    assert view.toPlainText() == "text"


@pytest.mark.parametrize("n", [9, 10, 100])
def test_numbers_of_a_list_have_room_in_its_indentation(view: ProseView, n: int) -> None:
    for end in (1, n):  # it grows
        view.show_markdown("\n".join(f"{i}. soup" for i in range(1, end + 1)))
    assert view.document().indentWidth() >= view.fontMetrics().horizontalAdvance(f"{n}. ")
    view.show_markdown("- soup")
    assert view.document().indentWidth() == 20, "no more than is needed"


def test_tasks_have_boxes(view: ProseView) -> None:
    view.show_markdown("- [ ] to do\n- [x] done\n  - [X] inside\n- [y] no task\n\n1. [ ] counted\n\n[ ] no item")
    marker = QTextBlockFormat.MarkerType
    found = []
    block = view.document().begin()
    while block.isValid():
        found.append((block.text(), block.blockFormat().marker()))
        block = block.next()
    assert found == [
        ("to do", marker.Unchecked),
        ("done", marker.Checked),
        ("inside", marker.Checked),
        ("[y] no task", marker.NoMarker),
        ("counted", marker.Unchecked),
        ("[ ] no item", marker.NoMarker),
    ]


def test_columns_are_aligned_as_the_table_says(view: ProseView) -> None:
    view.show_markdown("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |")
    aligned = []
    block = view.document().begin()
    while block.isValid():
        if block.text():
            aligned.append((block.text(), block.blockFormat().alignment() & Qt.AlignmentFlag.AlignHorizontal_Mask))
        block = block.next()
    centre, right = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
    assert [flag for _, flag in aligned][1::3] == [centre, centre]
    assert [flag for _, flag in aligned][2::3] == [right, right]


def test_a_wide_table_scrolls_sideways(theme: Theme, qtbot: QtBot) -> None:
    table = ProseView(theme, wide=True)
    qtbot.addWidget(table)
    table.resize(300, 50)
    table.show()
    heads = [f"a_rather_long_name_{i}" for i in range(8)]
    table.show_markdown("\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * 8, ["1"] * 8)))
    bar = table.horizontalScrollBar()
    assert bar.maximum() > 300
    assert table.height() >= table.document().size().height() + bar.sizeHint().height()
    assert table.verticalScrollBar().maximum() == 0
    QApplication.sendEvent(table.viewport(), turned(table.viewport(), 0, -NOTCH))
    assert bar.value() > 0
    narrow = ProseView(theme, wide=True)
    qtbot.addWidget(narrow)
    narrow.resize(300, 50)
    narrow.show()
    narrow.show_markdown("| a | b |\n|---|---|\n| many words that have room on several lines of it | 2 |")
    assert narrow.horizontalScrollBar().maximum() == 0


def test_a_heading_is_larger_than_those_below_it(view: ProseView) -> None:
    view.show_markdown("# one\n\n## two\n\n### three\n\nwords")
    blocks = [view.document().findBlockByNumber(i) for i in range(4)]
    one, two, three, words = (block.begin().fragment().charFormat().font() for block in blocks)
    assert one.pixelSize() > two.pixelSize() > three.pixelSize() == words.pixelSize()
    assert three.weight() > words.weight()


def test_what_one_typed_has_the_leading_of_an_answer(theme: Theme, qtbot: QtBot) -> None:
    steps = []
    for show in (ProseView.show_plain, ProseView.show_markdown):
        view = ProseView(theme)
        qtbot.addWidget(view)
        view.resize(200, 50)
        show(view, "Some words that need more than one line of a narrow view, so that there is a step.")
        lines = view.document().firstBlock().layout()
        steps.append(lines.lineAt(1).y() - lines.lineAt(0).y())
    assert steps[0] == steps[1] > theme.text.pixelSize() * 1.4


def test_a_table_has_rules_between_its_rows_and_no_grid(theme: Theme, view: ProseView) -> None:
    view.show_markdown("| x | y |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n")
    table = view.document().rootFrame().childFrames()[0]
    assert isinstance(table, QTextTable)
    assert table.format().border() == 0
    cells = [[table.cellAt(r, c).format().toTableCellFormat() for c in range(2)] for r in range(3)]
    for r, row in enumerate(cells):
        for cell in row:
            assert (cell.leftBorder(), cell.rightBorder(), cell.topBorder()) == (0, 0, 0)
            assert cell.bottomBorder() == (1 if r < 2 else 0)
            assert cell.topPadding() >= theme.px(6)
    assert all(row[0].leftPadding() == 0 for row in cells), "flush with the text around it"


@pytest.mark.parametrize("source", ["- one", "- one\n  - il", "- one\n  - two\n    - three"])
def test_bullets_do_not_touch_their_text(theme: Theme, view: ProseView, source: str) -> None:
    view.show_markdown(source)
    layout, last = view.document().documentLayout(), view.document().lastBlock()
    box = layout.blockBoundingRect(last)
    picture = view.grab().toImage()
    row = range(round(box.top()) + 2, round(box.bottom()) - 2)
    ground = picture.pixel(picture.width() - 1, round(box.top()))
    inked = [x for x in range(picture.width()) if any(picture.pixel(x, y) != ground for y in row)]
    bullet_end = next(x for x, after in pairwise(inked) if after - x > 1)
    assert next(x for x in inked if x > bullet_end) - bullet_end > theme.px(5)


@pytest.mark.parametrize("word", ["sea", "tide", "end"])
def test_a_selected_word_is_that_word_of_the_source(view: ProseView, word: str) -> None:
    source = "😀 **the** 🌊 sea\n\n| a | b |\n|---|---|\n| 😀 | tide |\n\nthe end"
    view.show_markdown(source)
    view.setTextCursor(view.document().find(word))
    first, last = view.selected_range()
    assert source[first:last] == word
    assert first == source.rindex(word)


def test_what_is_marked_is_marked_in_another_theme_too(theme: Theme, qtbot: QtBot) -> None:
    view = ProseView(theme)
    qtbot.addWidget(view)
    view.show_markdown("a **lighthouse** by the sea")
    view.marks.highlight(4, 14)
    view.marks.mark(["sea"])
    before = [(one.cursor.selectedText(), one.format.background().color().name()) for one in view.extraSelections()]
    theme.set_theme(ThemeChoice.LIGHT)
    after = [(one.cursor.selectedText(), one.format.background().color().name()) for one in view.extraSelections()]
    assert [words for words, _ in after] == [words for words, _ in before] == ["sea", "lighthouse"]
    assert all(dark != light for (_, dark), (_, light) in zip(before, after, strict=True))


def test_a_thematic_break_is_a_rule_in_the_colour_of_lines(theme: Theme, view: ProseView) -> None:
    for text in ("one\n\n***\n", "one\n\n***\n\ntwo", "one\n\n***\n\ntwo\n\n> a\n>\n> ***\n"):  # as it grows
        view.show_markdown(text)
    rule = QTextFormat.Property.BlockTrailingHorizontalRulerWidth
    blocks = [view.document().findBlockByNumber(n) for n in range(view.document().blockCount())]
    assert [block.text() for block in blocks] == ["one", "", "two", "a", ""]
    assert [block.blockFormat().hasProperty(rule) for block in blocks] == [False, True, False, False, True]
    view.resize(300, 200)
    view.show()
    picture = view.grab().toImage()
    middle = view.document().documentLayout().blockBoundingRect(blocks[1])
    line = QColor(theme.colours.line)
    column = [picture.pixelColor(150, y) for y in range(int(middle.top()), int(middle.bottom()) + 4)]
    assert column.count(line) == 1
