"""The `llama_batch` that one context decodes from: memory of llama.cpp, filled from `Batch` values.

Owns the pointers. Must never decode.
"""

from kvdesk.backends.local.llama.binding import lib
from kvdesk.cache.batch import Batch


class BatchBuffer:
    """Room for `n_tokens` tokens, each of up to `n_seq_max` sequences. `raw` is what llama_decode takes."""

    def __init__(self, n_tokens: int, n_seq_max: int) -> None:
        self.raw = lib.llama_batch_init(n_tokens, 0, n_seq_max)
        raw = self.raw
        self._columns = raw.token, raw.pos, raw.n_seq_id, raw.seq_id, raw.logits  # a new pointer at each look-up
        self._alone: tuple[int, ...] = ()  # the single sequence of the first entry; () if it has several

    def fill(self, batch: Batch) -> None:
        """Write a checked batch."""
        n = self.raw.n_tokens = len(batch.tokens)
        token, pos, n_seq_id, seq_id, logits = self._columns
        if n == 1 and batch.seq_ids[0] == self._alone:
            token[0], pos[0], logits[0] = batch.tokens[0], batch.pos[0], batch.output[0]
            return  # the other fields are unchanged since the last token
        self._alone = batch.seq_ids[0] if len(batch.seq_ids[0]) == 1 else ()
        for i, seqs in enumerate(batch.seq_ids):
            token[i] = batch.tokens[i]
            pos[i] = batch.pos[i]
            logits[i] = batch.output[i]
            n_seq_id[i] = len(seqs)
            for j, s in enumerate(seqs):
                seq_id[i][j] = s

    def close(self) -> None:
        lib.llama_batch_free(self.raw)
