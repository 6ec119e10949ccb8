"""The cache alone changes sequences and moves cells: no other module knows their class or calls llama.cpp."""

import ast
import re
from pathlib import Path

import kvdesk

PACKAGE = Path(kvdesk.__file__).parent
OWNER = PACKAGE / "backends" / "local" / "cache_manager"
READERS = [
    file
    for room in (PACKAGE / "backends", PACKAGE / "experiments" / "benchmarks", PACKAGE / "dev")
    for file in sorted(room.rglob("*.py"))
    if OWNER not in file.parents
]
MOVES = re.compile(r"\.seq_(rm|cp|keep|add|set)$|context\.decode$|memory\.(clear|decode|flush)$|states\.set$")
"""Calls of `MirroredMemory`, `Context` and `StateTransfer` that move cells."""


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
    """What all others get is `CacheSequence`, in which mypy refuses every change."""
    assert len(READERS) > 50
    assert [file.name for file in READERS if "LeasedSequence" in file.read_text(encoding="utf-8")] == []
