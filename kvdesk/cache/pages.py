"""The paged overlay: what an allocator with pages would hold and waste for this cache's current content.

The allocator is vLLM's (v1, block manager with prefix caching). A sequence's tokens, in order of position, fill pages
of B slots one after another. A full page is shared by all sequences with the same tokens up to its end; a page that is
not full belongs to one sequence. All pages form one pool, whatever streams llama.cpp uses. Pure functions on frozen
views. Must never know the engine: this is a simulation, and the window labels it as one.
"""

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.seq_bits import seq_has, seqs_in
from kvdesk.cache.snapshot import CacheMap, StreamMap
from kvdesk.values import dataclass

PAGE_SIZES = (16, 32, 64)
_NO_PAGES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class SequencePages:
    """One sequence. `pages`: its page numbers in order, of which `n_shared` also belong to other sequences.

    n_empty  slots of its last page that hold nothing
    """

    seq_id: int
    n_tokens: int
    pages: tuple[int, ...]
    n_shared: int
    n_empty: int


@dataclass(frozen=True, slots=True, eq=False)
class PagedOverlay:
    """All pages of one cache.

    page_size   slots of a page (B)
    n_pages     pages held; n_shared: those of more than one sequence
    n_empty     slots that hold nothing: the internal fragmentation of paging, all of it in last pages
    n_used      cells that llama.cpp holds for the same. Paging fills more slots where sequences share cells but no full
                page (both hold a copy), and fewer where equal prefixes lie in their own cells
    page_of     for each stream an int32 array: page of each cell, of its lowest sequence where it has several; -1 free
    """

    page_size: int
    n_pages: int
    n_shared: int
    n_empty: int
    n_used: int
    sequences: tuple[SequencePages, ...]
    page_of: tuple[NDArray[np.int32], ...]

    @property
    def n_slots(self) -> int:
        """Slots of all pages: what paging would take."""
        return self.n_pages * self.page_size

    @property
    def n_filled(self) -> int:
        """Slots that hold a token."""
        return self.n_slots - self.n_empty

    @property
    def waste(self) -> float:
        """Share of the slots that hold nothing, 0 without pages."""
        return self.n_empty / self.n_slots if self.n_pages else 0.0


def paged_overlay(cache: CacheMap, page_size: int) -> PagedOverlay:
    """Pages of `page_size` slots for every sequence of the cache.

    The same token at the same position is the same content. If the token is unknown, only the same cell is. Free cells
    have no page. Raises ValueError for a page size below one slot.
    """
    if page_size < 1:
        raise ValueError(f"a page has at least one slot, not {page_size}")
    begun_alike: dict[bytes, list[_Pages]] = {}  # the sequences before, by the content of their first page
    n_pages = 0
    page_of = tuple(np.full(stream.size, -1, dtype=np.int32) for stream in cache.streams)
    tables: list[tuple[int, int, NDArray[np.int32]]] = []
    for s, stream in enumerate(cache.streams):
        for seq_id in seqs_in(stream.seq_bits):
            cells = np.flatnonzero(seq_has(stream.seq_bits, seq_id))
            cells = cells[np.argsort(stream.pos[cells], kind="stable")]
            content = _content(stream, s, cells)
            alike = begun_alike.setdefault(content[:, :page_size].tobytes(), [])
            shared = max((other.shared_with(content, page_size) for other in alike), key=len, default=_NO_PAGES)
            n_own = -(-len(cells) // page_size) - len(shared)
            numbers = np.concatenate([shared, np.arange(n_pages, n_pages + n_own, dtype=np.int32)])
            n_pages += n_own
            alike.append(_Pages(content, numbers))
            tables.append((seq_id, len(cells), numbers))
            pages = np.repeat(numbers, page_size)[: len(cells)]
            page_of[s][cells] = np.where(page_of[s][cells] == -1, pages, page_of[s][cells])
    owners = np.bincount(np.concatenate([_NO_PAGES, *(numbers for _, _, numbers in tables)]), minlength=n_pages)
    sequences = tuple(
        SequencePages(
            seq_id, n, tuple(numbers.tolist()), int((owners[numbers] > 1).sum()), len(numbers) * page_size - n
        )
        for seq_id, n, numbers in tables
    )
    return PagedOverlay(
        page_size=page_size,
        n_pages=n_pages,
        n_shared=int((owners > 1).sum()),
        n_empty=sum(sequence.n_empty for sequence in sequences),
        n_used=sum(int((page >= 0).sum()) for page in page_of),
        sequences=sequences,
        page_of=page_of,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pages:
    """The `_content` of a sequence, and the numbers of its pages."""

    content: NDArray[np.int64]
    numbers: NDArray[np.int32]

    def shared_with(self, content: NDArray[np.int64], page_size: int) -> NDArray[np.int32]:
        """Its pages up to the first one where another content differs or ends."""
        n = min(self.content.shape[1], content.shape[1])
        differs = np.flatnonzero((self.content[:, :n] != content[:, :n]).any(axis=0))
        n_equal = int(differs[0]) if len(differs) else n
        return self.numbers[: n_equal // page_size]


def _content(stream: StreamMap, s: int, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns that are equal where the content is, int64 [3, cells]: position and token, or the cell itself where the
    token is not known.
    """
    tokens = stream.token[cells]
    return np.stack([stream.pos[cells], tokens, np.where(tokens < 0, cells + s * stream.size, -1)])
