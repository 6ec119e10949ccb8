"""One llama.cpp context together with the mirror of its cache: every change goes through here and is compared.

Owns a `llama_context *`, the `Mirror`, and the verification state. Every call that could abort the process is guarded
before it is made (docs: kv-cache, "process-killing calls"). Knows nothing of conversations, prompts or Qt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.record import DecodeRecord
from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.cache.verify import Difference, compare_log, compare_spans, verdict
from kvdesk.engine.binding import StopFlag, engine_log, lib
from kvdesk.engine.model import Model
from kvdesk.engine.sampler import Sampler
from kvdesk.errors import ContextError, DecodeError, RefusedCall
from kvdesk.messages import ContextInfo
from kvdesk.settings import CacheType, ContextSettings

_GGML_TYPE = {
    CacheType.F32: lib.GGML_TYPE_F32,
    CacheType.F16: lib.GGML_TYPE_F16,
    CacheType.BF16: 30,  # GGML_TYPE_BF16 (ggml.h); llama-cpp-python does not name it
    CacheType.Q8_0: lib.GGML_TYPE_Q8_0,
    CacheType.Q4_0: lib.GGML_TYPE_Q4_0,
    CacheType.Q4_1: lib.GGML_TYPE_Q4_1,
    CacheType.IQ4_NL: lib.GGML_TYPE_IQ4_NL,
    CacheType.Q5_0: lib.GGML_TYPE_Q5_0,
    CacheType.Q5_1: lib.GGML_TYPE_Q5_1,
}
FLOAT_TYPES = frozenset({CacheType.F32, CacheType.F16, CacheType.BF16})


@dataclass(frozen=True, slots=True)
class Decoded:
    """One llama_decode: its return code (0, 1 or 2), wall time, and what the mirror recorded."""

    rc: int
    ms: float
    record: DecodeRecord


class Context:
    """A context of `model` made with `settings`.

    With `inspect` the engine prints one line per slot search and every decode is compared with it; without, the mirror
    runs unproven (only the benchmark that measures the cost of inspection asks for that).

    Raises ContextError when llama.cpp refuses the combination.
    """

    def __init__(self, model: Model, settings: ContextSettings, *, inspect: bool = True) -> None:
        if settings.type_v not in FLOAT_TYPES and not settings.flash_attn:
            raise ContextError(f"V as {settings.type_v} needs flash attention: llama.cpp refuses it without.")
        if settings.n_seq_max > settings.n_batch:
            raise ContextError(
                f"n_seq_max {settings.n_seq_max} is larger than n_batch {settings.n_batch}: llama.cpp would abort."
            )
        self.model = model
        self.settings = settings
        self.stop = StopFlag()
        self.inspect = inspect
        self._log = engine_log()
        self._log.forget()
        params = _params(settings, model)
        os.environ["LLAMA_KV_CACHE_DEBUG"] = "1" if inspect else "0"
        self._ctx: Any = lib.llama_init_from_model(model.handle, params)
        if not self._ctx:
            raise ContextError(
                f"llama.cpp cannot make a context of {settings.n_ctx:,} cells with K as {settings.type_k}"
                f" and V as {settings.type_v}.",
                self._log.problems(),
            )
        self.stop.install(self._ctx)
        self._memory = lib.llama_get_memory(self._ctx)
        self.n_ctx = int(lib.llama_n_ctx(self._ctx))
        self.n_ctx_seq = int(lib.llama_n_ctx_seq(self._ctx))
        self.n_batch = int(lib.llama_n_batch(self._ctx))
        self.n_ubatch = int(lib.llama_n_ubatch(self._ctx))
        self.n_seq_max = int(lib.llama_n_seq_max(self._ctx))
        self._unmirrored = model.facts.reason if model.facts.kind == "unknown" else ""
        facts = replace(model.facts, kind="attention") if self._unmirrored else model.facts
        self.mirror = Mirror(plan(facts, _asked(settings, model)))
        self.verification = self._check_geometry()
        self._batch = lib.llama_batch_init(self.n_batch, 0, self.n_seq_max)
        self._rows: frozenset[int] = frozenset()  # batch entries of the last decode that have logits
        self._last_row = -1

    # --- what it is ---------------------------------------------------------------------------------------------------

    def info(self, k_bytes: int, v_bytes: int) -> ContextInfo:
        """Numbers read back from the engine."""
        s = self.settings
        return ContextInfo(
            n_ctx=self.n_ctx,
            n_ctx_seq=self.n_ctx_seq,
            n_seq_max=self.n_seq_max,
            n_batch=self.n_batch,
            n_ubatch=self.n_ubatch,
            n_threads=int(lib.llama_n_threads(self._ctx)),
            type_k=s.type_k.value,
            type_v=s.type_v.value,
            flash_attn=s.flash_attn,
            kv_unified=s.kv_unified,
            k_bytes=k_bytes,
            v_bytes=v_bytes,
        )

    def totals(self) -> tuple[int, int, int]:
        """Used cells, high-water mark and n_kv of the whole cache (the largest stream's mark). Read-only."""
        streams = [cells for cache in self.mirror.caches for cells in cache.streams]
        used, high_water = sum(c.used for c in streams), max((c.high_water for c in streams), default=0)
        return used, high_water, self.mirror.n_kv

    def free_cells(self, seq_id: int) -> int:
        """Cells a batch of the sequence can still take in every cache that does not overwrite. Read-only."""
        caches = self.mirror.caches[:1]  # the window cache replaces what nobody sees any more
        return min((c.cells_of(seq_id).size - c.cells_of(seq_id).used for c in caches), default=self.n_ctx_seq)

    def snapshot(self) -> CacheSnapshot:
        """The cells as the mirror has them, with how far they are proven. Read-only."""
        return self.mirror.snapshot(self.verification)

    # --- decode -------------------------------------------------------------------------------------------------------

    def decode(self, batch: Batch) -> Decoded:
        """Run the batch. Changes the cache.

        rc 0: every token is in the cache. rc 1: no slot, nothing was placed. rc 2: stopped; finished ubatches stay.

        Raises RefusedCall for a batch that would abort the process, DecodeError for any other return code.
        """
        self._guard_batch(batch)
        self._fill(batch)
        self._rows = frozenset()
        self._log.capture_start()
        start = time.perf_counter()
        rc = int(lib.llama_decode(self._ctx, self._batch))
        ms = (time.perf_counter() - start) * 1e3
        lines = self._log.capture_stop()
        record = self.mirror.decode(batch, rc, self.seq_pos_max)
        self._verify(batch, record, lines)
        if rc < 0:
            raise DecodeError(rc, f"llama.cpp could not process a batch (code {rc}).", self._log.problems())
        if rc == 0:
            self._rows = frozenset(i for i, wanted in enumerate(batch.output) if wanted)
            self._last_row = max(self._rows, default=-1)
        return Decoded(rc, ms, record)

    def sample(self, sampler: Sampler, row: int | None = None) -> int:
        """Sample from the logits of batch entry `row` of the last decode; the last one that has logits by default.

        Raises RefusedCall where there are no logits (llama.cpp would abort, llama-sampler.cpp:940).
        """
        row = self._last_row if row is None else row
        if row not in self._rows:
            raise RefusedCall(f"There are no logits for entry {row} of the last batch.")
        return sampler.sample(self._ctx, row)

    def logits(self, row: int | None = None) -> NDArray[np.float32]:
        """A copy of the logits of batch entry `row` of the last decode, shape (n_vocab,). Raises RefusedCall."""
        row = self._last_row if row is None else row
        if row not in self._rows:
            raise RefusedCall(f"There are no logits for entry {row} of the last batch.")
        pointer = lib.llama_get_logits_ith(self._ctx, row)
        return np.ctypeslib.as_array(pointer, shape=(self.model.vocab.n_tokens,)).copy()

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Threads for decode and prefill from the next decode on."""
        lib.llama_set_n_threads(self._ctx, n_threads, n_threads_batch)

    # --- memory operations --------------------------------------------------------------------------------------------

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """Remove the cells of `seq_id` in `[p0, p1)`; -1 means all sequences, from 0, to the end. Changes the cache.

        False where the memory cannot remove a part (recurrent states): nothing was removed.
        Raises RefusedCall for a sequence outside [-1, n_seq_max).
        """
        if seq_id != -1:
            self._guard_seq(seq_id)
        done = bool(lib.llama_memory_seq_rm(self._memory, seq_id, p0, p1))
        mirrored = self.mirror.seq_rm(seq_id, p0, p1)
        found = Difference("answer of seq_rm", str(mirrored), str(done)) if done != mirrored else None
        self._conclude(found or self._compare_spans())
        return done

    def clear(self, *, data: bool = True) -> None:
        """Remove every cell of every sequence. Changes the cache."""
        lib.llama_memory_clear(self._memory, data)
        self.mirror.clear(data)
        self._conclude(self._compare_spans())

    def seq_pos_min(self, seq_id: int) -> int:
        """Smallest position the engine holds for the sequence, -1 when empty. Read-only. Raises RefusedCall."""
        self._guard_seq(seq_id)
        return int(lib.llama_memory_seq_pos_min(self._memory, seq_id))

    def seq_pos_max(self, seq_id: int) -> int:
        """Largest position the engine holds for the sequence, -1 when empty. Read-only. Raises RefusedCall."""
        self._guard_seq(seq_id)
        return int(lib.llama_memory_seq_pos_max(self._memory, seq_id))

    def close(self) -> None:
        """Free the context. The model lives on."""
        if self._ctx:
            lib.llama_batch_free(self._batch)
            lib.llama_free(self._ctx)
            self._ctx = None

    # --- guards -------------------------------------------------------------------------------------------------------

    def _guard_seq(self, seq_id: int) -> None:
        if not 0 <= seq_id < self.n_seq_max:
            raise RefusedCall(
                f"Sequence {seq_id} does not exist: this context has sequences 0 to {self.n_seq_max - 1}."
            )

    def _guard_batch(self, batch: Batch) -> None:
        n = len(batch.tokens)
        if n == 0:
            raise RefusedCall("The batch is empty.")
        if n > self.n_batch:
            raise RefusedCall(f"The batch has {n} tokens, but n_batch is {self.n_batch}.")
        n_vocab = self.model.vocab.n_tokens
        for token, pos, seqs in zip(batch.tokens, batch.pos, batch.seq_ids, strict=True):
            if not 0 <= token < n_vocab:
                raise RefusedCall(f"Token {token} is not in the vocabulary of {n_vocab} tokens.")
            if pos < 0:
                raise RefusedCall(f"Position {pos} is negative.")
            if not seqs:
                raise RefusedCall("A token of the batch belongs to no sequence.")
            for seq_id in seqs:
                self._guard_seq(seq_id)

    # --- private ------------------------------------------------------------------------------------------------------

    def _fill(self, batch: Batch) -> None:
        raw = self._batch
        raw.n_tokens = len(batch.tokens)
        token, pos, n_seq_id, seq_id, logits = raw.token, raw.pos, raw.n_seq_id, raw.seq_id, raw.logits
        for i, seqs in enumerate(batch.seq_ids):
            token[i] = batch.tokens[i]
            pos[i] = batch.pos[i]
            logits[i] = batch.output[i]
            n_seq_id[i] = len(seqs)
            for j, s in enumerate(seqs):
                seq_id[i][j] = s

    def _verify(self, batch: Batch, record: DecodeRecord, lines: Sequence[bytes]) -> None:
        if not self.inspect:
            self._mirrored_only()
            return
        found = compare_log(record.slots, lines)
        if found is None and record.mismatch:
            found = Difference(record.mismatch, f"rc {record.expected_rc}", f"rc {record.rc}")
        for s in {s for ids in batch.seq_ids for s in ids} if found is None else ():
            ours, theirs = self.mirror.seq_pos_max(s), self.seq_pos_max(s)
            if ours != theirs:
                found = Difference(f"last position of sequence {s}", str(ours), str(theirs))
        self._conclude(found)

    def _compare_spans(self) -> Difference | None:
        """The cheap check after every operation: pos_min and pos_max of every sequence."""
        return compare_spans(self.mirror, self.seq_pos_min, self.seq_pos_max)

    def _conclude(self, found: Difference | None) -> None:
        if self.verification.state != "mismatch":  # a map once wrong stays marked until it is rebuilt
            self.verification = verdict(self.mirror.operation, found)

    def _mirrored_only(self) -> None:
        if self.verification.state == "verified":
            self.verification = Verification("mirrored", self.verification.operation)

    def _check_geometry(self) -> Verification:
        if self._unmirrored:
            return Verification("mismatch", 0, self._unmirrored)
        g = self.mirror.geometry
        ours = (g.n_ctx, g.n_ctx_seq)
        if ours != (self.n_ctx, self.n_ctx_seq):
            return Verification("mismatch", 0, f"the context has {self.n_ctx} cells, the mirror {g.n_ctx}")
        return Verification("verified" if self.inspect else "mirrored", 0)


def _asked(settings: ContextSettings, model: Model) -> ContextParams:
    return ContextParams(
        n_ctx=settings.n_ctx or int(lib.llama_model_n_ctx_train(model.handle)),
        n_seq_max=settings.n_seq_max,
        n_batch=settings.n_batch,
        n_ubatch=settings.n_ubatch,
        kv_unified=settings.kv_unified,
        swa_full=settings.swa_full,
        flash_attn=settings.flash_attn,
        type_k=settings.type_k.value,
        type_v=settings.type_v.value,
    )


def _params(settings: ContextSettings, model: Model) -> Any:
    params = lib.llama_context_default_params()
    params.n_ctx = settings.n_ctx or int(lib.llama_model_n_ctx_train(model.handle))
    params.n_seq_max = settings.n_seq_max
    params.n_batch = settings.n_batch
    params.n_ubatch = settings.n_ubatch
    params.n_threads = settings.n_threads
    params.n_threads_batch = settings.n_threads_batch
    params.type_k = _GGML_TYPE[settings.type_k]
    params.type_v = _GGML_TYPE[settings.type_v]
    params.flash_attn_type = (
        lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if settings.flash_attn else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    params.kv_unified = settings.kv_unified
    params.swa_full = settings.swa_full
    params.offload_kqv = False
    params.op_offload = False
    params.no_perf = True
    return params
