"""A second context of the loaded model, for one sequence, in which attention is read (`AttentionReader`).

It stores K and V like the first context, so a state can be copied bit for bit. The first context is not touched. Runs
on the engine's thread.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.attention.reader import AttentionReader, HeadWeights
from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.cache.state.blob import Blob
from kvdesk.errors import DecodeError, EngineError, Stopped
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr


def second_settings(settings: ContextSettings, n_cells: int, n_batch: int) -> ContextSettings:
    """Settings for one sequence of `n_cells` cells, beside a context with `settings`."""
    return settings.model_copy(
        update={
            "n_ctx": pad(max(n_cells, n_batch), CTX_PAD),
            "n_seq_max": 1,
            "n_batch": n_batch,
            "n_ubatch": n_batch,
            "exact": False,
            "kv_unified": True,
            "swa_full": True,
            "n_rs_seq": 0,  # nothing is taken back
        }
    )


class SecondContext:
    """Empty at first. settings: those of `second_settings`; stop: ends its decodes.

    Raises ContextError if it cannot be made; RefusedCall, DecodeError, EngineError and Stopped from its methods.
    """

    def __init__(self, model: Model, settings: ContextSettings, stop: StopFlag | None = None) -> None:
        self._reader = AttentionReader()
        self._context = Context(model, settings, stop=stop, cb_eval=self._reader.callback)
        self.n_batch = self._context.n_batch
        self.traits = self._context.traits

    @property
    def n_bytes(self) -> int:
        """Bytes of its buffers."""
        return sum(self._context.buffers.values())

    def positions(self) -> list[NDArray[np.int32]]:
        """Positions in each attention cache up to its high-water mark, -1 for empty cells. Read-only."""
        return [cache.streams[0].pos for cache in self._context.memory.snapshot().maps]

    def load(self, blob: Blob) -> None:
        """Replace the content with this state, an excerpt (`kvdesk.cache.state.excerpt`): its cells go to the front."""
        self._context.memory.clear(data=False)
        if not self._context.states.seq_set(0, blob, audited=False):
            raise EngineError(tr("llama.cpp did not take the copied state."))

    def clear(self) -> None:
        """Remove all content."""
        self._context.memory.clear(data=False)

    def read(self, tokens: Sequence[int], pos: int) -> None:
        """Decode at most n_batch tokens, at `pos` and the following positions."""
        decoded = self._context.decode(Batch.of(0, pos, tokens, "none"), "check")
        if decoded.rc == 2:
            raise Stopped
        if decoded.rc != 0:
            why = tr("llama.cpp could not compute the attention (code {rc}).").format(rc=decoded.rc)
            raise DecodeError(decoded.rc, why)

    def attend(self, tokens: Sequence[int], pos: int, *, summed: bool) -> dict[int, HeadWeights]:
        """`read`, and the weights of its tokens by layer. `summed`: added up over the tokens."""
        with self._reader.reading(summed=summed) as found:
            self.read(tokens, pos)
        return found

    def close(self) -> None:
        """Free it."""
        self._context.close()
