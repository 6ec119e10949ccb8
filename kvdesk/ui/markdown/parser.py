"""The parser of Markdown. What it says is a table is one, and what `segments` leaves to it is read by its rules alone.

Fences, display formulas and reasoning are found by `segments` before it: models write programs into lists with
too many blanks or too few, and CommonMark then ends a fence in its first line or does not see it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from kvdesk.ui.markdown.formula_rule import formula_rule
from kvdesk.ui.markdown.line_tag import line_tag_rule

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_OF_RULERS: Final = frozenset("|:- \t")


@cache
def markdown_parser() -> MarkdownIt:
    """CommonMark with tables, strikethrough and formulas, without HTML. One for all; made for the first message."""
    from markdown_it import MarkdownIt

    from kvdesk.ui.markdown.east_asian import emphasis_rule

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.use(formula_rule).use(emphasis_rule).use(line_tag_rule)


def begins_table(line: str, ruler: str) -> bool:
    """Whether a table begins with these two lines."""
    may_be = "|" in line and "-" in ruler and _OF_RULERS.issuperset(ruler)
    return may_be and any(token.type == "table_open" for token in markdown_parser().parse(f"{line}\n{ruler}")[:1])
