"""The declarations of operations by hand: complete, and refused for their own reasons."""

from typing import get_args

import pytest

from kvdesk.message import MessageId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import TurnStarted
from kvdesk.protocol.operations import Compact, HandOperation
from kvdesk.session import Store
from kvdesk.session.operation_specs import (
    CLEAR,
    FORK,
    KEEP,
    OPERATIONS,
    REMOVE,
    SHIFT,
    SWAP_IN,
    SWAP_OUT,
    UNDO,
    VERIFY,
    Chosen,
    OperationSpec,
    alternative,
    call_of,
    refusal,
)
from kvdesk.session.state import Target
from kvdesk.values import replace
from tests.ui.samples import CONTEXT, ONE, TWO, cache_view

OWNED = Target(0, ONE, "A village", 180, 179)
NOBODYS = Target(2, None, "sequence 2", 5, 4)
SAVED = Target(-1, ONE, "A village", 0, -1, 1_000_000)


@pytest.fixture
def state() -> Store:
    state = Store()
    state.apply(ContextReady(CONTEXT, rebuilt=False))
    state.apply(cache_view())
    return state


def test_every_operation_is_declared(state: Store) -> None:
    state.apply(replace(cache_view(), undoable=(3,)))
    built = {type(spec.build(Chosen(OWNED), state)) for spec in OPERATIONS} - {type(None)}
    assert built == set(get_args(HandOperation)) - {Compact}, "the dialog makes a Compact: it has a layout"


def test_operations_have_their_own_words() -> None:
    assert len({spec.label for spec in OPERATIONS}) == len({spec.tip for spec in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize(
    ("spec", "chosen", "why"),
    [
        (REMOVE, Chosen(None), "No sequence is in the cache yet."),
        (REMOVE, Chosen(SAVED), "It is swapped out: swap it in first."),
        (REMOVE, Chosen(OWNED, 9, 9), "The range is empty: its end lies before its start."),
        (KEEP, Chosen(OWNED, 9, 9), ""),
        (FORK, Chosen(NOBODYS), "No conversation owns this sequence."),
        (SWAP_IN, Chosen(OWNED), "It is not swapped out."),
        (SWAP_IN, Chosen(SAVED), ""),
        (SHIFT, Chosen(OWNED, 4, -1, -5), "Positions cannot be below 0: shift by -4 at most."),
        (VERIFY, Chosen(OWNED), ""),
        (UNDO, Chosen(None), "There is nothing to undo."),
        (CLEAR, Chosen(None), ""),
    ],
)
def test_what_makes_no_sense_is_refused(state: Store, spec: OperationSpec, chosen: Chosen, why: str) -> None:
    assert refusal(spec, chosen, state) == why


def test_an_answer_keeps_the_cells_it_needs(state: Store) -> None:
    state.apply(TurnStarted(TWO, MessageId("a"), 1, 10, 0))
    busy = "An answer is being written; stop it first."
    assert refusal(REMOVE, Chosen(OWNED), state) == "", "another sequence"
    assert [refusal(spec, Chosen(OWNED), state) for spec in (KEEP, CLEAR)] == [busy, busy]


def test_swapping_has_one_button_and_a_fork_a_new_sequence(state: Store) -> None:
    assert alternative(SWAP_OUT, SAVED) is SWAP_IN
    assert alternative(SWAP_IN, OWNED) is SWAP_OUT
    assert alternative(FORK, SAVED) is FORK
    assert call_of(FORK, Chosen(OWNED, 0, 9), state) == "llama_memory_seq_cp(mem, 0, new, 0, 9)"
