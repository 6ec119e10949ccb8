"""Makes a state from some cells of a saved state, for a context with one sequence.

Owns the selection of rows. K and V stay the same bit for bit, whatever position a cell gets. Must never know the
engine.
"""

import struct
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.state.blob import SEQ_MAGIC, Blob, Section, StreamBlob, parse_seq_state, parse_state, row_words

_FIRST = 20  # bytes in front of the first tensor: v_trans, number of layers; its type and bytes of a row
_U32 = struct.Struct("<I")

Choice = tuple[NDArray[np.int64], NDArray[np.int32]]
"""For one cache: ranks of the blob's cells of a stream, ascending, and their positions."""


def excerpt(
    blob: Blob,
    geometry: Geometry,
    choices: Sequence[Choice],
    *,
    whole: bool,
    stream: int = 0,
    make_room: Callable[[int], Blob] = bytearray,
) -> Blob:
    """The chosen cells of each attention cache, as llama_state_seq_get_data would save them in a context of one stream.
    A memory with a recurrent part has no excerpt.

    geometry  of the context that `blob` is from
    whole     the blob is of the whole context, else of one sequence
    stream    whose cells are chosen from
    make_room gets the number of bytes

    Raises BlobError for a damaged blob.
    """
    state = parse_state(blob, geometry) if whole else parse_seq_state(blob, geometry)
    source = np.frombuffer(blob, np.uint8)
    parts = [_u32(SEQ_MAGIC), _u32(0)]  # of sequence 0; which one it is put into is said then
    for streams, (chosen, pos) in zip(state.caches, choices, strict=True):
        stored = streams[stream]
        parts += [_u32(1), _u32(len(chosen))]
        if len(chosen):
            parts.append(_table(pos, geometry))
            parts += _tensors(source, stored, chosen) or [_u32(int(geometry.v_trans)), _u32(0)]
    target = make_room(sum(part.nbytes for part in parts))
    room, at = np.frombuffer(target, np.uint8), 0
    for part in parts:
        room[at : at + part.nbytes] = part.reshape(-1).view(np.uint8)
        at += part.nbytes
    return target


def _u32(value: int) -> NDArray[np.uint8]:
    return np.frombuffer(_U32.pack(value), np.uint8)


def _table(pos: NDArray[np.int32], geometry: Geometry) -> NDArray[np.uint8]:
    """Rows of position, number of sequences, 2D position, sequence."""
    rows = np.zeros((len(pos), row_words(geometry.facts.cell_ext) + 1), "<i4")
    rows[:, 0], rows[:, 1] = pos, 1
    return rows.view(np.uint8)


def _tensors(source: NDArray[np.uint8], stored: StreamBlob, chosen: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
    """Each tensor: what is in front of it, and its chosen rows. [] if no layer uses the cache."""
    parts = []
    at = stored.sections[0].offset - _FIRST if stored.sections else 0
    for section in stored.sections:
        parts.append(source[at : section.offset])
        parts.append(_rows(source, section, chosen, stored.n_cells))
        at = section.offset + section.n_bytes
    return parts


def _rows(source: NDArray[np.uint8], section: Section, chosen: NDArray[np.int64], n_cells: int) -> NDArray[np.uint8]:
    data = source[section.offset : section.offset + section.n_bytes]
    return (
        np.ascontiguousarray(section.items(data, n_cells)[:, chosen]).reshape(-1).view(np.uint8) if len(data) else data
    )
