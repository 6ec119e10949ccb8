"""Reading a state blob: positions and sequence ids of every cell, and where the K/V bytes lie.

Owns the layout of llama_state_get_data and llama_state_seq_get_data (llama-kv-cache.cpp:2065-2340,
llama-memory-recurrent.cpp:767-960, llama-memory-hybrid-idx.cpp:245, llama-kv-cache-dsv4.cpp:1590). Every length is
checked before it is used, so a damaged or hostile blob raises a BlobError in time proportional to its size. Must never
know the mirror. Little endian throughout.
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import MAX_LAYERS, MAX_SEQ, Geometry
from kvdesk.errors import KvdeskError
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

SEQ_MAGIC = 0xAF143CD8  # llama-context.cpp:3189
_MAX_ARCH = 256
_ROWS = struct.Struct("<iQ")  # type, bytes of a row
_F32 = 0  # GGML_TYPE_F32
_DSV4_HEAD = struct.pack("<3I", 0x34565344, 1, 0)  # magic, version, a full state (llama-kv-cache-dsv4.cpp:20)
_DSV4_TENSOR = struct.Struct("<iQQQ")  # type, numbers of a row, rows, bytes of a row
_N_COMPRESSED = 3  # csa, hca, lid
_LOOKED_AT = 64  # rows of the table of cells that are first read together

Blob = bytes | bytearray | memoryview
"""The bytes of a saved state."""


class BlobError(KvdeskError):
    """The blob does not have the layout that this engine writes for this context."""


@dataclass(frozen=True, slots=True)
class Section:
    """One tensor's bytes in the blob: `n_bytes` from `offset`, `row_bytes` for each cell.

    A transposed V (flash attention off) has n_rows rows, each with one element of every cell; else n_rows is 0.
    ggml_type: the engine's number of the type, as the blob says.
    """

    kind: str  # "k" or "v"; "r" or "s" of the recurrent part
    offset: int
    n_bytes: int
    row_bytes: int
    n_rows: int = 0
    ggml_type: int = -1

    def items(self, data: NDArray[np.uint8], n_cells: int) -> NDArray[np.void]:
        """`data` of `n_cells` cells, laid out as this tensor, which is not empty: shape (rows, n_cells). An item is
        what a cell has; of a transposed V one of its numbers.
        """
        n_rows = self.n_rows or 1
        return data.view(f"V{self.row_bytes // n_rows}").reshape(n_rows, n_cells)


@dataclass(frozen=True, slots=True, eq=False)
class StreamBlob:
    """Used cells of one stream in index order (the indices themselves are not in a blob). `table`: where it lists them,
    behind their number.
    """

    pos: NDArray[np.int32]
    seq_ids: tuple[tuple[int, ...], ...]
    sections: tuple[Section, ...] = ()
    table: slice = slice(0, 0)

    @property
    def n_cells(self) -> int:
        return len(self.seq_ids)

    def row_words(self, geometry: Geometry) -> NDArray[np.int64]:
        """Words of each row of the table."""
        return row_words(geometry.facts.cell_ext) + np.fromiter(map(len, self.seq_ids), np.int64, self.n_cells)


def row_words(cell_ext: bool) -> int:
    """Words of a cell in front of its sequences: its position, their number, a 2D position (M-RoPE)."""
    return 5 if cell_ext else 2


@dataclass(frozen=True, slots=True, eq=False)
class StateBlob:
    """A whole blob. `caches`: one entry per attention cache (window or indexer second), each a tuple over streams.

    seq_id        the sequence it was taken from, None for the whole context
    architecture  "" in a blob of one sequence
    states        recurrent part: (pos, sequence ids); the ids are empty in a blob of one sequence
    follower      streams of an indexer's keys that lie in the cells of attention, () without one
    """

    architecture: str
    seq_id: int | None
    caches: tuple[tuple[StreamBlob, ...], ...]
    states: tuple[tuple[int, tuple[int, ...]], ...]
    state_sections: tuple[Section, ...] = ()
    follower: tuple[StreamBlob, ...] = ()


class _Reader:
    def __init__(self, blob: Blob) -> None:
        self.view = memoryview(blob).cast("B")
        self.at = 0

    def take(self, n_bytes: int, what: str) -> memoryview:
        if n_bytes < 0 or n_bytes > len(self.view) - self.at:
            raise BlobError(
                tr("The saved state is damaged or cut off."),
                f"{what}: {n_bytes} bytes at {self.at} of {len(self.view)}",
            )
        part = self.view[self.at : self.at + n_bytes]
        self.at += n_bytes
        return part

    def u32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little")

    def i32(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little", signed=True)

    def words(self, ahead: int) -> NDArray[np.int32]:
        """The next whole 32-bit words, at most `ahead`, without moving on."""
        n = min(ahead, (len(self.view) - self.at) // 4)
        return np.frombuffer(self.view[self.at : self.at + 4 * n], dtype="<i4")


def parse_state(blob: Blob, geometry: Geometry) -> StateBlob:
    """Parse a blob of llama_state_get_data for this geometry. Raises BlobError."""
    reader = _Reader(blob)
    architecture = _architecture(reader, geometry)
    state = _memory(reader, geometry, architecture, None)
    for streams in state.caches:
        for s, stored in enumerate(streams):
            if geometry.n_stream > 1 and any(seq_ids != (s,) for seq_ids in set(stored.seq_ids)):
                raise BlobError(tr("The saved state is damaged."), f"stream {s} has a cell of another sequence")
    return state


def parse_cells(blob: Blob, geometry: Geometry) -> StateBlob:
    """Only the cells of a blob of llama_state_get_data that ends after the table of its first stream. These are all
    cells if `geometry` has one stream, of attention without a window. Raises BlobError.
    """
    reader = _Reader(blob)
    architecture = _architecture(reader, geometry)
    _n_stream(reader, geometry)
    pos, seq_ids = _cells(reader, reader.u32("number of cells"), geometry.facts.cell_ext)
    return StateBlob(architecture, None, ((StreamBlob(pos, seq_ids),),), ())


def parse_seq_state(blob: Blob, geometry: Geometry) -> StateBlob:
    """Parse a blob of llama_state_seq_get_data for this geometry. Raises BlobError.

    Also for more than one recurrent state, on which the engine would abort (llama-memory-recurrent.cpp:1034).
    """
    reader = _Reader(blob)
    magic = reader.u32("magic")
    if magic != SEQ_MAGIC:
        raise BlobError(tr("This is not the saved state of a sequence."), f"magic {magic:#x}")
    state = _memory(reader, geometry, "", reader.i32("sequence"))
    cells = [stored for streams in state.caches for stored in streams]
    if any(len(seq_ids) != 1 for stored in cells for seq_ids in set(stored.seq_ids)):
        raise BlobError(tr("The saved state is damaged."), "a cell does not have one sequence")
    if len(state.states) > 1 or any(seq_ids for _, seq_ids in state.states):
        raise BlobError(tr("The saved state is damaged."), "more than one recurrent state, or one with sequences")
    return state


def _memory(reader: _Reader, geometry: Geometry, architecture: str, seq_id: int | None) -> StateBlob:
    facts = geometry.facts
    if facts.kind == "dsv4" and reader.take(len(_DSV4_HEAD), "head") != _DSV4_HEAD:
        raise BlobError(tr("The saved state is damaged."), "not a full state of DeepSeek V4")
    caches = tuple(_attention(reader, geometry, facts.cell_ext, facts.mla) for _ in geometry.cache_sizes)
    states: tuple[tuple[int, tuple[int, ...]], ...] = ()
    sections: tuple[Section, ...] = ()
    follower: tuple[StreamBlob, ...] = ()
    if geometry.has_recurrent:
        states, sections, follower = _recurrent(reader, geometry, caches)
        half = len(sections) // 2  # R of every layer, then S of every layer
        sections = tuple(replace(one, kind="r" if i < half else "s") for i, one in enumerate(sections))
    if facts.kind == "dsv4":
        _compressed(reader)
    if reader.at != len(reader.view):
        raise BlobError(tr("The saved state is damaged."), f"{len(reader.view) - reader.at} bytes left over at its end")
    return StateBlob(architecture, seq_id, caches, states, sections, follower)


def _architecture(reader: _Reader, geometry: Geometry) -> str:
    length = reader.u32("architecture")
    if length > _MAX_ARCH:
        raise BlobError(tr("The saved state is damaged or cut off."), f"architecture name of {length} bytes")
    architecture = bytes(reader.take(length, "architecture")).decode("utf-8", errors="replace")
    if architecture != geometry.facts.architecture:
        raise BlobError(
            tr("The saved state is from a {architecture} model, not from {architecture2}.").format(
                architecture=architecture, architecture2=geometry.facts.architecture
            )
        )
    return architecture


def _n_stream(reader: _Reader, geometry: Geometry) -> int:
    n_stream = reader.u32("number of streams")
    if n_stream != geometry.n_stream:
        raise BlobError(
            tr("The saved state has {n_stream} streams, the context {n_stream2}.").format(
                n_stream=n_stream, n_stream2=geometry.n_stream
            )
        )
    return n_stream


def _attention(reader: _Reader, geometry: Geometry, cell_ext: bool, mla: bool) -> tuple[StreamBlob, ...]:
    n_stream = _n_stream(reader, geometry)
    streams = []
    for _ in range(n_stream):
        n_cells = reader.u32("number of cells")
        if not n_cells:
            streams.append(StreamBlob(np.empty(0, dtype=np.int32), ()))
            continue
        start = reader.at
        pos, seq_ids = _cells(reader, n_cells, cell_ext)
        if (pos < 0).any():
            raise BlobError(tr("The saved state is damaged."), "a cell has a negative position")
        table = slice(start, reader.at)
        streams.append(StreamBlob(pos, seq_ids, _tensors(reader, n_cells, mla), table))
    return tuple(streams)


def _cells(reader: _Reader, n_cells: int, cell_ext: bool) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
    """The table of cells, read in runs of cells with equal numbers of sequences; shared cells are usually adjacent.

    The number of rows read together doubles as long as a run continues, so that no order takes long.
    """
    n_first = row_words(cell_ext)
    if 8 * n_cells > len(reader.view) - reader.at:
        raise BlobError(tr("The saved state is damaged or cut off."), f"{n_cells} cells at {reader.at}")
    pos = np.empty(n_cells, dtype=np.int32)
    seq_ids: list[tuple[int, ...]] = []
    done, ahead = 0, _LOOKED_AT
    while done < n_cells:
        head = reader.words(2)
        n_ids = int(head[1]) if len(head) == 2 else 0
        if not 0 <= n_ids <= MAX_SEQ:
            raise BlobError(tr("The saved state is damaged."), f"cell {done} has {n_ids & 0xFFFFFFFF} sequences")
        width = n_first + n_ids
        ahead = min(ahead, n_cells - done)
        words = reader.words(ahead * width)
        n_rows = len(words) // width
        rows = words[: n_rows * width].reshape(n_rows, width)
        other = np.flatnonzero(rows[:, 1] != n_ids)
        n = int(other[0]) if len(other) else n_rows
        reader.take(4 * width * max(n, 1), "cells")
        ids = rows[:n, n_first:]
        if n_ids and not ((ids >= 0) & (ids < MAX_SEQ)).all():
            raise BlobError(tr("The saved state is damaged."), "a sequence id is out of range")
        pos[done : done + n] = rows[:n, 0]
        seq_ids += _as_tuples(ids)
        done += n
        ahead = 2 * ahead if n == ahead else _LOOKED_AT
    return pos, tuple(seq_ids)


def _as_tuples(ids: NDArray[np.int32]) -> list[tuple[int, ...]]:
    """Each row as a tuple. Equal rows share one tuple, because one per cell triggers Python's garbage collection."""
    if len(ids) > 1 and (ids == ids[0]).all():
        return [tuple(ids[0].tolist())] * len(ids)
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    return [known.setdefault(row, row) for row in map(tuple, ids.tolist())]


