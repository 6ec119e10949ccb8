"""The declarations of operations by hand: complete, and refused for their own reasons."""

from typing import get_args

import pytest

from kvdesk.message import MessageId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import TurnStarted
from kvdesk.protocol.operations import Compact, HandOperation
from kvdesk.session import Store
from kvdesk.session import operation_specs as specs
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
    built = {type(spec.build(specs.Chosen(OWNED), state)) for spec in specs.OPERATIONS} - {type(None)}
    assert built == set(get_args(HandOperation)) - {Compact}, "the dialog makes a Compact: it has a layout"


def test_operations_have_their_own_words() -> None:
    assert (
        len({spec.label for spec in specs.OPERATIONS})
        == len({spec.tip for spec in specs.OPERATIONS})
        == len(specs.OPERATIONS)
    )


@pytest.mark.parametrize(
    ("spec", "chosen", "why"),
    [
        (specs.REMOVE, specs.Chosen(None), "No sequence is in the cache yet."),
        (specs.REMOVE, specs.Chosen(SAVED), "It is swapped out: swap it in first."),
        (specs.REMOVE, specs.Chosen(OWNED, 9, 9), "The range is empty: its end lies before its start."),
        (specs.KEEP, specs.Chosen(OWNED, 9, 9), ""),
        (specs.FORK, specs.Chosen(NOBODYS), "No conversation owns this sequence."),
        (specs.SWAP_IN, specs.Chosen(OWNED), "It is not swapped out."),
        (specs.SWAP_IN, specs.Chosen(SAVED), ""),
        (specs.SHIFT, specs.Chosen(OWNED, 4, -1, -5), "Positions cannot be below 0: shift by -4 at most."),
        (specs.VERIFY, specs.Chosen(OWNED), ""),
        (specs.UNDO, specs.Chosen(None), "There is nothing to undo."),
        (specs.CLEAR, specs.Chosen(None), ""),
    ],
)
def test_what_makes_no_sense_is_refused(
    state: Store, spec: specs.OperationSpec, chosen: specs.Chosen, why: str
) -> None:
    assert specs.refusal(spec, chosen, state) == why


def test_an_answer_keeps_the_cells_it_needs(state: Store) -> None:
    state.apply(TurnStarted(TWO, MessageId("a"), 1, 10, 0))
    busy = "An answer is being written; stop it first."
    assert specs.refusal(specs.REMOVE, specs.Chosen(OWNED), state) == "", "another sequence"
    assert [specs.refusal(spec, specs.Chosen(OWNED), state) for spec in (specs.KEEP, specs.CLEAR)] == [busy, busy]


def test_swapping_has_one_button_and_a_fork_a_new_sequence(state: Store) -> None:
    assert specs.alternative(specs.SWAP_OUT, SAVED) is specs.SWAP_IN
    assert specs.alternative(specs.SWAP_IN, OWNED) is specs.SWAP_OUT
    assert specs.alternative(specs.FORK, SAVED) is specs.FORK
    assert specs.call_of(specs.FORK, specs.Chosen(OWNED, 0, 9), state) == "llama_memory_seq_cp(mem, 0, new, 0, 9)"
