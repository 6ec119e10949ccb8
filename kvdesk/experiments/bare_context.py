"""llama_decode through ctypes with nothing around it: no mirror, no guards, no inspection, no Stop."""

from typing import Any

from kvdesk.backends.local.llama.binding import free_context, lib
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import create
from kvdesk.settings import ContextSettings


class BareContext:
    """A `llama_context *` and one batch. level: LLAMA_KV_CACHE_DEBUG.

    ctx: a context that somebody else owns, in place of one made with `settings`; what it holds is lost
    said: the log of its making

    Raises ContextError.
    """

    def __init__(self, model: Model, settings: ContextSettings, *, level: int = 0, ctx: Any = None) -> None:
        self._owned = ctx is None
        self.settings = settings
        self.said: list[str] = []
        if ctx is None:
            ctx, self.said = create(model, settings, level)
        else:
            lib.llama_set_n_threads(ctx, settings.decode_threads, settings.n_threads_batch)
        self.ctx: Any = ctx
        self.n_ctx = int(lib.llama_n_ctx(ctx))
        self.n_batch = int(lib.llama_n_batch(ctx))
        self.n_seq_max = int(lib.llama_n_seq_max(ctx))
        self._batch = lib.llama_batch_init(self.n_batch, 0, 1)

    def put(self, i: int, token: int, pos: int, seq_id: int, *, logits: bool) -> None:
        """Token number `i` of the next batch, below `n_batch`."""
        batch = self._batch
        batch.token[i] = token
        batch.pos[i] = pos
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = seq_id
        batch.logits[i] = logits

    def run(self, n_tokens: int) -> int:
        """One llama_decode of the tokens that were put; its return code."""
        self._batch.n_tokens = n_tokens
        return int(lib.llama_decode(self.ctx, self._batch))

    def clear(self, *, data: bool = False) -> None:
        """llama_memory_clear: no cell is used. data: zero the buffers too."""
        lib.llama_memory_clear(lib.llama_get_memory(self.ctx), data)

    def close(self) -> None:
        if self.ctx is None:
            return
        lib.llama_batch_free(self._batch)
        if self._owned:
            free_context(self.ctx)
        self.ctx = None
