"""How two files differ: tokens, cells, and the numbers of K and V where both have the same cell. Runs in the child."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.state.blob import Section, StreamBlob
from kvdesk.library.ggml_rows import is_known, rows
from kvdesk.state_files.found import Difference, TensorDifference
from kvdesk.state_files.reading import Opened
from kvdesk.translation import tr

_EMPTY = StreamBlob(np.empty(0, np.int32), ())


def compare(one: Opened, other: Opened) -> Difference:
    """The difference of two files. Cells are the same where a sequence has the same position in both."""
    tokens = one.file.tokens, other.file.tokens
    common = None if tokens[0] is None or tokens[1] is None else common_prefix(tokens[0], tokens[1])
    if one.state is None or other.state is None:
        return Difference(common, (), (), tr("The cells of one of them cannot be read, so they are not compared."))
    whole = one.state.seq_id is None and other.state.seq_id is None
    cells, tensors = list[tuple[int, int, int]](), list[TensorDifference]()
    for cache, streams in enumerate(zip_longest(one.state.caches, other.state.caches, fillvalue=())):
        both = only_first = only_second = 0
        sides = streams if whole else tuple([one for one in side if one.n_cells] for side in streams)
        for first, second in zip_longest(*sides, fillvalue=_EMPTY):
            keys = _keys(first, whole), _keys(second, whole)
            _, at_first, at_second = np.intersect1d(*keys, return_indices=True)
            both += len(at_first)
            only_first += len(np.unique(keys[0])) - len(at_first)
            only_second += len(np.unique(keys[1])) - len(at_second)
            if len(at_first):
                a, b = (
                    (one, first.sections, first.n_cells, at_first),
                    (other, second.sections, second.n_cells, at_second),
                )
                tensors += _tensors(cache, a, b)
        cells.append((both, only_first, only_second))
    if one.state.states == other.state.states:
        n = len(one.state.states)
        a, b = (
            (side, state.state_sections, n, np.arange(n)) for side, state in ((one, one.state), (other, other.state))
        )
        tensors += _tensors(-1, a, b)
    return Difference(common, tuple(cells), tuple(tensors))


def _keys(stream: StreamBlob, whole: bool) -> NDArray[np.int64]:
    """A number for each cell: its position, and in a whole context its first sequence."""
    sequences = [seq_ids[0] if whole and seq_ids else 0 for seq_ids in stream.seq_ids]
    return stream.pos.astype(np.int64) + (np.array(sequences, np.int64) << 32)


_Side = tuple[Opened, Sequence[Section], int, NDArray[np.intp]]
"""A file, tensors of it, how many cells they have, and which of those are compared."""


def _tensors(cache: int, one: _Side, other: _Side) -> Iterator[TensorDifference]:
    for kind in ("k", "v", "r", "s"):
        mine, theirs = ([section for section in side[1] if section.kind == kind] for side in (one, other))
        for layer, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            if a.row_bytes or b.row_bytes:  # some models have no S
                yield _tensor(cache, kind, layer, (one[0].blob, a, *one[2:]), (other[0].blob, b, *other[2:]))


_Tensor = tuple[memoryview, Section, int, NDArray[np.intp]]


def _tensor(cache: int, kind: str, layer: int, one: _Tensor, other: _Tensor) -> TensorDifference:
    n = len(one[3])
    if not (is_known(one[1]) and is_known(other[1])):
        return TensorDifference(cache, kind, layer, n, 0, None, None)
    a, b = _numbers(*one), _numbers(*other)
    if a.shape != b.shape:
        return TensorDifference(cache, kind, layer, n, 0, None, None)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        n_equal = int(np.count_nonzero(~apart.any(axis=1)))
        most, size = float(np.nanmax(apart, initial=0.0)), float(np.sqrt(np.nansum(a * a, dtype=np.float64)))
        relative = float(np.sqrt(np.nansum(apart * apart, dtype=np.float64))) / size if size else None
    return TensorDifference(cache, kind, layer, n, n_equal, _finite(most), _finite(relative))


def _numbers(blob: memoryview, section: Section, n_cells: int, index: NDArray[np.intp]) -> NDArray[np.float32]:
    return np.concatenate(list(rows(blob, section, n_cells)))[index]


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
