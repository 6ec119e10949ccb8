"""The colours of a program's words: Pygments' tokens as spans of lines. No widgets."""

from collections.abc import Mapping
from typing import Any, Final

from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.token import Token
from pygments.util import ClassNotFound

_DARK: Final = {
    Token.Comment: "#9aa0aa",
    Token.Keyword: "#8fb4ff",
    Token.Name.Function: "#e8c07a",
    Token.Name.Class: "#e8c07a",
    Token.Name.Builtin: "#7fc9c2",
    Token.Name.Decorator: "#d9a3c9",
    Token.Literal.String: "#a5cf8e",
    Token.Literal.Number: "#e5a37e",
    Token.Operator.Word: "#8fb4ff",
    Token.Generic.Deleted: "#ff9185",
    Token.Generic.Inserted: "#7cc8a2",
}
_LIGHT: Final = {
    Token.Comment: "#61666f",
    Token.Keyword: "#1f4fb8",
    Token.Name.Function: "#7a5200",
    Token.Name.Class: "#7a5200",
    Token.Name.Builtin: "#00696b",
    Token.Name.Decorator: "#8c3d78",
    Token.Literal.String: "#2f6b1f",
    Token.Literal.Number: "#a04010",
    Token.Operator.Word: "#1f4fb8",
    Token.Generic.Deleted: "#b3261e",
    Token.Generic.Inserted: "#1f6d47",
}
_SUFFIXES: Final = {"bash": ".sh", "shell": ".sh", "console": ".txt", "c++": ".cpp", "cpp": ".cpp", "text": ".txt"}
"""Of languages for which Pygments names a rarer one first."""


def lines_of_spans(text: str, language: str, *, dark: bool) -> list[list[tuple[int, int, str]]]:
    """For every line its coloured spans: first character, how many, #rrggbb. An unknown language has none."""
    table: Mapping[Any, str] = _DARK if dark else _LIGHT
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else TextLexer()
    except ClassNotFound:
        lexer = TextLexer()
    lines: list[list[tuple[int, int, str]]] = [[]]
    column = 0
    for kind, value in lexer.get_tokens(text):
        while kind not in table and kind.parent is not None:
            kind = kind.parent
        colour = table.get(kind)
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append([])
                column = 0
            if part and colour:
                lines[-1].append((column, len(part), colour))
            column += len(part)
    return lines


def file_suffix(language: str) -> str:
    """The suffix of a file in this language, ".txt" where it is not known."""
    try:
        names = get_lexer_by_name(language).filenames if language else ()
    except ClassNotFound:
        return ".txt"
    found = (name[1:] for name in names if name.startswith("*.") and name[2:].isalnum())
    return _SUFFIXES.get(language.lower()) or next(found, ".txt")
