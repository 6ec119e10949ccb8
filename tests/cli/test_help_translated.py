"""The help of every command is in kvdesk's language: no text of it is left to English."""

import ast

from kvdesk import translation
from kvdesk.cli.parser import Parser
from tests.places import ROOT
from tests.ui.cut_texts import chinese


def texts_of(call: ast.Call) -> list[ast.expr]:
    """What a call of the parser, or of one of its methods, gives to be read."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    said = call.args[-1:] if name in ("flag", "several") else call.args[1:2] if name == "Parser" else []
    return [*said, *(keyword.value for keyword in call.keywords if keyword.arg in ("help", "epilog"))]


def test_no_text_of_help_is_without_translation() -> None:
    bare = [
        f"{file.name}:{text.lineno}: {ast.unparse(text)[:60]}"
        for file in (ROOT / "kvdesk" / "cli").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for text in texts_of(node)
        if isinstance(text, ast.JoinedStr)
        or (isinstance(text, ast.Constant) and isinstance(text.value, str))
        or ast.unparse(text) == "__doc__"
    ]
    assert not bare


def test_what_argparse_adds_is_translated_too() -> None:
    translation.install(chinese(has_glyphs=True))
    try:
        parser = Parser("x", "")
        parser.add_argument("file")
        told = parser.format_help()
    finally:
        translation.install(translation.english)
    assert "用法" in told
    assert "显示此帮助" in told
    for english in ("usage", "positional", "options", "show this help"):
        assert english not in told
