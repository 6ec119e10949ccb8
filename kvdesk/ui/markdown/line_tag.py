"""`<br>` in cells of tables, where Markdown has no other way to begin a line. Elsewhere it is text as any tag."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_BREAK: Final = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)


def line_tag_rule(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("autolink", "line_tag", _line_tag)
    parser.core.ruler.after("inline", "line_tag", _outside_cells)


def _line_tag(state: StateInline, silent: bool) -> bool:
    match = _BREAK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0).content = match[0]
    state.pos = match.end()
    return True


def _outside_cells(state: StateCore) -> None:
    before = ""
    for token in state.tokens:
        if token.type == "inline" and before not in ("td_open", "th_open"):
            for child in token.children or ():
                if child.type == "hardbreak" and child.content:
                    child.type, child.tag = "text", ""
        before = token.type
