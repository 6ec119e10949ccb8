"""The cache alone changes sequences and moves cells: no other module assigns to one or calls llama.cpp."""

import ast
import re
from pathlib import Path

import kvdesk
from kvdesk.backends.local.cache_manager.sequences import LeasedSequence
from kvdesk.values import names

PACKAGE = Path(kvdesk.__file__).parent
OWNER = PACKAGE / "backends" / "local" / "cache_manager"
READERS = [
    file
    for room in (PACKAGE / "backends", PACKAGE / "experiments" / "benchmarks", PACKAGE / "dev")
    for file in sorted(room.rglob("*.py"))
    if OWNER not in file.parents
]
FIELDS = set(names(LeasedSequence))
OTHERS = {"self"}  # objects of other classes with such attributes
CHANGES = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}  # methods of a list

MOVES = re.compile(r"\.seq_(rm|cp|keep|add|set)$|context\.decode$|memory\.(clear|decode|flush)$|states\.set$")
"""Calls of `MirroredMemory`, `Context` and `StateTransfer` that move cells."""


def changes(source: str) -> list[str]:
    """Attributes named as those of a sequence that the source assigns to, deletes, or changes in place."""
    found = []
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            targets = [node.func.value]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                whole = part.value if isinstance(part, ast.Subscript) else part
                if not isinstance(whole, ast.Attribute) or whole.attr not in FIELDS:
                    continue
                if not (isinstance(whole.value, ast.Name) and whole.value.id in OTHERS):
                    found.append(f"line {whole.lineno}: {ast.unparse(part)}")
    return found


def test_nobody_else_changes_a_sequence() -> None:
    assert len(READERS) > 50
    found = {file.name: changes(file.read_text(encoding="utf-8")) for file in READERS}
    assert {name: lines for name, lines in found.items() if lines} == {}


def moves(source: str) -> list[str]:
    """Calls of the source that move cells."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if MOVES.search(ast.unparse(call))]


def test_nobody_else_moves_a_cell() -> None:
    local = OWNER.parent
    may = {OWNER, local / "llama", local / "preflight_child.py"}  # a child that tries a model has a context of its own
    readers = [file for file in local.rglob("*.py") if not may & {file, *file.parents}]
    assert len(readers) > 30
    assert {file.name: found for file in readers if (found := moves(file.read_text(encoding="utf-8")))} == {}
    ways = "context.memory.seq_rm(0); memory.clear(); self._context.decode(b); context.states.set(b); states.seq_set(b)"
    assert len(moves(ways)) == 5


def test_nobody_else_sees_the_mirrored_memory() -> None:
    local = OWNER.parent
    readers = [file for file in local.rglob("*.py") if not {OWNER, local / "llama"} & {*file.parents}]
    seen = re.compile(r"context\.memory\b")
    assert [file.name for file in readers if seen.search(file.read_text(encoding="utf-8"))] == []


def test_nobody_else_knows_the_class_that_changes() -> None:
    known = [file.name for file in READERS if "LeasedSequence" in file.read_text(encoding="utf-8")]
    assert known == []


def test_every_way_to_change_one_is_found() -> None:
    ways = """
request.sequence.busy = True
sequence.tokens += more
sequence.tokens.append(1)
sequence.tokens[0] = 1
del sequence.tokens[3:]
sequence.tokens, sequence.exact = [], 0
"""
    assert len(changes(ways)) == 7
    assert changes("tokens = list(sequence.tokens); self.tokens += more") == []
