"""Checks every call of llama.cpp that could abort the process or silently do harm, before it is made.

Owns the table of process-killing calls as code. Each method returns, or raises RefusedCall with a sentence in the
user's terms. Must never call the engine. All `file:line` references are llama.cpp 0c1e57098.
"""

from collections.abc import Callable

from kvdesk.backends.local.llama.capabilities import capabilities
from kvdesk.backends.local.llama.params import ggml_type
from kvdesk.backends.local.llama.traits import Traits
from kvdesk.cache.batch import Batch
from kvdesk.cache.memories.cells import POS_MAX, clip_range
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.state.blob import Blob, BlobError, StateBlob, parse_seq_state, parse_state
from kvdesk.errors import RefusedCall
from kvdesk.protocol.operations import OperationName
from kvdesk.translation import marked, tr

_GONE_BACK = marked(
    "Tokens at the end of this sequence were removed: its state is put back with its next token, and cannot be shared "
    "before."
)


class Guards:
    """The checks of one context. `mirror` has the current content of the cache. Read-only."""

    def __init__(self, traits: Traits, mirror: Callable[[], Mirror]) -> None:
        self._traits = traits
        self._now = mirror
        self._n_seq_max = traits.geometry.n_seq_max
        self._n_positions = min(POS_MAX, traits.model.n_positions or POS_MAX)
        self.capabilities = capabilities(traits)
        self.knows_states = self.capabilities["swap"].allowed

    @property
    def _mirror(self) -> Mirror:
        return self._now()

    def seq(self, seq_id: int) -> None:
        """Every operation checks sequence ids (llama-kv-cache.cpp:389, :457, :549, :576, :665, :678, :2153).

        The engine's own limit is 256 in a unified cache; a restore would lose ids above n_seq_max.
        """
        if not 0 <= seq_id < self._n_seq_max:
            raise RefusedCall(
                tr("Sequence {seq_id} does not exist: this context has sequences 0 to {last}.").format(
                    seq_id=seq_id, last=self._n_seq_max - 1
                )
            )

    def batch(self, batch: Batch) -> None:
        """llama_decode: sizes (llama-context.cpp:1785, :1787), tokens, positions, sequences."""
        tokens, pos, seq_ids, output = batch
        n = len(tokens)
        if (
            self._traits.model.gaps
            and n == len(pos) == len(seq_ids) == len(output) == 1 == len(seq_ids[0])
            and (
                0 <= tokens[0] < self._traits.n_vocab
                and 0 <= pos[0] < self._n_positions
                and 0 <= seq_ids[0][0] < self._n_seq_max
            )
        ):
            return  # the next token of an answer cannot be wrong
        g = self._traits.geometry
        if n == 0:
            raise RefusedCall(tr("The batch is empty."))
        if not len(pos) == len(seq_ids) == len(output) == n:
            raise RefusedCall(tr("The batch must have one position, one set of sequences and one flag for each token."))
        if n > g.n_batch:
            raise RefusedCall(tr("The batch has {n} tokens, but n_batch is {n_batch}.").format(n=n, n_batch=g.n_batch))
        if not self._traits.model.causal and n > g.n_ubatch:
            raise RefusedCall(
                tr("This model looks ahead: its batches cannot be larger than n_ubatch, {n_ubatch}.").format(
                    n_ubatch=g.n_ubatch
                )
            )
        for token, at, ids in zip(tokens, pos, seq_ids, strict=True):
            self._entry(token, at)
            if not ids:
                raise RefusedCall(tr("A token of the batch belongs to no sequence."))
            for seq_id in ids:
                self.seq(seq_id)
        model = self._traits.model
        if not model.together and len({frozenset(ids) for ids in seq_ids}) > 1:
            raise RefusedCall(
                tr(
                    "With this architecture llama.cpp writes the states of several sequences in one batch to "
                    "wrong places, and aborts: each sequence needs a separate batch."
                )
            )
        if not model.shared and any(len(ids) > 1 for ids in seq_ids):
            raise RefusedCall(
                tr(
                    "With this architecture a token of a batch that belongs to several sequences would end "
                    "llama.cpp's process."
                )
            )
        self._states(batch)
        if not model.gaps:
            self._gapless(batch)

    def _states(self, batch: Batch) -> None:
        """A token of several sequences: only the state of the first is put back (llama-memory-recurrent.cpp:1345), and
        saving aborts if they differ (:797).
        """
        if self._traits.geometry.n_rs_seq and any(
            len(ids) > 1 and any(self._mirror.gone_back(s) for s in ids) for ids in batch.seq_ids
        ):
            raise RefusedCall(tr(_GONE_BACK))

    def _gapless(self, batch: Batch) -> None:
        """An indexer's block covers as many positions as cells; a gap would exceed the cells and abort."""
        follows: dict[int, int] = {}
        for at, ids in zip(batch.pos, batch.seq_ids, strict=True):
            for seq_id in ids:
                if at > follows.get(seq_id, self._mirror.seq_pos_max(seq_id) + 1):
                    raise RefusedCall(
                        tr(
                            "With this architecture the positions of a sequence must have no gap: {pos} is too far."
                        ).format(pos=at)
                    )
                follows[seq_id] = at + 1

    def _entry(self, token: int, pos: int) -> None:
        n_vocab, n_positions = self._traits.n_vocab, self._traits.model.n_positions
        if not 0 <= token < n_vocab:
            raise RefusedCall(
                tr("Token {token} is not in the vocabulary of {n_vocab} tokens.").format(token=token, n_vocab=n_vocab)
            )
        if pos < 0:
            raise RefusedCall(tr("Position {pos} is negative.").format(pos=pos))
        if pos >= POS_MAX:
            raise RefusedCall(tr("Position {pos} is beyond what llama.cpp can count.").format(pos=pos))
        if n_positions and pos >= n_positions:
            raise RefusedCall(
                tr("Position {pos} does not exist: this model has learned {n_positions} positions.").format(
                    pos=pos, n_positions=n_positions
                )
            )

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Between streams only whole sequences (llama-kv-cache.cpp:506). Never a part of a recurrent state, nor one
        that is still to be put back: the copy would get the later state (llama-memory-recurrent.cpp:245,
        dsv4.cpp:1507).
        """
        self.seq(src)
        self.seq(dst)
        if src != dst and self._traits.geometry.n_rs_seq and self._mirror.gone_back(src):
            raise RefusedCall(tr(_GONE_BACK))
        if src == dst or (p0 <= 0 and (p1 < 0 or p1 > self._mirror.seq_pos_max(src))):
            return
        self._allow("partial seq_cp")

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """A K-shift that cannot run aborts at the next decode (llama-kv-cache.cpp:577, :858; ggml-cpu/ops.cpp:6486)."""
        self.seq(seq_id)
        if shift == 0 or p0 == p1:
            return
        self._allow("seq_add")
        low, high = self._mirror.seq_pos_min(seq_id), self._mirror.seq_pos_max(seq_id)
        if abs(shift) >= POS_MAX or high + shift >= POS_MAX:
            raise RefusedCall(
                tr("Moving sequence {seq_id} by {shift} goes beyond what llama.cpp can count.").format(
                    seq_id=seq_id, shift=shift
                )
            )
        start, end = clip_range(p0, p1)
        if self._mirror.states and start <= low < end and low + shift < 0:
            raise RefusedCall(
                tr("Moving sequence {seq_id} by {shift} gives its recurrent state a negative position.").format(
                    seq_id=seq_id, shift=shift
                )
            )

    def state(self, blob: Blob) -> StateBlob:
        """The parsed blob of a whole state. One that does not fit would wipe the cache (llama-kv-cache.cpp:2468)."""
        state = self._parsed(blob, None)
        for cache, streams in zip(self._mirror.caches, state.caches, strict=True):
            for stored in streams:
                if stored.n_cells > cache.size:
                    raise RefusedCall(
                        tr("The saved state has {n} cells, but a stream has {size}.").format(
                            n=stored.n_cells, size=cache.size
                        )
                    )
                if any(not 0 <= s < self._n_seq_max for ids in set(stored.seq_ids) for s in ids):
                    raise RefusedCall(
                        tr("The saved state is of a context with more than {n_seq_max} sequences.").format(
                            n_seq_max=self._n_seq_max
                        )
                    )
        if self._mirror.states and len(state.states) > self._mirror.states.size:
            raise RefusedCall(
                tr("The saved state is of a context with more than {n_seq_max} sequences.").format(
                    n_seq_max=self._n_seq_max
                )
            )
        return state

    def seq_state(self, seq_id: int, blob: Blob) -> StateBlob:
        """The parsed blob of one sequence, for `seq_id`."""
        self.seq(seq_id)
        return self._parsed(blob, seq_id)

    def saving(self) -> None:
        """Whether states can be saved and restored at all."""
        self._allow("swap")

    def row(self, row: int, rows: frozenset[int]) -> None:
        """Sampling without logits aborts (llama-sampler.cpp:940)."""
        if row not in rows:
            raise RefusedCall(tr("There are no logits for entry {row} of the last batch.").format(row=row))

    def _allow(self, operation: OperationName) -> None:
        found = self.capabilities[operation]
        if not found.allowed:
            raise RefusedCall(found.why)

    def _parsed(self, blob: Blob, seq_id: int | None) -> StateBlob:
        self.saving()
        g = self._traits.geometry
        try:
            state = parse_state(blob, g) if seq_id is None else parse_seq_state(blob, g)
        except BlobError as error:
            raise RefusedCall(str(error), error.detail) from error
        positions = [stored.pos for streams in state.caches for stored in streams if stored.n_cells]
        if any(pos.min() < 0 or pos.max() >= POS_MAX for pos in positions) or any(
            p >= POS_MAX for p, _ in state.states
        ):
            raise RefusedCall(tr("The saved state has positions that llama.cpp could never remove again."))
        wanted = {"k": ggml_type(self._traits.settings.type_k), "v": ggml_type(self._traits.settings.type_v)}
        for stored in (stored for streams in state.caches for stored in streams):
            for section in stored.sections:
                if section.ggml_type != wanted[section.kind]:
                    raise RefusedCall(
                        tr("The saved state holds {kind} of another type than this context.").format(
                            kind=section.kind.upper()
                        )
                    )
                if section.kind == "v" and bool(section.n_rows) != g.v_trans:
                    raise RefusedCall(tr("The saved state was made with flash attention switched the other way."))
        return state
