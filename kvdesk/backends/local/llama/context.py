"""One llama.cpp context together with the mirror of its cache: every change goes through here and is compared.

Owns the making of a `llama_context *`, its decodes as callers see them, and what they leave to sample from. The
operations on the cache are in `memory` and `saved`. Knows nothing of conversations, prompts or Qt.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import (
    MIRRORED_BINDING,
    MIRRORED_COMMIT,
    StopFlag,
    engine_log,
    engine_version,
    lib,
)
from kvdesk.backends.local.llama.capabilities import Capabilities
from kvdesk.backends.local.llama.decodes import DecodeKind
from kvdesk.backends.local.llama.flush import plan_flush
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import buffer_bytes, create, planned
from kvdesk.backends.local.llama.sampler import Sampler
from kvdesk.backends.local.llama.saved import SavedMemory
from kvdesk.backends.local.llama.self_check import SelfCheck, prove
from kvdesk.backends.local.llama.traits import context_traits
from kvdesk.backends.local.llama.verifier import MAX_REBUILDS, Subject, Verifier
from kvdesk.cache.batch import Batch
from kvdesk.cache.creation import compare_creation
from kvdesk.errors import ContextError, DecodeError
from kvdesk.protocol.cache import ContextInfo
from kvdesk.protocol.operations import OperationName
from kvdesk.settings import ContextSettings

MAPS = 3
"""Inspection level at which the engine prints every cell before each slot search (LLAMA_KV_CACHE_DEBUG)."""


_ROW_0 = frozenset({0})


class Decoded(NamedTuple):
    """One llama_decode: its return code (0, 1 or 2) and wall time; what it did to the cells comes by `on_decoded`."""

    rc: int
    ms: float


class Context(SavedMemory):
    """A context of `model` made with `settings`.

    inspect   1 (True): the engine prints a line for every slot search and every decode is compared with it; 0: the
              mirror runs unproven; MAPS: the engine prints every cell too, and each one is compared
    proved    first prove the mirror's rules on a twin of few cells (`self_check`, about 0.2 s); not without `inspect`
    stop      what stops a decode from another thread

    Raises ContextError where llama.cpp would refuse the combination or abort.
    """

    def __init__(
        self,
        model: Model,
        settings: ContextSettings,
        *,
        inspect: int = 1,
        proved: bool = True,
        stop: StopFlag | None = None,
    ) -> None:
        geometry = planned(model, settings)
        ctx, said = create(model, settings, int(inspect))
        self.buffers = buffer_bytes(said)
        traits = context_traits(model.traits, geometry, settings, model.vocab.n_tokens, said)
        super().__init__(ctx, traits, Verifier(_subject(model, settings), _doubt()), int(inspect), stop or StopFlag())
        self.model = model
        self.settings = settings
        self.n_ctx = int(lib.llama_n_ctx(ctx))
        self.n_ctx_seq = int(lib.llama_n_ctx_seq(ctx))
        self.n_batch = int(lib.llama_n_batch(ctx))
        self.n_ubatch = int(lib.llama_n_ubatch(ctx))
        self.n_seq_max = int(lib.llama_n_seq_max(ctx))
        self.n_threads, self.n_threads_batch = settings.decode_threads, settings.n_threads_batch
        self._last_row = -1
        self.self_check: SelfCheck | None = None
        self._first_verdict(proved and bool(inspect))

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """What can be done to this cache, and why not."""
        return self._guards.capabilities

    def can(self, operation: OperationName) -> bool:
        """Whether an operation is possible, if with loss."""
        return self._guards.capabilities[operation].allowed

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

    # --- decode -------------------------------------------------------------------------------------------------------

    def decode(self, batch: Batch, kind: DecodeKind = "decode") -> Decoded:
        """Run the batch. Changes the cache. `kind`: what it is for, to be told with its measurement.

        rc 0: every token is in the cache. rc 1: no slot, nothing was placed. rc 2: stopped; finished ubatches stay.
        A pending K-shift is applied first, unstoppably: stopped in the middle it would turn K twice. Where there is no
        way to apply it alone, this whole decode cannot be stopped.

        Raises RefusedCall for a batch that would abort the process, DecodeError for any other return code.
        """
        self._guards.batch(batch)
        if self._trust.mismatch and self._trust.n_rebuilt < MAX_REBUILDS:
            self.rebuild()
        unstoppable = False
        if not self._unsettled and self._mirror.pending_shift:  # a decode that waits has applied it
            unstoppable = plan_flush(self._mirror, self.traits.model.n_positions) is None
            if not unstoppable:
                self.flush()
        if unstoppable:
            self.stop.remove(self._ctx)
        try:
            rc, ms = self._run(batch, kind)
        finally:
            if unstoppable:
                self.stop.install(self._ctx)
        if rc < 0:
            problem = self.last_record.problem
            why = problem.sentence if problem else f"llama.cpp could not process a batch (code {rc})."
            raise DecodeError(rc, why, self._log.problems())
        if rc == 0:
            if len(batch.tokens) == 1 and batch.output[0]:
                self._rows, self._last_row = _ROW_0, 0
            else:
                self._rows = frozenset(i for i, wanted in enumerate(batch.output) if wanted)
                self._last_row = max(self._rows, default=-1)
        return Decoded(rc, ms)

    def begin(self, seq_id: int, pos: int, most: int) -> int:
        """Prepare for `advance`: one token after another of `seq_id`, whose next position is `pos`.

        Returns for how many tokens, `most` or fewer, there is room and everything is plain; 0: use `decode`.
        """
        self._guards.seq(seq_id)
        n = min(most, self.n_ctx_seq - pos, self.free_cells(seq_id))
        if self.traits.model.n_positions:
            n = min(n, self.traits.model.n_positions - pos)
        return n if n > 0 and self._begin_run(seq_id, pos) else 0

    def advance(self, token: int, sampler: Sampler) -> int:
        """Decode `token` at the next position of the sequence that has begun; the token sampled then, -1 if stopped.

        The shortest way from token to token; `begin` tells how often it may be called. Changes the cache. Raises
        DecodeError as `decode` does.
        """
        rc = self._run_on(token)
        if rc == 0:
            self._rows, self._last_row = _ROW_0, 0
            return sampler.sample(self._ctx, 0)
        if rc == 2:
            return -1
        raise DecodeError(rc, f"llama.cpp could not process a token (code {rc}).", self._log.problems())

    def sample(self, sampler: Sampler, row: int | None = None) -> int:
        """Sample from the logits of batch entry `row` of the last decode; the last one that has logits by default.

        Raises RefusedCall where there are no logits (llama.cpp would abort, llama-sampler.cpp:940): before the first
        decode, without the entry's output flag, after a restored state.
        """
        row = self._last_row if row is None else row
        self._guards.row(row, self._rows)
        return sampler.sample(self._ctx, row)

    def logits(self, row: int | None = None) -> NDArray[np.float32]:
        """A copy of the logits of batch entry `row` of the last decode, shape (n_vocab,). Raises RefusedCall."""
        row = self._last_row if row is None else row
        self._guards.row(row, self._rows)
        pointer = lib.llama_get_logits_ith(self._ctx, row)
        return np.ctypeslib.as_array(pointer, shape=(self.model.vocab.n_tokens,)).copy()

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Threads for decodes of one token, and of more, from the next decode on. Those before are followed first."""
        if (n_threads, n_threads_batch) != (self.n_threads, self.n_threads_batch):
            self.settle()
            self.n_threads, self.n_threads_batch = n_threads, n_threads_batch
            lib.llama_set_n_threads(self._ctx, n_threads, n_threads_batch)

    def close(self) -> None:
        """Free the context, and the memory kept for its states. The model lives on."""
        self.transfer.close()
        if self._ctx:
            lib.llama_batch_free(self._batch)
            lib.llama_free(self._ctx)
            self._ctx = None

    # --- private ------------------------------------------------------------------------------------------------------

    def _first_verdict(self, proved: bool) -> None:
        """Whether the engine made what was planned, and whether the rules hold on a twin."""
        g = self.mirror.geometry
        if self.model.facts.kind == "unknown":
            self._trust.reject(self.model.facts.reason)
            return
        wrong = compare_creation(g, self.traits.creation)
        if (g.n_ctx, g.n_ctx_seq) != (self.n_ctx, self.n_ctx_seq):
            wrong = f"the context has {self.n_ctx} cells, the mirror {g.n_ctx}"
        if wrong:
            self._trust.reject(wrong)
            return
        if proved:
            self._prove()
        if self.verification.state != "mismatch" and self._inspect:
            self._trust.conclude(0, None)

    def _prove(self) -> None:
        log = engine_log()
        listener, log.listener = log.listener, None
        try:
            self.self_check = prove(lambda twin: Context(self.model, twin, inspect=MAPS, proved=False), self.settings)
            if self.self_check.mismatch:
                self._trust.reject(str(self.self_check))
            elif not self.self_check.complete:
                self._trust.remark = f"The proof ran out of time: {self.self_check}"
        except ContextError as error:
            doubt = f"The cell rules could not be proved on a twin of this context: {error}"
            self._trust.doubt = f"{self._trust.doubt} {doubt}".strip()
        finally:
            log.listener = listener


def _doubt() -> str:
    version = engine_version()
    if version.mirrored:
        return ""
    return (
        f"The rules of the map are those of llama-cpp-python {MIRRORED_BINDING} (llama.cpp {MIRRORED_COMMIT}); this is"
        f" {version}. The engine's own numbers agree so far, but where each cell lies is not proved."
    )


def _subject(model: Model, settings: ContextSettings) -> Subject:
    version = engine_version()
    return Subject(
        versions={"llama-cpp-python": version.binding, "llama.cpp": version.commit, "system": version.system},
        model={"file": model.path.name, **dataclasses.asdict(model.facts)},
        settings=settings.model_dump(mode="json"),
    )
