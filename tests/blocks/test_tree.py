"""The tree of blocks: written out by hand, and against a plain dictionary of what is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.blocks import tree as module
from kvdesk.blocks.events import AllBlocksCleared, Batch, BlockEvent, BlockRemoved, BlockStored
from kvdesk.blocks.tree import BlockTree


def stored(hashes: str, parent: str | None = None, tier: str = "GPU") -> BlockStored:
    """Blocks of two tokens named by letters; the tokens of a block are its letter's code, twice."""
    tokens = tuple(ord(c) for c in hashes for _ in (0, 1))
    return BlockStored(tuple(hashes), parent, tokens, 2, tier)


def removed(hashes: str, tier: str = "GPU") -> BlockRemoved:
    return BlockRemoved(tuple(hashes), tier)


def following(*events: BlockEvent) -> BlockTree:
    tree = BlockTree()
    for seq, event in enumerate(events):
        tree.apply(seq, Batch(float(seq), (event,)))
    return tree


def drawn(tree: BlockTree) -> list[str]:
    """Each row as text, a block where it lies."""
    shown = tree.layout()
    rows = [[" "] * 12 for _ in range(shown.n_rows)]
    for block, row, depth in zip(shown.blocks, shown.row, shown.depth, strict=True):
        rows[row][depth] = block.key[1]
    return ["".join(row).rstrip() for row in rows]


def test_a_chain_is_a_row_and_a_fork_begins_another() -> None:
    tree = following(stored("abcd"), stored("x", "b"), stored("yz", "d"), stored("w", "d"), stored("q"))
    assert drawn(tree) == ["abcdyz", "    w", "  x", "q"]
    shown = tree.layout()
    assert [shown.blocks[p].key[1] if p >= 0 else p for p in shown.parent[:5]] == [-1, "a", "b", "c", "d"]
    assert shown.n_shared == 2
    assert shown.n_tokens == 18


def test_a_block_is_gone_when_it_lies_in_no_tier() -> None:
    tree = following(stored("ab"), stored("ab", tier="CPU"), removed("b"))
    block = tree.match([97, 97, 98, 98])[1]
    assert block.tiers == ("CPU",)
    assert block.n_stored == 2
    tree.apply(3, Batch(3.0, (removed("b", "CPU"),)))
    assert [b.key[1] for b in tree.match([97, 97, 98, 98])] == ["a"]
    assert tree.layout().n_removed == 1


def test_children_of_what_is_removed_or_was_never_heard_begin_a_row() -> None:
    tree = following(stored("abc"), removed("a"), stored("z", "never"))
    assert drawn(tree) == ["bc", "z"]
    assert list(tree.layout().parent) == [-2, 0, -2]
    assert tree.match([97, 97]) == []


def test_a_prompt_is_matched_as_far_as_its_blocks_are_whole() -> None:
    tree = following(stored("abc"), stored("x", "b"))
    prompt = [97, 97, 98, 98, 120, 120, 99]
    found = tree.match(prompt)
    assert [block.key[1] for block in found] == ["a", "b", "x"]
    tree.use(found)
    assert [block.n_used for block in tree.match(prompt)] == [1, 1, 1]
    assert [b.key[1] for b in tree.match(prompt[:5])] == ["a", "b"]


def test_missed_messages_are_counted_and_old_ones_change_nothing() -> None:
    tree = following(stored("a"))
    assert tree.missing(4) == range(1, 4)
    assert tree.apply(4, Batch(4.0, (stored("b", "a"),)))
    assert not tree.apply(2, Batch(2.0, (AllBlocksCleared(),)))
    shown = tree.layout()
    assert (shown.first_seq, shown.n_messages, shown.n_missed, len(tree)) == (0, 2, 3, 2)
    tree.restarted()
    assert tree.apply(0, Batch(9.0, (stored("n"),)))
    assert drawn(tree) == ["n"]
    assert tree.layout().n_restarts == 1


def test_any_number_of_64_bits_may_be_the_next() -> None:
    tree = following(stored("a"))
    last = (1 << 64) - 1
    assert tree.apply(last, Batch(4.0, (stored("b", "a"),)))
    assert tree.layout().n_missed == last - 1


def test_the_oldest_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BLOCKS", 3)
    shown = following(stored("abcde")).layout()
    assert [block.key[1] for block in shown.blocks] == ["c", "d", "e"]
    assert shown.n_forgotten == 2


LETTERS = "abcdefgh"
EVENTS = st.one_of(
    st.builds(stored, st.text(LETTERS, min_size=1, max_size=4), st.sampled_from([None, *LETTERS])),
    st.builds(stored, st.text(LETTERS, min_size=1, max_size=2), st.none(), st.just("CPU")),
    st.builds(removed, st.text(LETTERS, min_size=1, max_size=4), st.sampled_from(["GPU", "CPU"])),
    st.builds(AllBlocksCleared),
)


@given(st.lists(EVENTS, max_size=30))
def test_it_holds_what_a_plain_dictionary_of_tiers_holds(events: list[BlockEvent]) -> None:
    """Also where parents make circles, which no server means: those are not drawn, and cost nothing else."""
    plain: dict[str, set[str]] = {}
    for event in events:
        match event:
            case BlockStored():
                for name in event.hashes:
                    plain.setdefault(name, set()).add(event.tier)
            case BlockRemoved():
                for name in event.hashes:
                    plain.get(name, set()).discard(event.tier)
                plain = {name: tiers for name, tiers in plain.items() if tiers}
            case AllBlocksCleared():
                plain.clear()
    tree = following(*events)
    assert len(tree) == len(plain)
    shown = tree.layout()
    assert all(set(block.tiers) == plain[block.key[1]] for block in shown.blocks)
    places = set(zip(shown.row.tolist(), shown.depth.tolist(), strict=True))
    assert len(places) == len(shown.blocks), "no two blocks lie in one place"
    for i, parent in enumerate(shown.parent.tolist()):
        assert parent < 0 or (shown.depth[i] == shown.depth[parent] + 1 and parent < i)
