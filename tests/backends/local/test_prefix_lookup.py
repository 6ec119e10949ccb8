"""Who lends the beginning of a prompt: leased sequences of token ids beside a stand-in for the context."""

from types import SimpleNamespace
from typing import Any

from kvdesk.backends.local.cache_manager.prefix_lookup import PrefixLookup
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT, LeasedSequence, SequencePool
from kvdesk.message import ConversationId
from kvdesk.protocol.chat import Client


class Lookup:
    """A pool, filled by `add`, and what a prompt finds in it."""

    def __init__(self, n_stream: int = 1) -> None:
        geometry = SimpleNamespace(n_stream=n_stream, has_window=False, n_window=0, n_cells=64)
        mirror = SimpleNamespace(geometry=geometry, gone_back=lambda _seq_id: False)
        context: Any = SimpleNamespace(memory=SimpleNamespace(mirror=mirror), can=lambda _name: True, block=1)
        self.pool = SequencePool(4)
        self._prefixes = PrefixLookup(context, self.pool)

    def add(self, tokens: list[int], *, exact: int = ALL_EXACT, sharing: str = "") -> LeasedSequence:
        name = str(len(self.pool.leases()))
        sequence = self.pool.lease(ConversationId(name), client=Client(name, sharing))
        assert sequence is not None
        sequence.tokens, sequence.exact = tokens, exact
        return sequence

    def lends(self, prompt: list[int], borrower: LeasedSequence | None = None) -> tuple[int, int]:
        """(seq_id of the lender or -1, tokens)."""
        lender, n = self._prefixes.lender(borrower, prompt)
        return (-1 if lender is None else lender.seq_id), n


def test_the_longest_prefix_of_another_sequence() -> None:
    lookup = Lookup()
    own = lookup.add([1, 2, 3, 4])
    lookup.add([1, 2])
    lookup.add([1, 2, 3, 9])
    assert lookup.lends([1, 2, 3, 4], own) == (2, 3)
    assert lookup.lends([1, 2, 3, 4]) == (0, 4)
    assert lookup.lends([7]) == (-1, 0)


def test_of_several_it_is_one_that_holds_nothing_else_then_the_last_used() -> None:
    lookup = Lookup()
    first = lookup.add([1, 2, 3])
    lookup.add([1, 2, 3, 6])
    assert lookup.lends([1, 2, 3, 9]) == (0, 3)
    assert lookup.lends([1, 2, 9]) == (1, 2)
    lookup.pool.touch(first)
    assert lookup.lends([1, 2, 9]) == (0, 2)


def test_what_grows_or_is_cut_is_found_as_it_is_now() -> None:
    lookup = Lookup()
    sequence = lookup.add([1])
    sequence.tokens += [2, 3]
    assert lookup.lends([1, 2, 3]) == (0, 3)
    del sequence.tokens[2:]
    assert lookup.lends([1, 2, 3]) == (0, 2)
    lookup.pool.release(sequence)
    assert lookup.lends([1, 2, 3]) == (-1, 0)


def test_moved_tokens_and_other_programs_prefixes_are_not_lent() -> None:
    lookup = Lookup()
    lookup.add([1, 2, 3], exact=2)
    lookup.add([1, 2, 3, 4], sharing="another")
    assert lookup.lends([1, 2, 3, 4]) == (0, 2)


def test_a_stream_is_lent_whole_or_not_at_all() -> None:
    lookup = Lookup(n_stream=4)
    lookup.add([1, 2, 3, 4])
    lookup.add([1, 2])
    lookup.add([1, 2, 3], exact=2)
    assert lookup.lends([1, 2, 3, 9]) == (1, 2)
