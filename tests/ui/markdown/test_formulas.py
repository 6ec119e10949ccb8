import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QColor, QGuiApplication, QImage, QTextCursor
from pytestqt.qtbot import QtBot

from kvdesk.settings import ThemeChoice
from kvdesk.ui.markdown import formula_child
from kvdesk.ui.markdown.formula_object import OBJECT
from kvdesk.ui.markdown.formulas import FormulaDrawer, formula_drawer
from kvdesk.ui.markdown.parser import markdown_parser
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.widgets.style.theme import Theme

pytestmark = pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")  # how ziamath finds its font


@pytest.fixture(scope="module", autouse=True)
def no_process_stays() -> Iterator[None]:
    yield
    formula_drawer().stop()


@pytest.fixture
def view(theme: Theme, qtbot: QtBot) -> ProseView:
    view = ProseView(theme)
    qtbot.addWidget(view)
    view.resize(500, 50)
    view.show()
    return view


def formulas(text: str) -> list[str]:
    """LaTeX of the formulas that are found in a paragraph."""
    return [
        child.content
        for token in markdown_parser().parse(text)
        for child in token.children or []
        if child.type == "formula"
    ]


def wait_for(qtbot: QtBot, view: ProseView) -> None:
    """Until all formulas in it are known."""
    qtbot.waitUntil(lambda: not view.waits, timeout=20_000)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so $x^2$ it is", ["x^2"]),
        (r"so \(x^2\) it is, and \[ y \] too", ["x^2", "y"]),
        ("so $$x$$ it is", ["x"]),
        ("$a$, ($b$) and $c$.", ["a", "b", "c"]),
        (r"$\$5$ as a formula", [r"\$5"]),
        (r"$\text{if } x > 0$", [r"\text{if } x > 0"]),
        ("$5 and $10", []),
        ("between $5-$10", []),
        ("US$5 or CA$10, in $ or 10$", []),
        ("it is $20/month or $30/month", []),
        ("(**$5**) and (**$6**)", []),
        ("$5 in cash and a tip of 10$", []),
        ("`$x$` is code", []),
        (r"\$x\$", []),
        (r"an \[aside in brackets\] here", []),
        ("a $ b $ c", []),
        ("$", []),
    ],
)
def test_formulas_are_told_from_money(text: str, found: list[str]) -> None:
    assert formulas(text) == found


@pytest.mark.parametrize("hostile", ["$a " * 1300, "\\(" * 2000, "\\[a" * 1300, "$" * 4000, "\\" * 4000, "$x$" * 1300])
def test_hostile_marks_take_no_time(hostile: str) -> None:
    import time

    begun = time.thread_time()
    formulas(hostile)
    assert time.thread_time() - begun < 0.25


def test_a_formula_is_drawn_on_the_baseline_in_the_colour_of_the_text(
    view: ProseView, theme: Theme, qtbot: QtBot
) -> None:
    view.show_markdown("A $E_g$ A")
    wait_for(qtbot, view)
    image = view.viewport().grab().toImage()
    ink = QColor(theme.colours.text)

    def lowest(left: int, right: int) -> int:
        """The last row with much ink in some columns."""
        rows = [y for y in range(image.height()) for x in range(left, right) if _near(image, x, y, ink)]
        return max(rows)

    cursor = view.textCursor()
    places = []
    for position in (0, 1, 2, 3):
        cursor.setPosition(position)
        places.append(view.cursorRect(cursor).left())
    base = lowest(places[0], places[1])
    em = theme.text.pixelSize()
    big_e = lowest(places[2], places[2] + round(0.5 * em))  # without the subscript
    assert abs(base - big_e) <= 1
    theme.set_theme(ThemeChoice.LIGHT)
    dark = QColor(theme.colours.text)
    image = view.viewport().grab().toImage()
    assert any(_near(image, x, y, dark) for x in range(places[2], places[3]) for y in range(image.height()))


def _near(image: QImage, x: int, y: int, ink: QColor) -> bool:
    colour = image.pixelColor(x, y)
    return abs(colour.lightness() - ink.lightness()) < 70


