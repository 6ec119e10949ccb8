"""One llama.cpp context with the mirror of its cache, in parts: memory, states, auditor, verifier.

Owns the `llama_context *` for its whole life, and the logits that its decodes leave. Knows nothing of conversations,
prompts or Qt.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvdesk import values
from kvdesk.backends.local.llama.binding import (
    MIRRORED_BINDING,
    MIRRORED_COMMIT,
    StopFlag,
    engine_version,
    free_context,
    lib,
)
from kvdesk.backends.local.llama.capabilities import Capabilities
from kvdesk.backends.local.llama.memory.auditor import Auditor
from kvdesk.backends.local.llama.memory.decodes import DecodeKind, PendingDecode
from kvdesk.backends.local.llama.memory.mirrored_memory import MirroredMemory
from kvdesk.backends.local.llama.memory.state_transfer import StateTransfer
from kvdesk.backends.local.llama.memory.verifier import MAX_REBUILDS, Subject, Verifier
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import buffer_bytes, create, planned
from kvdesk.backends.local.llama.row_check import rows_alike
from kvdesk.backends.local.llama.samplers.sampler import Sampler
from kvdesk.backends.local.llama.traits import context_traits
from kvdesk.cache.batch import Batch
from kvdesk.cache.creation import compare_creation
from kvdesk.protocol.cache import ContextInfo
from kvdesk.protocol.operations import OperationName
from kvdesk.settings import ContextSettings
from kvdesk.settings.context import EXACT_UBATCH
from kvdesk.translation import tr

MAPS = 3
"""Inspection level at which the engine prints every cell before each slot search (LLAMA_KV_CACHE_DEBUG)."""


class Context:
    """A context of `model` made with `settings`.

    inspect   1 (True): the engine prints a line for every slot search, and every decode is compared with it; 0: the
              mirror is not checked; MAPS: the engine prints every cell too, and each one is compared
    stop      stops a decode from another thread
    cb_eval   as in `params.create`

    block: tokens that are computed together for exact answers. Blocks begin at multiples of it, each in one graph and
    of one sequence, as after a fresh start. 1 if a token gets the same bits in any batch.
    together: whether a batch may have tokens of several sequences. With exact answers only if as many rows were tried:
    a graph has up to `n_ubatch` + 1 sequences (llama-batch.cpp:579).

    Its parts are for callers to use: `memory` (operations on the cache, what it holds), `states` (saved states),
    `auditor`, `verifier` (how far the map is proven). Raises ContextError if llama.cpp would refuse the combination
    or abort.
    """

    def __init__(
        self,
        model: Model,
        settings: ContextSettings,
        *,
        inspect: int = 1,
        stop: StopFlag | None = None,
        cb_eval: Any = None,
    ) -> None:
        geometry = planned(model, settings)
        ctx, said = create(model, settings, int(inspect), cb_eval)
        self._ctx = ctx
        self.inspect = int(inspect)
        self.buffers = buffer_bytes(said)
        self.model = model
        self.settings = settings
        self.traits = context_traits(model.traits, geometry, settings, model.vocab.n_tokens, said)
        self.n_ctx = int(lib.llama_n_ctx(ctx))
        self.n_ctx_seq = int(lib.llama_n_ctx_seq(ctx))
        self.n_batch = int(lib.llama_n_batch(ctx))
        self.n_ubatch = int(lib.llama_n_ubatch(ctx))
        self.n_seq_max = int(lib.llama_n_seq_max(ctx))
        alike = not settings.exact or rows_alike(ctx, model.vocab.n_tokens)
        self.block = 1 if alike else self.n_ubatch
        self.together = self.traits.model.together and (alike if self.n_ubatch >= EXACT_UBATCH else not settings.exact)
        self.verifier = Verifier(_subject(model, settings), _doubt())
        threads = settings.decode_threads, settings.n_threads_batch
        self.memory = MirroredMemory(ctx, self.traits, self.verifier, self.inspect, stop or StopFlag(), threads)
        self.auditor = Auditor(self.memory, self.verifier)
        self.states = StateTransfer(self.memory, self.auditor, self.verifier)
        self._compare_creation()

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the engine's context still exists."""
        return self._ctx is not None

    @property
    def stop(self) -> StopFlag:
        """Stops a decode from another thread."""
        return self.memory.stop

    @property
    def capabilities(self) -> Capabilities:
        """Which operations this cache allows, and why not."""
        return self.memory.guards.capabilities

    def can(self, operation: OperationName) -> bool:
        """Whether an operation is possible, even with loss."""
        return self.memory.guards.capabilities[operation].allowed

    def info(self, k_bytes: int, v_bytes: int, recurrent_bytes: int) -> ContextInfo:
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
            recurrent_bytes=recurrent_bytes,
        )

    # --- decode -------------------------------------------------------------------------------------------------------

    def decode(self, batch: Batch, kind: DecodeKind = "decode") -> PendingDecode:
        """`MirroredMemory.decode`; after a mismatch it first rebuilds the map, at most MAX_REBUILDS times."""
        if self.verifier.mismatch and self.verifier.n_rebuilt < MAX_REBUILDS:
            self.auditor.rebuild()
        return self.memory.decode(batch, kind)

    def sample(self, sampler: Sampler, row: int | None = None) -> int:
        """Sample from the logits of batch entry `row` of the last decode; the last one that has logits by default.

        Raises RefusedCall if there are no logits (llama.cpp would abort, llama-sampler.cpp:940): before the first
        decode, without the entry's output flag, after a restored state.
        """
        if row is None or row not in self.memory.rows:
            row = self._checked(row)
        return sampler.sample(self._ctx, row)

    def logits(self, row: int | None = None) -> NDArray[np.float32]:
        """A copy of the logits of batch entry `row` of the last decode, shape (n_vocab,). Raises RefusedCall."""
        row = self._checked(row)
        pointer = lib.llama_get_logits_ith(self._ctx, row)
        return np.ctypeslib.as_array(pointer, shape=(self.model.vocab.n_tokens,)).copy()

    @property
    def n_threads(self) -> int:
        """Threads for decodes of one token."""
        return self.memory.n_threads

    @property
    def n_threads_batch(self) -> int:
        """Threads for larger decodes."""
        return self.memory.n_threads_batch

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Threads for the next decodes: of one token, and of larger ones."""
        self.memory.set_threads(n_threads, n_threads_batch)

    def close(self) -> None:
        """Free the context; the model stays."""
        if self._ctx:
            self.memory.close()
            free_context(self._ctx)
            self._ctx = None

    # --- private ------------------------------------------------------------------------------------------------------

    def _checked(self, row: int | None) -> int:
        """A batch entry that has logits, by default the last one. Raises RefusedCall."""
        rows = self.memory.rows
        if row is None:
            row = max(rows, default=-1)
        self.memory.guards.row(row, rows)
        return row

    def _compare_creation(self) -> None:
        """Whether the engine made what was planned; gives the first verdict on the map."""
        g = self.traits.geometry
        if self.model.facts.kind == "unknown":
            self.verifier.reject(self.model.facts.reason)
            return
        wrong = compare_creation(g, self.traits.creation)
        if (g.n_ctx, g.n_ctx_seq) != (self.n_ctx, self.n_ctx_seq):
            wrong = f"the context has {self.n_ctx} cells, the mirror {g.n_ctx}"
        if (n_rs_seq := int(lib.llama_n_rs_seq(self._ctx))) != g.n_rs_seq:
            wrong = f"the context keeps {n_rs_seq} earlier states, the mirror {g.n_rs_seq}"
        if wrong:
            self.verifier.reject(wrong)
        elif self.inspect:
            self.verifier.conclude(0, None)


def _doubt() -> str:
    version = engine_version()
    if version.mirrored:
        return ""
    return tr(
        "The rules of the map are those of llama-cpp-python {mirrored_binding} (llama.cpp "
        "{mirrored_commit}); this is {version}. The engine's own numbers agree so far, but where each "
        "cell lies is not proved."
    ).format(mirrored_binding=MIRRORED_BINDING, mirrored_commit=MIRRORED_COMMIT, version=version)


def _subject(model: Model, settings: ContextSettings) -> Subject:
    version = engine_version()
    return Subject(
        versions={"llama-cpp-python": version.binding, "llama.cpp": version.commit, "system": version.system},
        model={"file": model.path.name, **values.asdict(model.facts)},
        settings=settings.model_dump(mode="json"),
    )
