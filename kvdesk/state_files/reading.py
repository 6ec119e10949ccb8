"""Reads one file: its parts, the layout of its cells, and what their numbers are like. Runs in the child."""

import mmap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kvdesk.cache.state.blob import BlobError, Section, StateBlob, StreamBlob
from kvdesk.paths import open_regular
from kvdesk.state_files.formats import Parts, take_apart
from kvdesk.state_files.found import Numbers, State, StateFile, Stream
from kvdesk.state_files.layout import read_layout
from kvdesk.state_files.numbers import describe
from kvdesk.translation import tr
from kvdesk.values import replace


class Opened(NamedTuple):
    """A file with its bytes: `state` is None if its cells cannot be read."""

    file: StateFile
    state: StateBlob | None
    blob: memoryview


def open_file(path: Path) -> Opened:
    """What is in the file. Raises BlobError for what is no saved state, and OSError."""
    with open_regular(path) as file:
        size = path.stat().st_size
        if not size:
            raise BlobError(tr("The file is empty."))
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    parts = take_apart(path, data)
    found = StateFile(
        name=path.name,
        format=parts.format,
        n_bytes=size,
        version=parts.version,
        tokens=parts.tokens,
        problem=parts.problem,
        made_by=parts.made_by,
        n_context=parts.n_context,
    )
    if parts.blob is None:
        return Opened(found, None, memoryview(b""))
    return _with_cells(found, parts, parts.blob)


def _with_cells(found: StateFile, parts: Parts, blob: memoryview) -> Opened:
    try:
        state, geometry = read_layout(blob, whole=parts.whole)
    except BlobError as error:
        return Opened(replace(found, problem=found.problem or str(error)), None, blob)
    caches = tuple(tuple(_stream(blob, stream) for stream in streams) for streams in state.caches)
    found = replace(
        found,
        architecture=state.architecture,
        n_streams=geometry.n_stream if caches else 0,
        caches=caches,
        states=tuple(State(pos, seq_ids) for pos, seq_ids in state.states),
        state_tensors=_tensors(blob, state.state_sections, len(state.states)),
        extended=geometry.facts.cell_ext,
    )
    return Opened(found, state, blob)


def _stream(blob: memoryview, stream: StreamBlob) -> Stream:
    positions = np.unique(stream.pos)
    starts = np.flatnonzero(np.diff(positions, prepend=positions[0] - 2 if len(positions) else 0) != 1)
    ends = np.append(starts[1:], len(positions)) - 1
    runs = tuple(zip(positions[starts].tolist(), positions[ends].tolist(), strict=True)) if len(positions) else ()
    sequences = sorted({seq_id for seq_ids in set(stream.seq_ids) for seq_id in seq_ids})
    return Stream(stream.n_cells, runs, tuple(sequences), _tensors(blob, stream.sections, stream.n_cells))


def _tensors(blob: memoryview, sections: Iterable[Section], n_cells: int) -> tuple[Numbers, ...]:
    """What each is like. Those of one kind are of one layer after another."""
    layers: dict[str, Iterator[int]] = defaultdict(count)
    return tuple(describe(blob, one, next(layers[one.kind]), n_cells) for one in sections)
