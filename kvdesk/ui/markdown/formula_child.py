"""The child of the process that draws formulas: LaTeX to SVG with ziamath. Knows no Qt.

ziamath is Python, lays every row out twice, and so takes time that doubles with each nesting; in the window's process
it would stop the window, and take the interpreter from the threads that decode. Here it is bounded: what would take
too long is refused before it is laid out, and the parent ends a process that does not answer (`formulas`).

One value each way: `[latex, display]`; `[svg, width, ascent, depth]`, lengths in em, or `[]` for what cannot be
read.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kvdesk.children.entry import Parent, limit

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

MEMORY_LIMIT: Final = 1 << 30  # bytes of address space; Python and the font need a twentieth of it
MOST_STEPS: Final = 12_000  # nodes that are laid out, 40 microseconds each
_EM: Final = 16.0
_WIDEST_EM: Final = 400
_HIGHEST_EM: Final = 6  # of a row
_NO_COMMANDS: Final = re.compile(
    r"\\(?:def|let|(?:re|provide)?newcommand|newenvironment|DeclareMathOperator)(?![a-zA-Z])"
)
_DROPPED: Final = re.compile(r"\\(?:nonumber|notag)(?![a-zA-Z])|\\label\s*\{[^{}]*\}")
_BOLD: Final = re.compile(r"\\bm(?![a-zA-Z])")
_TAG: Final = re.compile(r"\\tag\*?\s*\{([^{}]*)\}")
_TEXT: Final = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox)\s*\{(?:[^{}\\]|\\.)*\}")
_ESCAPED: Final = re.compile(r"\\([%&#_$\{}])")
_STAND_INS: Final = {sign: chr(0xE000 + ord(sign)) for sign in "%&#_${}"}  # latex2mathml leaves escapes in texts
_BACK: Final = {ord(stand_in): sign for sign, stand_in in _STAND_INS.items()}
_ROWS: Final = {"mrow": 2, "math": 2, "mtd": 2, "mtr": 2, "mstyle": 2, "merror": 2, "mfenced": 4}  # laid out so often
INK: Final = "currentColor"  # the drawer puts its own colour there


class UnreadableError(Exception):
    """What cannot be shown as a formula."""


def child_main(parent: Parent, _argv: Sequence[str]) -> int:
    """Answers requests until the parent ends."""
    limit(MEMORY_LIMIT)
    sys.setrecursionlimit(2_000)
    while True:
        latex, display = parent.receive_value()
        parent.send_value(drawn(latex, display=display))


def drawn(latex: str, *, display: bool) -> list[Any]:
    """`[svg, width, ascent, depth]`, or `[]` for what cannot be read. Never raises."""
    try:
        return _draw(latex, display=display)
    except (Exception, MemoryError):  # noqa: BLE001  whatever a stranger's text does to two libraries
        return []


def _draw(latex: str, *, display: bool) -> list[Any]:
    from xml.etree import ElementTree as ET

    from ziamath import operators
    from ziamath.escapes import unescape
    from ziamath.tex import tex2mml
    from ziamath.zmath import Math

    _font()
    if _NO_COMMANDS.search(latex):
        raise UnreadableError("definitions of commands, which could be expanded without end")
    latex = _TAG.sub(r"\\qquad(\\text{\1})", _BOLD.sub(r"\\boldsymbol", _DROPPED.sub("", latex)))
    latex = _TEXT.sub(lambda text: _ESCAPED.sub(lambda found: _STAND_INS[found[1]], text[0]), latex)
    tree = ET.fromstring(unescape(tex2mml(latex.strip(), inline=not display)))
    for element in tree.iter():
        element.text = element.text and element.text.translate(_BACK)
    if any("\\" in text for text in tree.itertext()):
        raise UnreadableError("a command that is not known")
    if _steps(tree) > MOST_STEPS:
        raise UnreadableError("nested too deeply")
    for element in tree.iter("{http://www.w3.org/1998/Math/MathML}mo"):
        if operators.get_params(element.text or "", "prefix").get("largeop") == "true":
            element.set("stretchy", "false")  # else ziamath 0.13 takes a sum in parentheses for endlessly high
    made = Math(tree, size=_EM, margin=0)
    box = made.node.bbox
    width, height = box.xmax - box.xmin, box.ymax - box.ymin
    n_rows = 1 + sum(element.tag.endswith(("mtr", "mspace", "mfrac", "munderover")) for element in tree.iter())
    if not (0 < width < _WIDEST_EM * _EM and 0 < height < _HIGHEST_EM * n_rows * _EM):
        raise UnreadableError("nothing, or something endless")
    return [made.svg(), width / _EM, box.ymax / _EM, -box.ymin / _EM]


def _steps(tree: ET.Element) -> int:
    """How many nodes ziamath lays out: the content of a row twice, of a fence four times."""
    inner = sum(map(_steps, tree))
    return 1 + _ROWS.get(tree.tag.rpartition("}")[2], 1) * inner


@functools.cache
def _font() -> Any:
    """ziamath's font, which from then on leaves characters that it lacks to the one who draws the SVG."""
    from xml.etree import ElementTree as ET

    from ziafont.fonttypes import BBox
    from ziafont.glyph import EmptyGlyph
    from ziamath import zmath
    from ziamath.config import config
    from ziamath.mathfont import MathFont

    config.svg2 = False  # Qt reads SVG 1
    config.math.color = INK

    class OtherGlyph(EmptyGlyph):
        """A character of another font, an em wide: Chinese in a formula, for one."""

        def __init__(self, char: str, font: MathFont) -> None:
            super().__init__(0, font)
            self._char = char
            self._unit = font.info.layout.unitsperem
            self.bbox = BBox(0, self._unit, round(-0.12 * self._unit), round(0.88 * self._unit))
            self.path.bbox = self.bbox

        def advance(self, nextchr: Any = None) -> int:  # noqa: ARG002  ziafont's signature
            return int(self._unit)

        def place(self, x: float, y: float, point_size: float) -> ET.Element:
            place = {"x": f"{x:.3f}", "y": f"{y:.3f}", "font-size": f"{point_size:.3f}"}
            element = ET.Element("text", place)
            element.text = self._char
            return element

    class Font(MathFont):
        def glyph(self, char: str) -> Any:
            return super().glyph(char) if self.glyphindex(char) or ord(char) < 0x250 else OtherGlyph(char, self)

    made = Font(zmath.fontname)
    zmath.loadedfonts["default"] = made
    return made
