"""Emphasis beside Chinese, Japanese and Korean, which put no blanks between words.

CommonMark asks for a blank or punctuation outside of marks that have punctuation inside. Here a sign of these scripts
does as well, and their own punctuation counts as a letter.
"""

from typing import Final
from unicodedata import east_asian_width

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

_PICTURES: Final = range(0x1F000, 0x1FB00)


def emphasis_rule(parser: MarkdownIt) -> None:
    """Replace the parser's rules for `*`, `_` and `~~`."""
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.at("strikethrough", _strikethrough)


def _emphasis(state: StateInline, silent: bool) -> bool:
    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    length, opens, closes = _scanned(state, marker)
    for _ in range(length):
        _put(state, marker, length, opens=opens, closes=closes)
    state.pos += length
    return True


def _strikethrough(state: StateInline, silent: bool) -> bool:
    if silent or not state.src.startswith("~~", state.pos):
        return False
    length, opens, closes = _scanned(state, "~")
    if length % 2:
        state.push("text", "", 0).content = "~"
    for _ in range(length // 2):
        _put(state, "~~", 0, opens=opens, closes=closes)
    state.pos += length
    return True


def _scanned(state: StateInline, marker: str) -> tuple[int, bool, bool]:
    """How many marks stand here, and whether they can begin and end something."""
    scanned = state.scanDelims(state.pos, marker != "_")
    opens, closes = scanned.can_open, scanned.can_close
    before = state.src[state.pos - 1] if state.pos else " "
    end = state.pos + scanned.length
    after = state.src[end] if end < state.posMax else " "
    if marker != "_" and (_is_east_asian(before) or _is_east_asian(after)):
        opens |= not after.isspace()
        closes |= not before.isspace()
    return scanned.length, opens, closes


def _put(state: StateInline, mark: str, length: int, *, opens: bool, closes: bool) -> None:
    """`length`: of the run of marks; 0 if it does not count which of them belong together."""
    state.push("text", "", 0).content = mark
    state.delimiters.append(
        Delimiter(marker=ord(mark[0]), length=length, token=len(state.tokens) - 1, end=-1, open=opens, close=closes)
    )


def _is_east_asian(character: str) -> bool:
    return east_asian_width(character) in "WFH" and ord(character) not in _PICTURES
