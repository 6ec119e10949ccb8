"""What the process with the other library is asked, and what it answers. Plain values."""

from typing import Any

from kvdesk.experiments.benchmarks.random_operations import Operation
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One audit: `n_ops` random operations of `seed` on a model, or these `operations`. settings: of the context."""

    model: str
    settings: dict[str, Any]
    seed: int
    n_ops: int
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Cells:
    """One stream of a cache after the operation. rows: of cells that differ and those beside them, each its index, then
    position and sequences as expected and as printed. The maps are texts as llama.cpp prints them.
    """

    cache: str
    stream: int
    rows: tuple[tuple[int, str, str], ...]
    positions_expected: str
    positions_printed: str
    sequences_expected: str
    sequences_printed: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended. difference: the first one, "" for none; not_played: why it was not played, "" if it was."""

    architecture: str = ""
    n_ops: int = 0
    n_decodes: int = 0
    n_maps: int = 0
    n_states: int = 0
    difference: str = ""
    cells: tuple[Cells, ...] = ()
    not_played: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An operation that is carried out next, or the end of a case."""

    operation: Operation | None = None
    outcome: Outcome | None = None
