"""A history put to the simulated caches: what counts as a prompt, as found, as evicted."""

from kvdesk.experiments.scenarios.history import Copied, Event, Kept, Loaded, Paused, Read, Slid, Wrote
from kvdesk.experiments.simulators.paged_cache import PagedCache
from kvdesk.experiments.simulators.radix_cache import RadixCache
from kvdesk.experiments.simulators.replay import Append, Begin, End, held, requests_of, served

SYSTEM = tuple(range(100, 110))
TWO_CHATS: tuple[Event, ...] = (
    Read(0, (*SYSTEM, 1, 2)),
    Wrote(0, (3, 4)),
    Paused(5.0),
    Copied(0, 1, 10),
    Read(1, (5, 6)),
    Wrote(1, (7,)),
    Read(0, (8, 9)),
    Wrote(0, (10,)),
    Kept(1, 0),
)


def test_a_request_ends_behind_its_last_token() -> None:
    assert list(requests_of(TWO_CHATS)) == [
        Begin(0, (*SYSTEM, 1, 2)),
        Append(0, (3, 4)),
        End(0),
        Begin(1, (*SYSTEM, 5, 6)),
        Append(1, (7,)),
        End(1),
        Begin(0, (*SYSTEM, 1, 2, 3, 4, 8, 9)),
        Append(0, (10,)),
        End(0),
    ]


def test_a_request_without_a_prompt_begins_with_all_it_holds() -> None:
    events = (Loaded(0, (1, 2, 3)), Wrote(0, (4, 5)))
    assert list(requests_of(events)) == [
        Begin(0, (1, 2, 3), loaded=True),
        End(0),
        Begin(0, (1, 2, 3, 4)),
        Append(0, (5,)),
        End(0),
    ]


def test_blocks_and_trees_find_what_they_can() -> None:
    tree = served(TWO_CHATS, RadixCache(100))
    assert (tree.n_requests, tree.n_prompt, tree.n_found) == (3, 12 + 12 + 16, 0 + 10 + 14)
    assert tree.waste == 0
    blocks = served(TWO_CHATS, PagedCache(100, 4))
    assert (blocks.n_prompt, blocks.n_found) == (40, 0 + 8 + 12)
    # 14 of 16 slots, 13 of 16, 17 of 20 when they end
    assert round(blocks.waste, 6) == round((2 / 16 + 3 / 16 + 3 / 20) / 3, 6)
    assert blocks.n_computed == 20


def test_sequences_that_stay_share_until_one_writes() -> None:
    outcome = held(TWO_CHATS, PagedCache(100, 4))
    assert (outcome.n_requests, outcome.n_prompt, outcome.n_found) == (3, 40, 0 + 10 + 14)
    assert outcome.n_copied == 2  # two of the ten shared tokens lie in a block that is not full
    assert outcome.most_slots == 28  # five blocks of the first chat, four of the second, two of them of both


def test_what_does_not_fit_is_preempted_or_refused() -> None:
    both = (Read(0, (1, 2, 3, 4)), Read(1, (5, 6, 7, 8)), Wrote(0, (9,)), Wrote(1, (10,)))
    outcome = served(both, PagedCache(8, 4))
    assert outcome.n_preempted == 1
    assert outcome.n_requests == 2
    assert served((Read(0, tuple(range(20))),), RadixCache(8)).n_refused == 1
    stay = held((*both, Read(0, (11, 12))), PagedCache(12, 4))
    assert stay.n_preempted == 2  # the first for the second's answer, the second when the first goes on


def test_a_slid_text_is_another_text() -> None:
    events = (Read(0, tuple(range(16))), Slid(0, 4, 4), Read(0, (50, 51)))
    outcome = served(events, PagedCache(100, 4))
    assert outcome.n_found == 4
    assert held(events, PagedCache(100, 4)).n_prompt == 16 + 14