def _tensors(reader: _Reader, n_cells: int, mla: bool) -> tuple[Section, ...]:
    """K of every layer, then V of every layer (none with MLA); V may be stored transposed."""
    v_trans = reader.u32("v_trans")
    n_layer = reader.u32("number of layers")
    sections = [_rows(reader, "k", n_cells) for _ in range(_plausible(reader, n_layer))]
    if v_trans not in (0, 1):
        raise BlobError(tr("The saved state is damaged."), f"v_trans is {v_trans}")
    for _ in range(0 if mla else n_layer):
        if v_trans:
            ggml_type = reader.i32("V type")
            element = reader.u32("V element size")
            n_rows = reader.u32("V width")
            n_bytes = n_rows * n_cells * element
            sections.append(Section("v", reader.at, n_bytes, n_rows * element, n_rows, ggml_type))
            reader.take(n_bytes, "V")
        else:
            sections.append(_rows(reader, "v", n_cells))
    return tuple(sections)


def _rows(reader: _Reader, kind: str, n_cells: int) -> Section:
    ggml_type, row_bytes = _ROWS.unpack(reader.take(_ROWS.size, "type and row size"))
    section = Section(kind, reader.at, n_cells * row_bytes, row_bytes, ggml_type=ggml_type)
    reader.take(section.n_bytes, kind)
    return section


