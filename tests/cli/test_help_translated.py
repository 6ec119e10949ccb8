"""The help of every command is in kvdesk's language: no text of it is left to English."""

import ast

from kvdesk import translation
from kvdesk.cli.parser import Parser
from tests.places import ROOT
from tests.ui.cut_texts import chinese


def test_no_text_of_help_is_without_translation() -> None:
    bare = [
        f"{file.name}:{keyword.value.lineno}: {ast.unparse(keyword.value)[:60]}"
        for file in (ROOT / "kvdesk" / "cli").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in ("help", "description", "epilog")
        and (
            isinstance(keyword.value, ast.JoinedStr)
            or (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str))
            or ast.unparse(keyword.value) == "__doc__"
        )
    ]
    assert not bare


def test_what_argparse_adds_is_translated_too() -> None:
    translation.install(chinese(has_glyphs=True))
    try:
        parser = Parser(prog="kvdesk x")
        parser.add_argument("file")
        told = parser.format_help()
    finally:
        translation.install(translation.english)
    assert "用法" in told
    assert "显示此帮助" in told
    for english in ("usage", "positional", "options", "show this help"):
        assert english not in told
