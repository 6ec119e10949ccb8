"""A recorded run as a history: the tokens that each sequence got and lost, read from the cells that changed.

Only the first cache counts (a window cache holds a part of the same). Must never know the engine.
"""

from collections.abc import Iterator

import numpy as np

from kvdesk.cache.flat import Flat
from kvdesk.cache.journal.packing import Operation
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.memories.cells import Patch
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.seq_bits import seq_has, seq_members, seqs_in
from kvdesk.errors import UserError
from kvdesk.experiments.scenarios.history import Copied, Event, History, Kept, Loaded, Paused, Read, Slid, Wrote, joined
from kvdesk.translation import tr

PAUSE_S = 1.0
"""Time between two operations from which nobody was waiting for anything."""
_UNKNOWN = 1 << 32  # places of tokens that are not known, behind all token ids


def history_of(recording: Recording) -> History:
    """All of it. What is there at the beginning is `Loaded`. A token that the recording does not know is a number of
    its own, above 2**32, so that it equals no other.

    Raises UserError if there are no cells to read: a recurrent model.
    """
    if not recording.shape.caches:
        raise UserError(tr("This journal is of a recurrent model: it has no cells to tell a history by."))
    return tuple(joined(_Reading(recording).events()))


class _Reading:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._flat = Flat(recording.shape)
        self._n_cells = self._flat.offsets[recording.shape.caches[0].n_streams]
        self._tokens: dict[int, list[int]] = {}
        self._at_s: float | None = None  # when the operation before this one ended

    def events(self) -> Iterator[Event]:
        base = self._recording.base()
        yield from self._changed(base, decoded=False, read=False, number=0)
        for operation, patch in self._recording.patches():
            yield from self._pause(operation)
            decoded = operation.call.startswith("llama_decode")
            appended = self._appended(patch) if decoded else None
            if appended is not None:
                seq_id, token = appended
                event = Read if operation.name == "prefill" else Wrote
                yield event(seq_id, (token,))
            else:
                read = operation.name == "prefill"
                yield from self._changed(patch, decoded=decoded, read=read, number=operation.number)

    def _pause(self, operation: Operation) -> Iterator[Event]:
        if self._at_s is not None and operation.at_s - operation.ms / 1e3 - self._at_s >= PAUSE_S:
            yield Paused(round(operation.at_s - operation.ms / 1e3 - self._at_s, 3))
        self._at_s = operation.at_s

    def _appended(self, patch: Patch) -> tuple[int, int] | None:
        """(sequence, token) of by far the most decodes: one token into a free cell at the end of one sequence."""
        inside = patch.index < self._n_cells
        if int(inside.sum()) != 1:
            return None
        i = int(inside.argmax())
        members = seq_members(patch.bits[i])
        if len(members) != 1 or self._flat.pos[patch.index[i]] != -1:
            return None
        tokens = self._tokens.get(members[0], [])
        if int(patch.pos[i]) != len(tokens) or patch.token[i] < 0:
            return None
        self._flat.apply(patch)
        tokens.append(int(patch.token[i]))
        self._tokens[members[0]] = tokens
        return members[0], tokens[-1]

    def _changed(self, patch: Patch, *, decoded: bool, read: bool, number: int) -> Iterator[Event]:
        """What an operation did to each sequence, found by comparing its tokens before and after."""
        index = patch.index[patch.index < self._n_cells]
        bits = np.bitwise_or.reduce(self._flat.bits[index], axis=0, initial=np.uint64(0))
        self._flat.apply(patch)
        bits |= np.bitwise_or.reduce(self._flat.bits[index], axis=0, initial=np.uint64(0))
        grown: list[tuple[int, int, list[int]]] = []  # sequence, tokens that stayed, all of them now
        for seq_id in seq_members(bits):
            before, now = self._tokens.get(seq_id, []), self._held(seq_id)
            n = common_prefix(before, now)
            if n < len(before):
                n_rest, n_lost = len(now) - n, len(before) - len(now)
                if n_lost > 0 and n_rest and before[len(before) - n_rest :] == now[n:]:
                    yield Slid(seq_id, n, n_lost)
                    n = len(now)
                else:
                    yield Kept(seq_id, n)
            self._tokens[seq_id] = now
            if not now:
                del self._tokens[seq_id]
            if n < len(now):
                grown.append((seq_id, n, now))
        fresh = self._written(number)
        for seq_id, n, now in grown:
            source = None if decoded else self._source(seq_id, now, fresh)
            if source is not None:
                yield Copied(source, seq_id, len(now))
            elif decoded:
                yield (Read if read or len(now) - n > 1 else Wrote)(seq_id, tuple(now[n:]))
            else:
                yield Loaded(seq_id, tuple(now[n:]))

    def _held(self, seq_id: int) -> list[int]:
        flat = self._flat
        cells = np.flatnonzero(seq_has(flat.bits[: self._n_cells], seq_id))
        cells = cells[np.argsort(flat.pos[cells], kind="stable")]
        unknown = _UNKNOWN + flat.written_at_op[cells] * _UNKNOWN + flat.pos[cells]
        held: list[int] = np.where(flat.token[cells] < 0, unknown, flat.token[cells]).tolist()
        return held

    def _written(self, number: int) -> set[int]:
        """Sequences with a cell that this operation wrote."""
        cells = np.flatnonzero(self._flat.written_at_op[: self._n_cells] == number)
        return set(seqs_in(self._flat.bits[cells]))

    def _source(self, seq_id: int, now: list[int], fresh: set[int]) -> int | None:
        """Another sequence that begins with all of this, where no cell was written for it."""
        if seq_id in fresh:
            return None
        return next(
            (s for s, tokens in sorted(self._tokens.items()) if s != seq_id and tokens[: len(now)] == now), None
        )
