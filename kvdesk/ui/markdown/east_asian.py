"""Emphasis beside Chinese, Japanese and Korean, which put no blanks between words.

CommonMark asks for a blank or punctuation outside of marks that have punctuation inside. Here a sign of these scripts
does as well, and their own punctuation counts as a letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

_PICTURES: Final = range(0x1F000, 0x1FB00)


def emphasis_rule(parser: MarkdownIt) -> None:
    """Replace the parser's rule for `*` and `_`."""
    parser.inline.ruler.at("emphasis", _tokenize)


def _tokenize(state: StateInline, silent: bool) -> bool:
    from markdown_it.rules_inline.state_inline import Delimiter

    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    scanned = state.scanDelims(state.pos, marker == "*")
    opens, closes = scanned.can_open, scanned.can_close
    before = state.src[state.pos - 1] if state.pos else " "
    end = state.pos + scanned.length
    after = state.src[end] if end < state.posMax else " "
    if marker == "*" and (_is_east_asian(before) or _is_east_asian(after)):
        opens |= not after.isspace()
        closes |= not before.isspace()
    for _ in range(scanned.length):
        state.push("text", "", 0).content = marker
        state.delimiters.append(
            Delimiter(
                marker=ord(marker),
                length=scanned.length,
                token=len(state.tokens) - 1,
                end=-1,
                open=opens,
                close=closes,
            )
        )
    state.pos = end
    return True


def _is_east_asian(character: str) -> bool:
    return east_asian_width(character) in "WFH" and ord(character) not in _PICTURES