def _plausible(reader: _Reader, n_layer: int) -> int:
    """A layer takes at least 12 bytes, so a damaged count cannot cause a long loop."""
    if 12 * n_layer > len(reader.view) - reader.at:
        raise BlobError(tr("The saved state is damaged or cut off."), f"{n_layer} layers at {reader.at}")
    return n_layer


def _recurrent(
    reader: _Reader, geometry: Geometry, caches: Sequence[tuple[StreamBlob, ...]]
) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[Section, ...], tuple[StreamBlob, ...]]:
    n_cells = reader.u32("number of states")
    states = []
    for _ in range(n_cells):
        pos = reader.i32("position")
        n_ids = reader.u32("number of sequences")
        if n_ids > MAX_SEQ:
            raise BlobError(tr("The saved state is damaged."), f"a state of {n_ids} sequences")
        ids = np.frombuffer(reader.take(4 * n_ids, "sequence ids"), dtype="<i4")
        states.append((pos, tuple(sorted(ids.tolist()))))
    if reader.u32("s_trans") != 0:
        raise BlobError(tr("The saved state is damaged."), "s_trans is not 0")
    reader.u32("number of layers")  # layers without a state are not in the blob; the rest is rows
    sections: list[Section] = []
    n_histories = 0
    while reader.at < len(reader.view):
        if geometry.facts.kind == "hybrid_idx" and int(reader.words(1)[0:1].sum()) != _F32:
            follower = _follower(reader, geometry, caches[0])
            if follower:
                return tuple(states), tuple(sections), follower
            n_histories += 1
            if n_histories > MAX_LAYERS:
                raise BlobError(tr("The saved state is damaged."), f"more than {MAX_LAYERS} histories of tokens")
            reader.take(n_cells * int.from_bytes(reader.take(8, "row size"), "little"), "history of tokens")
            continue
        sections.append(_rows(reader, "state", n_cells))
    return tuple(states), tuple(sections), ()


