"""What is true of the mirror after any sequence of operations."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import Verification

N_SEQ = 3
SEQ = st.integers(0, N_SEQ - 1)
POS = st.integers(-1, 40)
FACTS = [
    ModelFacts("plain", "attention"),
    ModelFacts("window", "iswa", n_swa=16, swa_type="standard"),
    ModelFacts("chunks", "iswa", n_swa=16, swa_type="chunked"),
    ModelFacts("both", "hybrid"),
]


class Operations(RuleBasedStateMachine):
    """Any operations that the engine allows, in any order."""

    @initialize(facts=st.sampled_from(FACTS), unified=st.booleans(), swa_full=st.booleans())
    def create(self, facts: ModelFacts, unified: bool, swa_full: bool) -> None:
        asked = ContextParams(
            n_ctx=512, n_seq_max=N_SEQ, n_batch=200, n_ubatch=16, kv_unified=unified, swa_full=swa_full
        )
        self.mirror = Mirror(plan(facts, asked))

    @rule(seq=SEQ, n=st.integers(1, 150), stop=st.booleans())
    def decode(self, seq: int, n: int, stop: bool) -> None:
        start = self.mirror.seq_pos_max(seq) + 1
        batch = Batch(range(n), range(start, start + n), [(seq,)] * n, [False] * n)
        before = self.mirror.seq_pos_max(seq)
        rc = self.mirror.predict(batch)
        if rc == 0 and stop and not self.mirror.states:
            record = self.mirror.decode(batch, 2, lambda s: self.mirror.seq_pos_max(s) if s != seq else before)
            assert not record.ubatches
        else:
            record = self.mirror.decode(batch, rc)
            assert record.expected_rc == rc
            assert sum(len(u.index) for u in record.ubatches) == (n if rc == 0 else 0)
        assert not record.mismatch

    @rule(seq=SEQ, p0=POS, p1=POS)
    def seq_rm(self, seq: int, p0: int, p1: int) -> None:
        self.mirror.seq_rm(seq, p0, p1)

    @rule(src=SEQ, dst=SEQ)
    def seq_cp(self, src: int, dst: int) -> None:
        self.mirror.seq_cp(src, dst, -1, -1)

    @rule(seq=SEQ)
    def seq_keep(self, seq: int) -> None:
        self.mirror.seq_keep(seq)

    @rule(seq=SEQ, p0=POS, p1=POS, shift=st.integers(-20, 20))
    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        self.mirror.seq_add(seq, p0, p1, shift)

    @rule()
    def clear(self) -> None:
        self.mirror.clear()

    @invariant()
    def cells_are_consistent(self) -> None:
        for cache in self.mirror.caches:
            for cells in cache.streams:
                used = cells.pos != -1
                assert (cells.bits.any(axis=1) == used).all()  # every used cell has a sequence, no free one has
                assert cells.used == used.sum()
                assert cells.used + (cells.pos == -1).sum() == cells.size
                assert cells.high_water == (np.flatnonzero(used)[-1] + 1 if used.any() else 0)
                assert 0 <= cells.head <= cells.size
                assert (cells.written_at_op[~used] == 0).all()
                assert (cells.token[~used] == -1).all()
                assert (cells.shift[~used] == 0).all()

    @invariant()
    def spans_are_those_of_the_cells(self) -> None:
        for cache in self.mirror.caches:
            for seq in range(N_SEQ):
                cells = cache.cells_of(seq)
                pos = cells.pos[(cells.bits[:, 0] & np.uint64(1 << seq)) != 0]
                assert cells.n_cells(seq) == len(pos)
                assert cells.seq_pos_min(seq) == (pos.min() if len(pos) else -1)
                assert cells.seq_pos_max(seq) == (pos.max() if len(pos) else -1)

    @invariant()
    def states_belong_to_their_tails(self) -> None:
        if self.mirror.states:
            cells = self.mirror.states.cells
            for seq in range(N_SEQ):
                owned = [i for i, cell in enumerate(cells) if seq in cell.seq_ids]
                assert len(owned) <= 1

    @invariant()
    def snapshot_is_a_frozen_copy(self) -> None:
        snapshot = self.mirror.snapshot(Verification("mirrored", 0))
        for cache in snapshot.maps:
            for stream in cache.streams:
                assert not stream.pos.flags.writeable
                assert stream.used == stream.seq_bits.any(axis=1).sum()


TestOperations = Operations.TestCase
TestOperations.settings = settings(stateful_step_count=20)
