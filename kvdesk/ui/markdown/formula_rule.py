r"""The rule of markdown-it for formulas inside of text: `$…$`, `\(…\)`, and `$$…$$` and `\[…\]` between words.

A dollar is money unless a formula can be there (Pandoc's rule): an opening one is followed by no blank and is at
the end of no word, a closing one follows no blank, and no letter or digit follows it. Nor are words, or a
number with words or with a bracket that is not closed, a formula without a sign of mathematics.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

_DOLLARS: Final = re.compile(r"\$\$(?!\$)((?:[^$\\]|\\.)++)\$\$", re.DOTALL)
_DOLLAR: Final = re.compile(r"\$(?![\s$])((?:[^$\\]|\\.)++)(?<!\s)\$(?![0-9A-Za-z$])", re.DOTALL)
_ROUND: Final = re.compile(r"\\\(((?:[^\\]|\\(?![()]).)++)\\\)", re.DOTALL)
_SQUARE: Final = re.compile(r"\\\[((?:[^\\]|\\(?![\[\]]).)++)\\\]", re.DOTALL)
_WORDS: Final = re.compile(r"[A-Za-z]{2,} +[A-Za-z]{2,}")
_AMOUNT: Final = r"(?s)\d.*?(?:[^\W\d_]{2}|[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef])"  # compiled when it is used
_SIGNS: Final = frozenset("\\^_={}")


def formula_rule(parser: MarkdownIt) -> None:
    """Have the parser make tokens of the type "formula": `content` is the LaTeX, `markup` the mark that opens it."""
    parser.inline.ruler.before("escape", "formula", _formula)


def is_prose(text: str) -> bool:
    """Whether it is words, or a number with words or with a loose bracket, without a sign of mathematics."""
    if not _SIGNS.isdisjoint(text):
        return False
    is_loose = text[:1].isdigit() and any(text.count(one) != text.count(other) for one, other in ("()", "[]"))
    return is_loose or bool(_WORDS.search(text) or re.match(_AMOUNT, text))


def _formula(state: StateInline, silent: bool) -> bool:
    source, at = state.src, state.pos
    if source[at] == "$":
        if at and (source[at - 1].isalnum() or source[at - 1] == "$"):
            return False
        match = (_DOLLARS if source.startswith("$$", at) else _DOLLAR).match(source, at, state.posMax)
    elif source.startswith("\\(", at):
        match = _ROUND.match(source, at, state.posMax)
    elif source.startswith("\\[", at):
        match = _SQUARE.match(source, at, state.posMax)
    else:
        return False
    if match is None or not match[1].strip():
        return False
    if is_prose(match[1]):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = match[1].strip()
        token.markup = "$$" if source.startswith("$$", at) else source[at : at + 2] if source[at] == "\\" else "$"
    state.pos = match.end()
    return True
