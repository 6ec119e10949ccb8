"""Whether a token gets the same bits computed alone as computed among others.

llama.cpp multiplies rows of tokens with other code where there are several (llamafile_sgemm, sgemm.cpp; repacked
weights, ggml-cpu/repack.cpp), and which, depends on the weights, the processor and the number of rows. So it is tried.
"""

from __future__ import annotations

import ctypes
from typing import Any

from kvdesk.backends.local.llama.batch_buffer import BatchBuffer
from kvdesk.backends.local.llama.binding import lib
from kvdesk.cache.batch import Batch

N_TOKENS = 8
"""As many rows as the widest kernels compute at once."""


def rows_alike(ctx: Any, n_vocab: int) -> bool:
    """Read `N_TOKENS` tokens together and one by one into an empty context, and compare state and logits bit for bit.

    The context is empty afterwards. True also where llama.cpp cannot decode them: then nothing is read at all.
    """
    memory, n = lib.llama_get_memory(ctx), min(N_TOKENS, int(lib.llama_n_ubatch(ctx)))
    tokens = tuple(i % n_vocab for i in range(1, n + 1))
    buffer = BatchBuffer(n, 1)
    try:
        found = []
        for batches in ([Batch.of(0, 0, tokens, "last")], [Batch.of(0, i, (t,), "last") for i, t in enumerate(tokens)]):
            lib.llama_memory_clear(memory, True)
            for batch in batches:
                buffer.fill(batch)
                if lib.llama_decode(ctx, buffer.raw) != 0:
                    return True
            found.append((_state(ctx), ctypes.string_at(lib.llama_get_logits_ith(ctx, -1), 4 * n_vocab)))
        return found[0] == found[1]
    finally:
        lib.llama_memory_clear(memory, True)
        buffer.close()


def _state(ctx: Any) -> bytes:
    size = lib.llama_state_seq_get_size(ctx, 0)
    data = (ctypes.c_uint8 * size)()
    return bytes(data[: lib.llama_state_seq_get_data(ctx, data, size, 0)])