def test_a_line_of_formulas_alone_is_as_high_as_one_of_text(view: ProseView, qtbot: QtBot) -> None:
    view.show_markdown("text\n\n$-$")
    wait_for(qtbot, view)
    first = view.document().begin()
    heights = [block.layout().lineAt(0).height() for block in (first, first.next())]
    assert abs(heights[0] - heights[1]) < 1.5, "so that cells of a table stand on one line"


def test_a_copy_gives_the_latex_back(view: ProseView, qtbot: QtBot) -> None:
    text = r"If $x^2$ and \(y\), then"
    view.show_markdown(text)
    wait_for(qtbot, view)
    assert view.toPlainText() == f"If {OBJECT} and {OBJECT}, then"
    view.selectAll()
    view.copy()
    assert QGuiApplication.clipboard().text() == text
    mime = view.createMimeDataFromSelection()
    assert isinstance(mime, QMimeData)
    assert view.selected_text == text


def test_a_selected_formula_is_a_part_of_the_source(view: ProseView, qtbot: QtBot) -> None:
    view.show_markdown("If $x^2$ then **so**")
    wait_for(qtbot, view)
    cursor = view.textCursor()
    cursor.setPosition(3)
    cursor.setPosition(4, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    assert view.selected_range() == (3, 8)
    view.marks.highlight(3, 8)
    (mark,) = view.extraSelections()
    assert (mark.cursor.selectionStart(), mark.cursor.selectionEnd()) == (3, 4)


def test_what_cannot_be_read_stays_as_it_was_written(view: ProseView, qtbot: QtBot) -> None:
    view.show_markdown(r"First $x_{$ then $\unknown{y}$ and $z$.")
    view.show_markdown(r"First $x_{$ then $\unknown{y}$ and $z$. More.")
    wait_for(qtbot, view)
    assert view.toPlainText() == rf"First $x_{{$ then $\unknown{{y}}$ and {OBJECT}. More."


def test_text_goes_on_after_formulas_that_became_text(view: ProseView, qtbot: QtBot) -> None:
    view.show_markdown("One $a_{$.\n\nTwo $b_{$.\n\nThree")
    wait_for(qtbot, view)
    view.show_markdown("One $a_{$.\n\nTwo $b_{$.\n\nThree and more")
    assert view.toPlainText() == "One $a_{$.\nTwo $b_{$.\nThree and more"


def test_a_formula_that_stands_alone_scrolls_where_it_is_wide(theme: Theme, qtbot: QtBot) -> None:
    view = ProseView(theme, wide=True)
    qtbot.addWidget(view)
    view.resize(300, 50)
    view.show()
    latex = " + ".join(f"x_{{{i}}}" for i in range(40))
    view.show_formula(latex)
    wait_for(qtbot, view)
    assert view.horizontalScrollBar().maximum() > 300
    assert view.height() >= view.horizontalScrollBar().sizeHint().height() + 10
    view.selectAll()
    view.copy()
    assert QGuiApplication.clipboard().text() == f"$$\n{latex}\n$$"


def test_a_process_that_is_killed_is_started_again(qtbot: QtBot) -> None:
    drawer = FormulaDrawer()
    assert drawer.look("a+1", display=False) is None
    qtbot.waitUntil(lambda: not drawer.is_waiting("a+1", display=False), timeout=20_000)
    assert drawer.look("a+1", display=False) is not None
    drawer.look("a+2", display=False)
    drawer._process.kill()
    qtbot.waitUntil(lambda: drawer._process is None or drawer._answers == 0, timeout=5_000)
    drawer.look("a+3", display=False)
    for latex in ("a+2", "a+3"):
        qtbot.waitUntil(lambda latex=latex: not drawer.is_waiting(latex, display=False), timeout=20_000)  # type: ignore[misc]
        assert drawer.look(latex, display=False) is not None
    drawer.stop()


def test_a_formula_without_an_end_is_given_up(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    drawer = FormulaDrawer()
    drawer.look("a+1", display=False)
    qtbot.waitUntil(lambda: not drawer.is_waiting("a+1", display=False), timeout=20_000)
    monkeypatch.setattr("kvdesk.ui.markdown.formulas.TIME_LIMIT_MS", 1)
    drawer.look("a+" * 200 + "1", display=False)
    drawer.look("a+2", display=False)
    qtbot.waitUntil(lambda: not drawer.is_waiting("a+" * 200 + "1", display=False), timeout=5_000)
    assert drawer.look("a+" * 200 + "1", display=False) is None
    qtbot.waitUntil(lambda: not drawer.is_waiting("a+2", display=False), timeout=20_000)
    assert drawer.look("a+2", display=False) is not None, "the others are drawn by another process"
    drawer.stop()


# --- the child ------------------------------------------------------------------------------------------------------

HOSTILE = {
    "nested fractions": r"\frac{a}{" * 200 + "x" + "}" * 200,
    "nested groups": "{" * 900 + "x" + "}" * 900,
    "nested roots": r"\sqrt{" * 40 + "x" + "}" * 40,
    "fences": r"\left(" * 60 + "x" + r"\right)" * 60,
    "macros": r"\def\a{xx}\def\b{\a\a}\def\c{\b\b}\c",
    "new commands": r"\newcommand{\x}{\x\x}\x",
    "huge space": r"a\hspace{999999cm}b",
    "markup": r"\text{</mtext><mspace width='9e9'/><mtext>}",
    "nothing": " ",
    "a lone backslash": "\\",
    "long": "x+" * 999,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.matrix) if name == "long" else name for name in HOSTILE]
)
@pytest.mark.parametrize("display", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_hostile_latex_is_bounded(name: str, display: bool) -> None:
    import time

    begun = time.process_time()
    answer = formula_child.drawn(HOSTILE[name], display=display)
    assert time.process_time() - begun < 10.0, "the longest takes 1.5 s, and three times as much beside others"
    assert len(json.dumps(answer)) < 2_000_000


PARTS = (
    *(r"\frac", r"\sqrt", "{", "}", "^", "_", "&", r"\\", "x", "1", r"\left(", r"\right)", r"\begin{matrix}"),
    *(
        r"\end{matrix}",
        r"\text{",
        "<",
        ">",
        "&lt;",
        "[",
        "]",
        r"\sum",
        r"\int",
        r"\hat",
        r"\over",
        r"\color{red}",
        "中",
    ),
    *(r"\binom", r"\tag{1}", r"\middle|", r"\overbrace", "'", "%", "#", "$", "\x00", "\ud800"),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PARTS), max_size=25), st.booleans())
