"""What people and models mean by their marks, beside every script and in every place."""

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.ui.markdown.code_block import CodeBlock
from kvdesk.ui.markdown.formula_child import drawn
from kvdesk.ui.markdown.parser import markdown_parser
from kvdesk.ui.markdown.segments import Segment
from kvdesk.ui.markdown.text_chunks import GrowingAnswer
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.markdown.whole import answer_pieces, split_segments


def types(text: str) -> list[str]:
    return [child.type for token in markdown_parser().parse(text) for child in token.children or []]


@pytest.mark.parametrize(
    "text",
    [
        *("**“你好”**说", "这是**“重点”**内容。", "**注意：**请", "使用**模型（GGUF）**来", "これは**「重要」**です"),
        *("**text。**next", "**‘한국어’**는", "字*（斜）*字", "plain **bold** text", "请**(see)**看"),
        *("这~~（旧）。~~新", "~~삭제.~~는", "plain ~~old~~ text"),
    ],
)
def test_emphasis_stands_beside_every_script(text: str) -> None:
    assert any(kind in ("strong_close", "em_close", "s_close") for kind in types(text))


@pytest.mark.parametrize(
    "text",
    [*("a ** b ** c", "你 ** 好 ** 吗", "snake_case_name", 'a**"b"**c'), *("你 ~~ 好 ~~ 吗", "a~b~c", "约~5~6天")],
)
def test_other_marks_are_no_emphasis(text: str) -> None:
    assert set(types(text)) == {"text"}


def test_a_line_tag_is_a_line_in_a_cell_only() -> None:
    assert types("| a |\n|---|\n| one<br>two<BR />`<br>` |").count("hardbreak") == 2
    assert "hardbreak" not in types("Use the <br> tag.")


@pytest.mark.parametrize(
    "text", ["from $5-$10 (about 4$ more)", "$5–$10 or 4$", "$10，大约4$。", "$0.5-$1 (0.3$ off)", "$1 [2$"]
)
def test_amounts_are_no_formulas(text: str) -> None:
    assert "formula" not in types(text)


@pytest.mark.parametrize("text", ["$2x+1$", "$10^5$", "$2(x+1)$", r"$3 \text{ apples}$"])
def test_formulas_may_begin_with_a_number(text: str) -> None:
    assert "formula" in types(text)


@pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "latex", [r"\text{50\%}", r"\text{R\&D}", r"\textbf{a\_b \#1}", r"\text{\$5}", r"\text{\{1,2\}}", r"\mbox{5\%}"]
)
def test_escaped_signs_in_texts_of_formulas_are_drawn(latex: str) -> None:
    assert drawn(latex, display=True)


@pytest.mark.parametrize("marks", [("$$", "$$"), ("\\[", "\\]")])
def test_a_formula_between_marks_that_stand_alone_may_hold_empty_lines(marks: tuple[str, str]) -> None:
    source = f"{marks[0]}\n\na = b\n\n+ c\n\n{marks[1]}"
    assert split_segments(source) == (Segment("formula", "a = b\n+ c"),)
    growing = GrowingAnswer()
    for end in range(len(source) + 1):
        assert growing.pieces(source[:end]) == answer_pieces(source[:end])
    kinds = [s.kind for s in split_segments(f"{marks[0]}\n\nonly some words\n\n{marks[1]}")]
    assert kinds[0] == "prose"


@pytest.mark.parametrize("width", [200, 900])
def test_the_last_line_of_a_program_is_above_its_scroll_bar(theme: Theme, qtbot: QtBot, width: int) -> None:
    block = CodeBlock(theme)
    qtbot.addWidget(block)
    block.resize(width, 200)
    block.show()
    view = block._view
    for n in (20, 90, 300):
        block.show_segment(Segment("code", f"first\n{'x' * n}\nlast", closed=n == 300))
        qtbot.waitUntil(
            lambda: view.viewport().height() >= view.cursorRect(view.textCursor()).height() * view.blockCount()
        )
    assert view.horizontalScrollBar().maximum() > 0
