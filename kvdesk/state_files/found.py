"""What was found in a file that holds a saved KV cache. Values only, which cross from the child that reads it."""

from typing import Literal

from kvdesk.values import dataclass

Format = Literal["slot", "session", "pickle", "kvdesk", "sequence", "context"]
"""llama_state_seq_save_file, llama_state_save_file, Llama.save_state, a saved state of kvdesk, and the bytes of
llama_state_seq_get_data and llama_state_get_data as they are."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """One tensor: K or V of a layer over all cells of a stream, or R or S of the recurrent part.

    layer       index among the layers of its cache
    type        ggml's name of the data type; a number where it is unknown, and then no value is known
    row_bytes   of one cell
    n_rows      numbers of a cell where V is transposed, else 0
    norm_mean, norm_max, low, high   of the finite numbers; norms are over the numbers of one cell
    n_bad       numbers that are infinite or not a number
    """

    kind: str
    layer: int
    type: str
    row_bytes: int
    n_rows: int = 0
    norm_mean: float | None = None
    norm_max: float | None = None
    low: float | None = None
    high: float | None = None
    n_bad: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """The cells of one stream of a cache. `runs`: first and last position of each run without a gap.

    sequences   their ids, in order
    """

    n_cells: int
    runs: tuple[tuple[int, int], ...]
    sequences: tuple[int, ...]
    tensors: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True)
class State:
    """One recurrent state. The sequences are empty in the state of one sequence."""

    position: int
    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateFile:
    """One file.

    version        of the format, 0 if it has none
    tokens         ids in order; None: the file keeps none
    architecture   "" if the file does not say
    n_streams      of its attention caches; 0 without one
    caches         a tuple over streams for each attention cache: the base, then the window
    extended       its cells have the positions of M-RoPE too
    problem        why what follows the tokens cannot be read; ""
    made_by        of a saved state of kvdesk: what its index says of model, engine and types
    n_context      tokens a Llama object had room for; 0 if the file does not say
    texts          of the tokens, if a model was given
    """

    name: str
    format: Format
    n_bytes: int
    version: int
    tokens: tuple[int, ...] | None
    architecture: str = ""
    n_streams: int = 0
    caches: tuple[tuple[Stream, ...], ...] = ()
    states: tuple[State, ...] = ()
    state_tensors: tuple[Numbers, ...] = ()
    extended: bool = False
    problem: str = ""
    made_by: dict[str, str] | None = None
    n_context: int = 0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a file can be restored. `fits` None: kvdesk cannot tell. reasons: why not; notes: what to know besides.

    context   the context that was asked about, in words
    """

    fits: bool | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    context: str


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """K or V of one layer over the cells that both files have. `most`: the largest difference of two numbers; None:
    the numbers cannot be compared. n_equal: cells whose numbers are all equal.
    """

    cache: int
    kind: str
    layer: int
    n_cells: int
    n_equal: int
    most: float | None
    relative: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two files. `common`: leading tokens in common; None: one keeps none.

    cells   for each cache: cells in both, in the first only, in the second only
    """

    common: int | None
    cells: tuple[tuple[int, int, int], ...]
    tensors: tuple[TensorDifference, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the child sends: the files, whether the first fits, the difference; or why the first cannot be read."""

    files: tuple[StateFile, ...] = ()
    fit: Fit | None = None
    difference: Difference | None = None
    sentence: str = ""
    detail: str = ""