def test_no_latex_raises(parts: list[str], display: bool) -> None:
    answer = formula_child.drawn("".join(parts), display=display)
    assert answer == [] or (answer[0].startswith("<svg") and all(isinstance(n, float) for n in answer[1:]))


def test_chinese_in_a_formula_is_left_to_the_fonts_of_the_system() -> None:
    svg, width, _, _ = formula_child.drawn(r"\text{如果 } x", display=False)
    assert svg.count("<text") == 2
    assert width > 2.5


def test_everyday_latex_is_read() -> None:
    everyday = (
        r"\frac{-b \pm \sqrt{b^2-4ac}}{2a}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        r"f(x)=\begin{cases} x & \text{if } x>0 \\ 0 & \text{otherwise}\end{cases}",
        r"\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2} \tag{1}",
        r"\mathbb{E}[X] = \sum_{i=1}^{n} x_i p_i \label{eq} \nonumber",
        r"\boxed{42}",
        r"\begin{equation} \nabla \cdot \vec{E} = \frac{\rho}{\varepsilon_0} \end{equation}",
        r"\operatorname{softmax}(x)_i, \bm{w}^\top \mathbf{x}, \lVert x \rVert",
    )
    assert [latex for latex in everyday if not formula_child.drawn(latex, display=True)] == []


def test_a_sum_in_parentheses_is_as_high_as_it_is() -> None:
    for latex in (r"\left( \sum_{i} a_i \right)^2", r"\left( \int_0 x \right)", r"\left[ \prod_{k} \right]"):
        _, _, ascent, depth = formula_child.drawn(latex, display=True)
        assert ascent + depth < 5
