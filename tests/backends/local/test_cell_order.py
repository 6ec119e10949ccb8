"""Exact answers: the cells of a sequence are in the order of its positions, whatever left the cache before."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kvdesk.headless import HeadlessEngine
from kvdesk.message import Message, new_conversation_id, new_message_id
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.chat import Client, Generate, TextDelta, TurnEnded
from kvdesk.settings import Sampling
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_turns import of

SAMPLING = Sampling(temperature=0.0, max_tokens=24)
ASKED = "Explain rain."


@pytest.fixture(scope="module", params=[True, False], ids=["exact", "as fast as possible"])
def engine(request: pytest.FixtureRequest, talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, SMALL.model_copy(update={"exact": request.param}))


def answer(engine: HeadlessEngine, text: str) -> tuple[str, bool, int]:
    """Text of the answer to another program, whether all cells of its sequence are in order, and how often cells were
    moved for that.
    """
    conversation = new_conversation_id()
    question = Message(new_message_id(), conversation, None, "user", text)
    command = Generate(conversation, new_message_id(), (question,), SAMPLING, client=Client("editor"))
    engine.events.clear()
    engine.engine.handle(command)
    in_order = True
    while engine.engine.busy:
        engine.engine.step()
        session = engine.engine.session
        memory = session.runtime.context.memory
        memory.settle()
        cells = memory.mirror.caches[0].streams[0]
        for sequence in session.runtime.cache_manager.pool:
            if sequence.busy:
                held = np.flatnonzero(cells.bits & np.uint64(1 << sequence.seq_id))
                in_order = in_order and bool((np.diff(cells.pos[held]) > 0).all())
    (ended,) = of(engine.events, TurnEnded)
    assert ended.state == "complete"
    moved = [done for done in of(engine.events, OperationDone) if done.name == "compact"]
    return "".join(delta.text for delta in of(engine.events, TextDelta)), in_order, len(moved)


def test_no_token_comes_before_an_older_one(engine: HeadlessEngine) -> None:
    session = engine.engine.session
    is_exact = session.runtime.context.settings.exact
    first, *_ = answer(engine, ASKED)
    orders, n_moved = [], 0
    for number in range(6):
        _, in_order, moved = answer(engine, f"Tell me about number {number} and what it means. " * (1 + number % 3))
        text, again, moved_again = answer(engine, ASKED)
        orders += [in_order, again]
        n_moved += moved + moved_again
        if is_exact:
            assert text == first
    assert all(orders) or not is_exact
    assert (n_moved > 0) == is_exact, "holes were there, and were closed where that counts"
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"