def _follower(reader: _Reader, geometry: Geometry, attention: Sequence[StreamBlob]) -> tuple[StreamBlob, ...]:
    """The keys of an indexer at the end of the blob; () if something else follows, and nothing is read then.

    Nothing shows how many layers have a state, and which of those also have a history of tokens (a row without a type).
    Data that does not begin with the type of a state, and fills the blob to its end, are the keys. They have no V and
    no 2D positions (llama-memory-hybrid-idx.cpp:72), but token ids if embeddings need them (has_cell_ext). If both
    readings are possible, the one with the cells of attention counts.
    """
    start, found = reader.at, list[tuple[StreamBlob, ...]]()
    for cell_ext in (False, True):
        reader.at = start
        try:
            follower = _attention(reader, geometry, cell_ext, True)
        except BlobError:
            continue
        if reader.at == len(reader.view):
            found.append(follower)
    reader.at = len(reader.view) if found else start
    return next((one for one in found if all(map(_same_cells, one, attention))), found[0] if found else ())


def _same_cells(one: StreamBlob, other: StreamBlob) -> bool:
    return one.seq_ids == other.seq_ids and np.array_equal(one.pos, other.pos)


def _compressed(reader: _Reader) -> None:
    """Skip what DeepSeek V4 keeps by position: compressed keys, then what is compressed next (:295, :1106)."""
    for i in range(2 * _N_COMPRESSED):
        is_state = i >= _N_COMPRESSED
        reader.take(16 if is_state else 8, "compressed keys")  # version, and how many rows of what size
        n_streams = reader.u32("number of streams")
        for _ in range(_plausible(reader, reader.u32("number of layers"))):
            reader.take(4, "layer")
            for _ in range(1 + is_state):
                _, _, n_rows, row_bytes = _DSV4_TENSOR.unpack(reader.take(_DSV4_TENSOR.size, "compressed tensor"))
                reader.take(n_streams * n_rows * row_bytes, "compressed rows")
