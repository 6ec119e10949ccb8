"""A recording as a file of JSON lines, which can be viewed without a model (`kvdesk replay FILE`).

UTF-8, one JSON object per line, each at most 1 MiB. Line 1 is the header (wrapped here):

    {"format": "kvdesk-journal", "version": 1, "versions": {"kvdesk": "0.1.0", ...}, "model": "file name",
     "caches": [{"name": "kv", "streams": 1, "size": 4096, "n_swa": 0, "swa_type": "none"}],
     "words": 1,
     "start": 0, "heads": [], "cells": []}

`caches` are the attention caches in order ("kv", "kv" and "indexer", or "base" and "window"; none for a purely
recurrent model), `words` the 64-bit words of sequence bits per cell (n_seq_max / 64, rounded up). `start` is the number
of the operation after which the journal begins, `heads` and `cells` the map at that moment, as changes to an empty one.
Every other line is an operation, numbers ascending:

    {"n": 7, "at": 1763696162.25, "name": "decode", "call": "llama_decode(...)", "ms": 8.1, "conversation": "",
     "reason": "", "heads": [[0, 12]], "cells": [[0, 10, 2, 10, [0], 7, [312, 9906]], [0, 40, 5]]}

`n` is the number, `at` Unix time in seconds, `ms` the call's wall time.
`heads`: [stream, head after it] where it changed; streams are numbered through all caches, base before window.
`cells`: runs of neighbouring cells, as they are after the operation:

    [stream, cell, n]                                   n cells from `cell` on are empty
    [stream, cell, n, pos, seq_ids, born, tokens]       the i-th of them holds position pos + i and token tokens[i]
                                                        (-1 unknown) for the same sequences, written by operation `born`

If the runs do not fit into one line, the next lines continue with {"more": [runs]}.

Owns this format and nothing else. Reading checks every value before it is used; memory is bounded by the recorder's
limit whatever the file holds.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, get_args

import numpy as np

from kvdesk.cache.flat import CacheShape, Flat, Shape, join_patches
from kvdesk.cache.geometry import SwaType
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.journal.recording import MAX_BYTES, Recorder, Recording
from kvdesk.cache.journal.runs import Invalid, integer, patch_of, runs_of
from kvdesk.cache.memories.cells import Patch
from kvdesk.cache.snapshot import CacheName
from kvdesk.codec import read_json
from kvdesk.errors import UserError, explained
from kvdesk.graphemes import cut
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, field, replace
from kvdesk.whole_file import replacing

FORMAT, VERSION = "kvdesk-journal", 1
MAX_LINE = 1 << 20
MAX_CELLS = 1 << 21
MAX_FILE = 1 << 30  # a million operations take about 250 MB
_MAX_NUMBER = 2**31 - 1  # of an operation
_MAX_STREAMS = 512  # 256 sequences in two caches
_LINE_VALUES = 20_000  # numbers of runs in one line; each takes at most 21 characters
_TEXT = 4096  # characters of a call, a reason, a name
_MORE = b'{"more"'  # a line that continues an operation begins so
_TOO_DAMAGED = marked("The journal is damaged or was not written by kvdesk.")


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """The origin of a journal. `versions`: of kvdesk, llama.cpp and so on; `model`: name of the model file."""

    model: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


def save_journal(path: Path, recording: Recording, header: JournalHeader) -> None:
    """Write a recording; an existing file is replaced at the end. Raises UserError if it cannot be written."""
    with (
        explained(tr("The journal could not be saved to {name}: {strerror}."), name=path.name),
        replacing(path) as part,
        part.open("w", encoding="utf-8", newline="\n") as out,
    ):
        out.writelines(journal_lines(recording, header))


def journal_lines(recording: Recording, header: JournalHeader) -> Iterator[str]:
    """The lines of the file, one after another, each with its line break."""
    yield from _first_lines(recording, header, recording.base())
    for operation, patch in recording.patches():
        yield from _operation_lines(operation, patch, recording.shape)


def _first_lines(recording: Recording, header: JournalHeader, base: Patch) -> Iterator[str]:
    shape = recording.shape
    caches = [
        {"name": c.name, "streams": c.n_streams, "size": c.size, "n_swa": c.n_swa, "swa_type": c.swa_type}
        for c in shape.caches
    ]
    about = {"format": FORMAT, "version": VERSION, "versions": dict(header.versions), "model": header.model}
    yield from _lines({**about, "caches": caches, "words": shape.words, "start": recording.start}, base, shape)


def _operation_lines(operation: Operation, patch: Patch, shape: Shape) -> Iterator[str]:
    value = {
        "n": operation.number,
        "at": operation.at_s,
        "name": cut(operation.name, _TEXT),
        "call": cut(operation.call, _TEXT),
        "ms": operation.ms,
        "conversation": cut(operation.conversation, _TEXT),
        "reason": cut(operation.reason, _TEXT),
    }
    yield from _lines(value, patch, shape)


class GrowingJournal:
    """A file that grows with a recording; after each `take` it is a complete journal. If a signal interrupts `take`,
    the next call, or `close`, cuts off the incomplete part.

    with_tokens  with token ids, and the conversations and reasons of operations
    """

    def __init__(self, out: BinaryIO, header: JournalHeader, *, with_tokens: bool) -> None:
        self._out, self._header, self._with_tokens = out, header, with_tokens
        self._shape: Shape | None = None
        self._end = 0  # of the last line that is whole
        self.n_operations = 0
        self.last = 0

    def take(self, recording: Recording) -> bool:
        """Write what is new. False, and nothing is written, if the recording has begun again or the file is full.
        Raises OSError.
        """
        shape, is_new = recording.shape, self._shape is None
        has_begun_again = recording.start > self.last or max(recording.last, recording.start) < self.last
        if not is_new and (has_begun_again or self._end > MAX_FILE // 2):
            return False
        if shape != self._shape:  # differs from the first line, for example because streams were added
            self._shape, self._end = None, 0
        self._cut()
        if self._shape is None:
            end = self._written(_first_lines(recording, self._header, self._plain(recording.base())))
            self._shape, self._end, self.last, self.n_operations = shape, end, recording.start, 0
        for operation, patch in recording.patches(self.last):
            if not self._with_tokens:
                operation = replace(operation, conversation="", reason="")
            end = self._written(_operation_lines(operation, self._plain(patch), shape))
            self._end, self.last, self.n_operations = end, operation.number, self.n_operations + 1
        self._out.flush()
        return True

    def close(self) -> None:
        """Close the file. Raises OSError."""
        self._cut()
        self._out.close()

    def _cut(self) -> None:
        self._out.seek(self._end)
        self._out.truncate()

    def _plain(self, patch: Patch) -> Patch:
        return patch if self._with_tokens else replace(patch, token=np.full_like(patch.token, -1))

    def _written(self, lines: Iterator[str]) -> int:
        """The new end of the file."""
        self._out.write("".join(lines).encode())
        return self._out.tell()


def load_journal(path: Path) -> tuple[JournalHeader, Recording]:
    """Read a journal. Beyond MAX_BYTES of memory the oldest operations are dropped, as during recording. An operation
    whose last line is cut off, by a kill or a full disk, is left out.

    Raises UserError: the file cannot be read, is not a journal, is damaged or of a newer version.
    """
    with explained(tr("{name} could not be read: {strerror}."), name=path.name):
        size = path.stat().st_size
        if not path.is_file():
            raise UserError(tr("{name} is not a file.").format(name=path.name))
        if size > MAX_FILE:
            raise UserError(tr("{name} is too large for a journal: {size:,} bytes.").format(name=path.name, size=size))
        with path.open("rb") as file:
            return _Reader(file).read()


class _CutOffError(Invalid):
    """The last line has no end, and may continue an operation."""


class _Reader:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._number = 0
        self._ahead: dict[str, Any] | None = None

    def read(self) -> tuple[JournalHeader, Recording]:
        try:
            return self._read()
        except Invalid as error:
            raise UserError(tr(_TOO_DAMAGED), f"line {self._number}: {error}") from error

    def _read(self) -> tuple[JournalHeader, Recording]:
        value = self._next()
        if value is None or value.get("format") != FORMAT:
            raise UserError(tr("This is not a kvdesk journal."))
        if integer(value.get("version"), 1, 2**31) != VERSION:
            raise UserError(tr("The journal is from a newer kvdesk."), f"version {value['version']}")
        header, shape = _header(value), _shape(value)
        start = integer(value.get("start"), 0, _MAX_NUMBER)
        recorder = Recorder(shape, start, self._patch(value, Flat(shape), start), MAX_BYTES)
        with suppress(_CutOffError):
            while (value := self._next()) is not None:
                operation = _operation(value, recorder.last)
                recorder.append(operation, self._patch(value, recorder.flat, operation.number))
        return header, recorder.recording()

    def _patch(self, value: dict[str, Any], flat: Flat, number: int) -> Patch:
        """The changes in a line and in the lines that continue it."""
        shape = flat.shape
        heads = _heads(value.get("heads"), shape)
        parts = [patch_of(value.get("cells"), flat, number)]
        n = parts[0].n_cells
        while (after := self._next()) is not None:
            if "more" not in after:
                self._ahead = after
                break
            parts.append(patch_of(after["more"], flat, number))
            n += parts[-1].n_cells
            if n > shape.n_cells or not parts[-1].n_cells:
                raise Invalid("an operation changes more cells than there are")
        patch = join_patches(parts, shape.words, heads)
        if len(parts) > 1 and len(np.unique(patch.index)) != patch.n_cells:
            raise Invalid("an operation changes a cell twice")
        return patch

    def _next(self) -> dict[str, Any] | None:
        """The next line as an object, None at the end, and for the beginning of an operation that is cut off there."""
        if self._ahead is not None:
            value, self._ahead = self._ahead, None
            return value
        line = self._file.readline(MAX_LINE + 1)
        if not line:
            return None
        self._number += 1
        if len(line) > MAX_LINE:
            raise Invalid("a line is too long")
        try:
            value = read_json(line)
        except (ValueError, RecursionError) as error:
            if line.endswith(b"\n"):
                raise Invalid(str(error)[:200]) from error
            if line[: len(_MORE)] == _MORE[: len(line)]:
                raise _CutOffError("the last line") from error
            return None
        if type(value) is not dict:
            raise Invalid("a line is not an object")
        return value


def _lines(value: dict[str, Any], patch: Patch, shape: Shape) -> Iterator[str]:
    groups = _grouped(runs_of(patch, shape))
    value |= {"heads": [list(head) for head in patch.heads], "cells": next(groups, [])}
    yield json.dumps(value, separators=(",", ":")) + "\n"
    for runs in groups:
        yield json.dumps({"more": runs}, separators=(",", ":")) + "\n"


def _grouped(runs: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    """Runs in groups that fit into one line."""
    group: list[list[Any]] = []
    n = 0
    for run in runs:
        weight = 7 + (len(run[4]) + len(run[6]) if len(run) > 3 else 0)
        if n and n + weight > _LINE_VALUES:
            yield group
            group, n = [], 0
        group.append(run)
        n += weight
    if group:
        yield group


def _header(value: dict[str, Any]) -> JournalHeader:
    versions = value.get("versions")
    if type(versions) is not dict or len(versions) > 64:
        raise Invalid("versions")
    return JournalHeader(_text(value.get("model")), {_text(k): _text(v) for k, v in versions.items()})


def _shape(value: dict[str, Any]) -> Shape:
    caches = value.get("caches")
    if type(caches) is not list or len(caches) > 2:
        raise Invalid("caches")
    shapes = []
    n_cells = n_streams = 0
    for cache in caches:
        if type(cache) is not dict or cache.get("name") not in get_args(CacheName):
            raise Invalid("a cache without a known name")
        n, size = integer(cache.get("streams"), 1, _MAX_STREAMS), integer(cache.get("size"), 1, MAX_CELLS)
        n_cells, n_streams = n_cells + n * size, n_streams + n
        if n_cells > MAX_CELLS or n_streams > _MAX_STREAMS:
            raise Invalid("too many cells")
        swa_type = cache.get("swa_type", "standard")  # not in files of before
        if swa_type not in get_args(SwaType):
            raise Invalid("a sliding window of no known shape")
        shapes.append(CacheShape(cache["name"], n, size, integer(cache.get("n_swa"), 0, 2**31 - 1), swa_type))
    if len({shape.name for shape in shapes}) != len(shapes):
        raise Invalid("two caches of one name")
    return Shape(tuple(shapes), integer(value.get("words"), 1, 4))


def _operation(value: dict[str, Any], last: int) -> Operation:
    return Operation(
        number=integer(value.get("n"), last + 1, _MAX_NUMBER),
        at_s=_number(value.get("at"), 1e11),
        name=_text(value.get("name")),
        call=_text(value.get("call")),
        ms=_number(value.get("ms"), 1e11),
        conversation=_text(value.get("conversation")),
        reason=_text(value.get("reason")),
    )


def _heads(value: object, shape: Shape) -> tuple[tuple[int, int], ...]:
    sizes = [cache.size for cache in shape.caches for _ in range(cache.n_streams)]
    if type(value) is not list or len(value) > len(sizes):
        raise Invalid("heads")
    heads = []
    for pair in value:
        if type(pair) is not list or len(pair) != 2:
            raise Invalid("heads")
        stream = integer(pair[0], 0, len(sizes) - 1)
        heads.append((stream, integer(pair[1], 0, sizes[stream])))
    return tuple(heads)


def _text(value: object) -> str:
    if type(value) is not str or len(value) > _TEXT:
        raise Invalid("a text is missing or too long")
    return value.encode("utf-8", "replace").decode()  # JSON can hold half a surrogate pair


def _number(value: object, limit: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -limit <= value <= limit:
        raise Invalid("a time is not a number")
    return float(value)
