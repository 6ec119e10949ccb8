"""What the widgets show is given to `tr`: no call that shows a text is given a bare literal."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.places import ROOT

ROOMS: Final = (
    "viewmodel",
    *sorted(f"ui/{room.name}" for room in (ROOT / "kvdesk" / "ui").iterdir() if any(room.glob("*.py"))),
)
BEHIND: Final = (
    *("app", "attachments", "backends", "cache", "cli", "conversations", "experiments", "grammar", "host", "library"),
    *("policies", "protocol", "server", "settings", "store"),
)
"""Folders whose sentences are shown by the window or on the terminal."""
ENGLISH: Final = ROOT / "kvdesk" / "experiments" / "benchmarks"
"""What benchmarks say is for developers, and their figures are named by keys of JSON."""
EVERY: Final = tuple(range(9))
SHOWN: Final[dict[str, tuple[int, ...]]] = {
    "setText": (0,),
    "setToolTip": (0,),
    "setTitle": (0,),
    "setWindowTitle": (0,),
    "setAccessibleName": (0,),
    "setAccessibleDescription": (0,),
    "setPlaceholderText": (0,),
    "setSpecialValueText": (0,),
    "setPrefix": (0,),
    "setSuffix": (0,),
    "addAction": EVERY,
    "addItem": (0,),
    "addItems": (0,),
    "addTab": (1,),
    "drawText": EVERY,
    "elidedText": (0,),
    "QPushButton": (0,),
    "push_button": (0,),
    "Choice": (),
    "QCheckBox": (0,),
    "QRadioButton": (0,),
    "QLabel": (0,),
    "QListWidgetItem": (0,),
    "getOpenFileName": (1, 3),
    "getSaveFileName": (1, 3),
    "getText": (1, 2),
    "ask_where_to_save": (1, 3),
    "label": (0,),
    "ElidedLabel": (0,),
    "IconButton": (2, 3),
    "Action": (1,),
    "Collapsible": (1,),
    "ThinProgress": (0,),
    "SmallMap": (1,),
    "Row": (0, 1),
    "Column": (0, 1),
    "Group": (0,),
    "Table": (0,),
    "UserError": (0,),
    "ModelFileError": (0,),
    "ContextError": (0,),
    "PromptError": (0,),
    "TemplateError": (0,),
    "RefusedCall": (0,),
    "StoreError": (0,),
    "EngineError": (0,),
    "BlobError": (0,),
    "DecodeError": (1,),
    "BatchProblem": (1,),
    "Capability": (2,),
    "Failed": (0,),
    "CommandFailed": (1,),
    "EngineDied": (0,),
    "EngineRestarted": (0,),
    "Working": (0,),
    "Placement": (3,),
    "OverflowPlan": (1,),
    "Parameter": (1, 7),
    "figure": (0,),
    "Plot": (0, 1, 2),
    "Series": (0,),
    "Progress": (2,),
}
"""What shows a text: the places of its texts among the arguments. Keywords are looked at by `KEYWORDS`."""
KEYWORDS: Final = frozenset({"text", "tip", "title", "name", "caption", "empty", "widest", "placeholder"})
ALLOWED: Final = {
    "MB": "a unit",
    "ms": "a unit",
    "tok/s": "a unit",
    "{}\tDel": "keys have the same names everywhere",
    "{} (Ctrl+Shift+I)": "keys have the same names everywhere",
    "--set {}={}": "an option of the command line",
    "kvdesk": "the name of the program",
    "https://huggingface.co": "an address",
    "kvdesk: graphs": "the title inside an exported drawing",
}
"""Texts that are the same in every language, and why."""
_TRANSLATED: Final = ("tr", "plural", "marked")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """The calls and f-strings of a source file."""
    found = ast.walk(ast.parse(file.read_text("utf-8")))
    return tuple(node for node in found if isinstance(node, ast.Call | ast.JoinedStr))


def bare(found: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Those of `shown_literals` that have a word and are not allowed."""
    return (one for one in shown_literals(found) if _LETTERS.search(one[1]) and one[1] not in ALLOWED)


def shown_literals(found: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that is shown as it is; values of f-strings as {}."""
    for node in found:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        places = SHOWN.get(name)
        if places is None:
            continue
        texts = [node.args[i] for i in places if i < len(node.args)]
        texts += [keyword.value for keyword in node.keywords if keyword.arg in KEYWORDS]
        for text in texts:
            yield from _literals(text)


def _literals(node: ast.expr) -> Iterator[tuple[int, str]]:
    """The literals that the value of an expression can consist of; what a call returns is not looked at."""
    match node:
        case ast.Constant(value=str(text)):
            yield node.lineno, text
        case ast.JoinedStr(values=values):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in values)
            yield node.lineno, "".join(map(str, parts))
            for part in values:
                if isinstance(part, ast.FormattedValue):
                    yield from _literals(part.value)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _literals(body)
            yield from _literals(orelse)
        case ast.BinOp(left=left, right=right):
            yield from _literals(left)
            yield from _literals(right)
        case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            for value in values:
                yield from _literals(value)
        case _:
            pass


def sources() -> list[Path]:
    """What can show a text: the files of `ROOMS` and `BEHIND`, each of which has some."""
    rooms = [sorted((ROOT / "kvdesk" / room).rglob("*.py")) for room in (*ROOMS, *BEHIND)]
    assert all(rooms)
    return [file for files in rooms for file in files]


def test_every_text_that_is_shown_is_translated() -> None:
    files = [file for file in sources() if ENGLISH not in file.parents]
    found = [f"{file.relative_to(ROOT)}:{line} {text!r}" for file in files for line, text in bare(nodes(file))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("button.setText('Apply')", ["Apply"]),
        ("button.setText(tr('Apply'))", []),
        ("button.setText(f'{n} cells')", ["{} cells"]),
        ("button.setText(f'{n}: {took(ms)}')", []),
        ("button.setText('Apply' if a else tr('Close'))", ["Apply"]),
        ("label(tr('Cells') + ' in use', tone='small')", [" in use"]),
        ("""label(f"{n} {'cell' if n == 1 else tr('cells')}")""", ["cell"]),
        ("IconButton(theme, 'close', tr('Close'), tip='Close it')", ["Close it"]),
        ("menu.addAction(icon, 'Copy')", ["Copy"]),
        ("label('tok/s')", []),
        ("widget.setObjectName('list')", []),
    ],
)
def test_bare_texts_are_found(source: str, texts: list[str]) -> None:
    assert [text for _, text in bare(tuple(ast.walk(ast.parse(source))))] == texts


def test_nothing_is_allowed_in_vain() -> None:
    shown = {text for file in sources() for _, text in shown_literals(nodes(file))}
    assert set(ALLOWED) <= shown


def test_no_text_is_translated_inside_of_an_f_string() -> None:
    """Babel does not look into those: such a text would be in no catalogue."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "kvdesk").rglob("*.py"))
        for string in nodes(path)
        if isinstance(string, ast.JoinedStr)
        for call in ast.walk(string)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TRANSLATED
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    assert not found, found


def test_a_text_to_translate_is_a_literal() -> None:
    """Babel finds `tr("…")` alone: a text that an expression in it chooses would be in no catalogue."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "kvdesk").rglob("*.py"))
        for call in nodes(path)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TRANSLATED
        for text in call.args[:2]
        if not isinstance(text, ast.Constant)
        for part in ast.walk(text)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _LETTERS.search(part.value)
    ]
    assert not found, found
