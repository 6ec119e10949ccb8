"""A context without mirror and guards, to see how llama.cpp itself answers a call, right or wrong.

Only for the child process of an experiment, which may crash.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import engine_log, lib
from kvdesk.backends.local.llama.memory.state import (
    get_seq_state,
    get_state,
    room,
    seq_state_size,
    set_seq_state,
    set_state,
    state_size,
)
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import buffer_bytes, planned
from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import parse_log
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import FindSlotLine
from kvdesk.errors import ContextError, RefusedCall
from kvdesk.experiments.bare_context import BareContext
from kvdesk.experiments.cell_watch import CellWatch
from kvdesk.protocol import calls
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr


class Answer(NamedTuple):
    """rc: of llama_decode; said: what the engine logged; slot: its cells before the call, if they were logged."""

    rc: int
    seconds: float
    said: tuple[str, ...]
    slot: FindSlotLine | None

    @property
    def refusal(self) -> str:
        """The engine's first line about a refused call; "" if it refused nothing."""
        said = [line for line in self.said if not line.startswith("find_slot")]
        return " ".join(said[0].split()) if self.rc != 0 and said else ""


class RawContext(BareContext):
    """A `BareContext` that may be watched. inspect: have the engine tell its cells at each decode (`Answer.slot`).

    tell_cells: gets its cells a few times a second (`CellWatch`); record: every call is written down (`recording`).
    buffers: bytes of its buffers by name ("KV", "RS", "compute", "output")

    Raises ContextError.
    """

    def __init__(
        self,
        model: Model,
        settings: ContextSettings,
        *,
        inspect: bool = False,
        tell_cells: Callable[[CellsSeen], None] | None = None,
        record: bool = False,
    ) -> None:
        self._model = model
        self._watch = None
        if tell_cells is not None or record:
            self._watch = CellWatch(planned(model, settings), tell_cells, record=record)
        super().__init__(model, settings, level=int(inspect))
        self.buffers = buffer_bytes(self.said)

    def decode(
        self, tokens: Sequence[int], pos: Sequence[int], seq_id: int | Sequence[int] = 0, n_logits: int = 1
    ) -> Answer:
        """One llama_decode; logits of the last `n_logits` tokens. `seq_id`: of all tokens, or one each.

        At most `n_batch` tokens: more would abort. What is wrong otherwise the engine says itself. Raises RefusedCall
        for positions that a model without RoPE has not learned.
        """
        assert len(tokens) <= self.n_batch
        n_positions = self._model.traits.n_positions
        if n_positions and not 0 <= min(pos) <= max(pos) < n_positions:  # a row of a table that is not there: it aborts
            wanted = max(pos) if max(pos) >= n_positions else min(pos)
            raise RefusedCall(
                tr(
                    "This model has learned its positions, 0 to {last:,}, and the experiment needs {wanted:,}: choose "
                    "smaller parameters where there are any."
                ).format(last=n_positions - 1, wanted=wanted)
            )
        ids = [seq_id] * len(tokens) if isinstance(seq_id, int) else seq_id
        for i, (token, at, owner) in enumerate(zip(tokens, pos, ids, strict=True)):
            self.put(i, token, at, owner, logits=i >= len(tokens) - n_logits)
        log = engine_log()
        log.capture_start(everything=True)
        start = time.perf_counter()
        rc = self.run(len(tokens))
        if rc == 0:
            lib.llama_synchronize(self.ctx)
        seconds = time.perf_counter() - start
        said = tuple(line.decode("utf-8", "replace").strip() for line in log.capture_stop())
        batch_said = _batch(tokens, pos, ids, n_logits)
        self._follow(lambda mirror: not mirror.decode(batch_said, rc).mismatch, calls.decode(len(tokens)), seconds)
        dumps = parse_log(said)
        return Answer(rc, seconds, said, dumps[0].line if dumps else None)

    def append(self, tokens: Sequence[int], start: int, seq_id: int = 0) -> Answer:
        """Decode `tokens` at positions from `start` on, in batches as large as allowed; the last answer, and the
        seconds of all. For calls that may be refused: `read` for what is measured.
        """
        seconds, answer = 0.0, Answer(0, 0.0, (), None)
        for at in range(0, len(tokens), self.n_batch):
            part = tokens[at : at + self.n_batch]
            answer = self.decode(part, range(start + at, start + at + len(part)), seq_id)
            seconds += answer.seconds
            if answer.rc != 0:
                break
        return answer._replace(seconds=seconds)

    def read(self, tokens: Sequence[int], start: int, seq_id: int = 0) -> Answer:
        """`append` of tokens that must not be refused: a refused call takes no time. Raises ContextError."""
        return taken(self.append(tokens, start, seq_id), len(tokens))

    def logits(self) -> NDArray[np.float32]:
        """After the last token of the last decode, which succeeded; shape (n_vocab,)."""
        pointer = lib.llama_get_logits_ith(self.ctx, -1)
        return np.ctypeslib.as_array(pointer, shape=(self._model.vocab.n_tokens,)).copy()

    def all_logits(self, tokens: Sequence[int], first: int, start: int = 0) -> NDArray[np.float32]:
        """Decode `tokens` from position `start` on; the logits of those from `first` on, one row each.

        Raises ContextError.
        """
        rows = []
        for at in range(0, len(tokens), self.n_batch):
            part = tokens[at : at + self.n_batch]
            n = min(len(part), max(0, at + len(part) - first))
            taken(self.decode(part, range(start + at, start + at + len(part)), n_logits=n), len(part))
            if n:
                pointer = lib.llama_get_logits(self.ctx)
                rows.append(np.ctypeslib.as_array(pointer, shape=(n, self._model.vocab.n_tokens)).copy())
        return np.concatenate(rows)

    def likeliest(self) -> int:
        return int(self.logits().argmax())

    def write(self, n: int, start: int) -> list[int]:
        """`n` tokens behind those that were read, each the likeliest, at positions from `start` on; the last one is not
        read. Raises ContextError.
        """
        found = [self.likeliest()]
        while len(found) < n:
            self.read(found[-1:], start + len(found) - 1)
            found.append(self.likeliest())
        return found

    def seq_rm(self, seq_id: int, p0: int = -1, p1: int = -1) -> bool:
        """llama_memory_seq_rm. `seq_id` is -1 or below `n_seq_max`: with another llama.cpp would abort."""
        assert -1 <= seq_id < self.n_seq_max
        done = bool(lib.llama_memory_seq_rm(lib.llama_get_memory(self.ctx), seq_id, p0, p1))
        self._follow(lambda mirror: mirror.seq_rm(seq_id, p0, p1) == done, calls.seq_rm(seq_id, p0, p1))
        return done

    def take_back(self, p0: int) -> None:
        """Remove what sequence 0 has from `p0` on. Raises RefusedCall if this memory cannot give back a part."""
        if not self.seq_rm(0, p0, -1):
            raise RefusedCall(tr("This memory cannot give back a part of a sequence."))

    def clear(self, *, data: bool = False) -> None:
        super().clear(data=data)
        self._follow(Mirror.clear, calls.clear(data=data))

    def seq_cp(self, source: int, target: int, p0: int = -1, p1: int = -1) -> None:
        """llama_memory_seq_cp; of all positions, or of [p0, p1) in a unified cache."""
        assert 0 <= min(source, target) <= max(source, target) < self.n_seq_max
        lib.llama_memory_seq_cp(lib.llama_get_memory(self.ctx), source, target, p0, p1)
        call = calls.seq_cp(source, target, p0, p1)
        self._follow(partial(Mirror.seq_cp, src=source, dst=target, p0=p0, p1=p1), call)

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """llama_memory_seq_add. Raises RefusedCall if llama.cpp would abort."""
        memory = lib.llama_get_memory(self.ctx)
        if not lib.llama_memory_can_shift(memory):
            raise RefusedCall(tr("This model's positions cannot be moved."))
        lib.llama_memory_seq_add(memory, seq_id, p0, p1, shift)
        call = calls.seq_add(seq_id, p0, p1, shift)
        self._follow(partial(Mirror.seq_add, seq_id=seq_id, p0=p0, p1=p1, shift=shift), call)

    def span(self, seq_id: int) -> tuple[int, int]:
        """First and last position of a sequence, -1 and -1 if it has none."""
        assert 0 <= seq_id < self.n_seq_max
        memory = lib.llama_get_memory(self.ctx)
        return int(lib.llama_memory_seq_pos_min(memory, seq_id)), int(lib.llama_memory_seq_pos_max(memory, seq_id))

    def saved(self, seq_id: int) -> bytes:
        """The state of a sequence, to be put into `restore`."""
        memory = room(seq_state_size(self.ctx, seq_id))
        get_seq_state(self.ctx, seq_id, memory)
        return bytes(memory)

    def restore(self, seq_id: int, state: bytes, tokens: Sequence[int] = ()) -> None:
        """llama_state_seq_set_data: the state of these tokens into free cells, wherever they are. Raises ContextError
        if there is no room.
        """
        assert 0 <= seq_id < self.n_seq_max
        done = set_seq_state(self.ctx, seq_id, state)
        call = calls.state_seq_set(seq_id)
        self._follow(lambda mirror: mirror.restore_seq(seq_id, state, tokens).ok == done, call)
        if not done:
            raise ContextError(tr("llama.cpp has no room for a saved state of {n:,} tokens.").format(n=len(tokens)))

    def compact(self) -> tuple[float, int]:
        """The whole state saved and set again, which puts all used cells in front: seconds, bytes read and written."""
        start = time.perf_counter()
        memory = room(state_size(self.ctx))
        get_state(self.ctx, memory)
        if not set_state(self.ctx, memory):
            raise ContextError(tr("llama.cpp did not accept a state that it had saved."))
        seconds, n = time.perf_counter() - start, len(memory)
        self._follow(lambda mirror: mirror.restore(bytes(memory), carry=True).ok, calls.state_set(n), seconds)
        return seconds, 2 * n

    def set_threads(self, n: int) -> None:
        lib.llama_set_n_threads(self.ctx, n, n)

    @property
    def mirror(self) -> Mirror:
        """Its cells by the rules of the cache, where they are watched or recorded. Read-only. Raises ContextError."""
        assert self._watch is not None
        return self._watch.mirror

    def recording(self) -> Recording:
        """All calls so far. Raises ContextError if they were not recorded."""
        assert self._watch is not None
        return self._watch.recording()

    def _follow(self, call: Callable[[Mirror], bool | None], text: str = "", seconds: float = 0.0) -> None:
        if self._watch is not None:
            self._watch.follow(call, text, seconds)


def taken(answer: Answer, n: int) -> Answer:
    """The answer to `n` tokens. Raises ContextError if llama.cpp refused them."""
    if answer.rc != 0:
        raise ContextError(
            tr("llama.cpp could not read {n:,} tokens: {why}.").format(n=n, why=answer.refusal or answer.rc)
        )
    return answer


def _batch(tokens: Sequence[int], pos: Sequence[int], seq_ids: Sequence[int], n_logits: int) -> Batch:
    output = [i >= len(tokens) - n_logits for i in range(len(tokens))]
    return Batch(tokens, pos, [(seq_id,) for seq_id in seq_ids], output)
