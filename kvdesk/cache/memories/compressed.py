"""The states of DeepSeek V4, which compress its keys: one per sequence, besides the cells of a window.

Owns the rules of llama_kv_cache_dsv4 about earlier states. Rows of compressed keys are found by position, so they need
no map. Must never know cells. All `file:line` references are llama-kv-cache-dsv4.cpp of llama.cpp 0c1e57098.
"""

from collections.abc import Iterable

from kvdesk.cache.batch import Ubatch


class CompressedStates:
    """By sequence: `back`, how many tokens were removed whose state is put back only by the next decode (rs_idx);
    `kept`, how many earlier states exist.
    """

    def __init__(self, n_seq_max: int, n_rs_seq: int = 0) -> None:
        self.n_rs_seq = n_rs_seq
        self.back = [0] * n_seq_max
        self.kept = [0] * n_seq_max

    def removable(self, seq_id: int) -> int:
        """How many of the sequence's last tokens can be removed and leave a correct state. Read-only."""
        return 0 if self.back[seq_id] else self.kept[seq_id]

    def forget(self, sequences: Iterable[int]) -> None:
        """These sequences now hold nothing, or a saved state without earlier states (:1730). Changes the cache."""
        for s in sequences:
            self.back[s] = self.kept[s] = 0

    def seq_rm(self, seq_id: int, p0: int, p1: int, pos_max: int) -> bool:
        """Whether the window removes the sequence, whose last position is `pos_max`, from [p0, p1) (:1458-1504).

        Changes the cache. False, with nothing changed: only all of it can be removed, or up to `n_rs_seq` tokens at its
        end, once before its next decode.
        """
        n_seq_max = len(self.back)
        if p1 >= 0 or (p0 > 0 and not 0 <= seq_id < n_seq_max):
            return False
        if p0 <= 0:
            self.forget([seq_id] if seq_id >= 0 else range(n_seq_max))
        elif p0 <= pos_max:
            n = pos_max - p0 + 1
            if n > self.n_rs_seq or self.back[seq_id]:
                return False
            self.back[seq_id], self.kept[seq_id] = n, 0
        return True

    def begin(self, ubatches: Iterable[Ubatch]) -> None:
        """A batch has its cells, so a state that was gone back from counts as put in place (:1711). Changes."""
        if self.n_rs_seq:
            for s in {s for ubatch in ubatches for s in ubatch.seq_id_unq}:
                self.back[s] = self.kept[s] = 0

    def compute(self, ubatch: Ubatch) -> None:
        """An ubatch was computed: the states before its tokens are kept (:679-721). Changes the cache."""
        for s in ubatch.seq_id_unq if self.n_rs_seq else ():
            self.kept[s] = min(ubatch.n_seq_tokens, self.n_rs_seq)
