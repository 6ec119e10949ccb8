"""The recurrent part of a memory: one state per sequence, in as many cells as there are sequences.

Owns the rules of llama_memory_recurrent, and which earlier states of a sequence it keeps (`n_rs_seq`): those between
the tokens of the last ubatch. The engine also returns to others, whatever they contain. Must never know attention
cells. All `file:line` references are llama-memory-recurrent.cpp of llama.cpp 0c1e57098.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvdesk.cache.batch import Ubatch
from kvdesk.cache.memories.cells import POS_MAX, clip_range
from kvdesk.values import dataclass, field


@dataclass(slots=True)
class StateCell:
    """`pos`: last position in the state, -1 for none; `seq_ids`: its owners; `tail`: cell with sequence i's state;
    `kept`: how many earlier states are kept beside it.
    """

    pos: int = -1
    seq_ids: set[int] = field(default_factory=set)
    tail: int = -1
    kept: int = 0


class RecurrentStates:
    """All states. A batch moves the states of its sequences next to each other, so cells change places.

    back: by sequence, how many tokens were removed whose state is put back only by the next decode (rs_idx)
    """

    def __init__(self, size: int, n_seq_max: int, n_rs_seq: int = 0) -> None:
        self.cells = [StateCell() for _ in range(size)]
        self.n_seq_max = n_seq_max
        self.n_rs_seq = n_rs_seq
        self.back = [0] * n_seq_max
        self.head = 0
        self.used = 0
        self._n = 0  # cells of the last slot, from the head on

    # --- read-only ---------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return len(self.cells)

    def seq_pos_min(self, seq_id: int) -> int:
        """Position of the sequence's state, -1 for none (:365). Read-only."""
        return min((cell.pos for cell in self.cells if seq_id in cell.seq_ids), default=-1)

    def seq_pos_max(self, seq_id: int) -> int:
        """Position of the sequence's state, -1 for none or where a shift made it negative (:381). Read-only."""
        return max((cell.pos for cell in self.cells if seq_id in cell.seq_ids and cell.pos >= 0), default=-1)

    def n_owners(self, seq_id: int) -> int:
        """How many sequences share this one's state, itself included; 0 without a state. Read-only."""
        return max((len(cell.seq_ids) for cell in self.cells if seq_id in cell.seq_ids), default=0)

    def removable(self, seq_id: int) -> int:
        """How many of the sequence's last tokens can be removed and leave a correct state. Read-only."""
        tail = self.cells[seq_id].tail
        alone = tail >= 0 and len(self.cells[tail].seq_ids) == 1
        return self.cells[tail].kept if alone and not self.back[seq_id] else 0

    def in_order(self) -> list[tuple[int, tuple[int, ...]]]:
        """(pos, sequence ids ascending) of every used cell, in index order: what a state blob has. Read-only."""
        return [(cell.pos, tuple(sorted(cell.seq_ids))) for cell in self.cells if cell.seq_ids]

    def copy(self) -> RecurrentStates:
        """An independent copy, to try something on. Read-only."""
        other = RecurrentStates(0, self.n_seq_max, self.n_rs_seq)
        other.cells = [StateCell(cell.pos, set(cell.seq_ids), cell.tail, cell.kept) for cell in self.cells]
        other.back = list(self.back)
        other.head, other.used = self.head, self.used
        return other

    def prepare(self, ubatches: Sequence[Ubatch]) -> bool:
        """Whether every ubatch finds its states, tried on a copy (:445). Read-only."""
        trial = self.copy()
        return all(trial.find_slot(ubatch) for ubatch in ubatches)

    # --- changes the cache -------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget all states (:130). Changes the cache."""
        self.cells = [StateCell() for _ in range(self.size)]
        self.back = [0] * self.n_seq_max
        self.head = self.used = 0

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        """Remove a sequence's state, if [p0, p1) covers it from the start (:153-243). Changes the cache.

        At the end of a sequence, up to `n_rs_seq` tokens can be removed by going back to an earlier state, once before
        its next decode. False, with nothing changed: no other part can be removed, and seq_id -1 is never accepted.
        """
        p0, p1 = clip_range(p0, p1)
        if not 0 <= seq_id < self.n_seq_max:
            return False
        if p0 == 0 and p1 == POS_MAX:
            self.back[seq_id] = 0
        meta = self.cells[seq_id]
        if meta.tail >= 0:
            pos = self.cells[meta.tail].pos
            if 0 < p0 <= pos < p1:
                return self._go_back(seq_id, p0)
            if p0 <= pos < p1:
                meta.tail = -1
        freed = -1
        for i, cell in enumerate(self.cells):
            if p0 <= cell.pos < p1 and seq_id in cell.seq_ids:
                cell.seq_ids.discard(seq_id)
                if not cell.seq_ids:
                    self.used -= int(cell.pos >= 0)
                    cell.pos = -1
                    freed = i if freed < 0 else freed
        self._lower_head(freed)
        return True

    def seq_cp(self, src: int, dst: int) -> None:
        """Let `dst` share the state of `src`, whatever the range (:228). Changes the cache."""
        if src == dst or not (0 <= src < self.size and 0 <= dst < self.size):
            return
        source, target = self.cells[src], self.cells[dst]
        if target.tail >= 0:
            self._leave(dst)
        if source.tail >= 0:
            self.cells[source.tail].seq_ids.add(dst)
            target.tail = source.tail

    def seq_keep(self, seq_id: int) -> None:
        """Forget all other sequences (:264). Changes the cache."""
        freed = -1
        for i, cell in enumerate(self.cells):
            if i != seq_id:
                cell.tail = -1
            if seq_id in cell.seq_ids:
                cell.seq_ids = {seq_id}
                continue
            self.used -= int(cell.pos >= 0)
            cell.pos = -1
            cell.seq_ids.clear()
            freed = i if freed < 0 else freed
        self._lower_head(freed)

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        """Move the state's position, if it lies in [p0, p1), for all its owners (:294). Changes the cache."""
        p0, p1 = clip_range(p0, p1)
        cell = self._state_in(seq_id, p0, p1)
        if cell:
            cell.pos += shift

    def find_slot(self, ubatch: Ubatch) -> bool:
        """Give every sequence set of the ubatch its own state, in adjacent cells (:458-693). Changes the cache."""
        owners = [ubatch.seq_ids[s * ubatch.n_seq_tokens] for s in range(ubatch.n_seqs)]
        last = [int(ubatch.pos[(s + 1) * ubatch.n_seq_tokens - 1]) for s in range(ubatch.n_seqs)]
        if self.head > self.used + 2 * len(owners):
            self.head = 0
        for seq_ids in owners:
            for j, seq_id in enumerate(seq_ids):
                if not 0 <= seq_id < self.size:
                    return False
                if j > 0 and self.cells[seq_id].tail >= 0:
                    self._leave(seq_id)
        low, high = self._own_states(owners)
        for s, seq_ids in enumerate(owners):
            self._swap(low + s, self.cells[seq_ids[0]].tail)
        for s, seq_ids in enumerate(owners):
            cell = self.cells[low + s]
            cell.pos, cell.kept = last[s], 0
            cell.seq_ids = set(seq_ids)
            for seq_id in seq_ids:
                self.cells[seq_id].tail = low + s
        self.head, self._n = low, high - low + 1
        self.used = sum(1 for cell in self.cells if cell.seq_ids)
        return high - low + 1 >= len(owners)

    def compute(self, ubatch: Ubatch) -> None:
        """What the graph of an ubatch does to earlier states, once it has its slot. Changes the cache.

        After a sequence was gone back, its state is put in place (s_copy, :1345). The states after each token but the
        last are kept (models/delta-net-base.cpp:575; what a shorter ubatch does not write stays as it was).
        """
        if not self.n_rs_seq:
            return
        for cell in self.cells[self.head : self.head + self._n]:
            if cell.seq_ids:
                self.back[min(cell.seq_ids)] = 0
        for cell in self.cells[self.head : self.head + ubatch.n_seqs]:
            cell.kept = min(ubatch.n_seq_tokens - 1, self.n_rs_seq)

    def restore(self, states: Sequence[tuple[int, tuple[int, ...]]]) -> bool:
        """Replace everything by (pos, sequence ids) of a full state blob (:1039-1087). Changes the cache.

        False when they do not fit or contradict each other; then nothing is left.
        """
        if len(states) > self.size:
            self.clear()
            return False
        self.clear()
        for i, (pos, seq_ids) in enumerate(states):
            self.cells[i].pos = pos
            for seq_id in seq_ids:
                if not 0 <= seq_id < self.n_seq_max or self.cells[seq_id].tail != -1:
                    self.clear()
                    return False
                self.cells[i].seq_ids.add(seq_id)
                self.cells[seq_id].tail = i
        self.head, self.used = 0, len(states)
        return True

    # --- private -----------------------------------------------------------------------------------------------------

    def _go_back(self, seq_id: int, p0: int) -> bool:
        """Back to the state before position `p0`, whether it is kept or not (:190-205)."""
        cell = self.cells[self.cells[seq_id].tail]
        n = cell.pos - p0 + 1
        if self.back[seq_id] or n > self.n_rs_seq:
            return False
        self.back[seq_id] = n
        cell.pos, cell.kept = p0 - 1, 0
        return True

    def _state_in(self, seq_id: int, p0: int, p1: int) -> StateCell | None:
        if p0 == p1 or not 0 <= seq_id < self.size:
            return None
        tail = self.cells[seq_id].tail
        cell = self.cells[tail] if tail >= 0 else None
        return cell if cell and seq_id in cell.seq_ids and p0 <= cell.pos < p1 else None

    def _lower_head(self, freed: int) -> None:
        if 0 <= freed < self.head:
            self.head = freed

    def _leave(self, seq_id: int) -> None:
        """Take a sequence out of its state; a state without a sequence is free (:243-252, :501-512)."""
        meta = self.cells[seq_id]
        cell = self.cells[meta.tail]
        cell.seq_ids.discard(seq_id)
        meta.tail = -1
        if not cell.seq_ids:
            cell.pos = -1
            self.used -= 1

    def _next_empty(self, start: int) -> int:
        """First cell without owner from `start`, once around; where the engine's search stops if there is none."""
        cell = start
        for _ in range(self.size):
            if cell >= self.size:
                cell -= self.size
            if not self.cells[cell].seq_ids:
                break
            cell += 1
        return cell

    def _own_states(self, owners: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Make sure the first id of every set owns a state alone; the lowest and highest cell (:541-585)."""
        empty = self._next_empty(self.head)
        low, high = self.size - 1, 0
        for s, seq_ids in enumerate(owners):
            owner = seq_ids[0]
            meta = self.cells[owner]
            if meta.tail < 0 or len(self.cells[meta.tail].seq_ids) != 1:
                if meta.tail >= 0:
                    shared = self.cells[meta.tail]
                    self.cells[empty].pos = shared.pos
                    shared.seq_ids.discard(owner)
                    self.cells[empty].seq_ids.add(owner)
                meta.tail = empty
                if s + 1 < len(owners):
                    empty = self._next_empty(empty + 1)
            low, high = min(low, meta.tail), max(high, meta.tail)
        return low, high

    def _swap(self, dst: int, src: int) -> None:
        """Exchange two cells and all references to them (:588-608)."""
        if dst == src:
            return
        a, b = self.cells[dst], self.cells[src]
        a.pos, b.pos = b.pos, a.pos
        a.seq_ids, b.seq_ids = b.seq_ids, a.seq_ids
        a.kept = b.kept = 0  # earlier states do not move along
        moved = {src: dst, dst: src}
        for cell in self.cells:
            cell.tail = moved.get(cell.tail, cell.tail)
