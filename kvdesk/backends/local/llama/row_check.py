"""Checks whether a token computed alone gets the same bits as one computed among others.

llama.cpp multiplies several rows of tokens with other code than one (llamafile_sgemm, sgemm.cpp; repacked weights,
ggml-cpu/repack.cpp). Which code depends on the weights, the processor and the number of rows, so it is tried.
"""

import ctypes
import itertools
from typing import Any

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.memory.batch_buffer import BatchBuffer
from kvdesk.cache.batch import Batch

SIZES = (1, 1, 2, 4, 8, 16)
"""Batch sizes: single rows, those of drafts, and whole tiles of kernels."""


def rows_alike(ctx: Any, n_vocab: int) -> bool:
    """Read the same tokens together, and in batches of `SIZES` with the last one alone, into an empty context. Compares
    all bits of the state and of all logits, because K and V are rounded and logits have a separate product.

    The context is empty afterwards. Also True if llama.cpp cannot decode the tokens, since nothing is read then.
    """
    memory, n_ubatch = lib.llama_get_memory(ctx), int(lib.llama_n_ubatch(ctx))
    tokens = tuple(i % n_vocab for i in range(1, sum(SIZES) + 1))[: max(2, n_ubatch)]
    last = len(tokens) - 1
    cuts = [0, *(end for end in itertools.accumulate(SIZES) if end < last), last, len(tokens)]
    parts = [Batch.of(0, a, tokens[a:b], "all") for a, b in itertools.pairwise(cuts)]
    buffer = BatchBuffer(len(tokens), 1)
    try:
        found = []
        for batches in ([Batch.of(0, 0, tokens, "all")], parts):
            lib.llama_memory_clear(memory, True)
            logits = b""
            for batch in batches:
                buffer.fill(batch)
                if lib.llama_decode(ctx, buffer.raw) != 0:
                    return True
                logits += ctypes.string_at(lib.llama_get_logits(ctx), 4 * n_vocab * len(batch.tokens))
            found.append((_state(ctx), logits))
        return found[0] == found[1]
    finally:
        lib.llama_memory_clear(memory, True)
        buffer.close()


def _state(ctx: Any) -> bytes:
    size = lib.llama_state_seq_get_size(ctx, 0)
    data = (ctypes.c_uint8 * size)()
    return bytes(data[: lib.llama_state_seq_get_data(ctx, data, size, 0)])
