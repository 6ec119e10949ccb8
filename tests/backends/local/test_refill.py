"""A rebuild that reads conversations again tells how far it is from the first moment, and what it has done."""

from itertools import pairwise

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.policies import prompt_piece
from kvdesk.protocol.cache import RebuildContext, Refilled, TokenTexts, VerifyConversation
from kvdesk.protocol.chat import Working
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import Operate, RemoveRange
from tests.backends.local.conftest import SMALL
from tests.backends.local.test_turns import GREEDY, LONG, of


def test_it_goes_in_pieces_and_ends_with_what_was_read(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    HeadlessChat(headless).answer(LONG, GREEDY)
    monkeypatch.setattr(prompt_piece, "LONGEST_GAP_MS", 0.001)  # as where reading is slow
    events = headless.do(RebuildContext(SMALL, keep="tokens"))
    (refilled,) = of(events, Refilled)
    told = [working for working in of(events, Working) if working.total]
    assert (told[0].done, told[0].total) == (0, refilled.n_read), "before the first batch"
    assert [b.done - a.done for a, b in pairwise(told[:-1])] == [32] * (len(told) - 2)
    assert told[-1].done == refilled.n_read
    assert (refilled.n_conversations, refilled.n_carried, refilled.n_left) == (1, 0, 0)
    assert refilled.ms > 0


def test_a_state_that_is_carried_over_is_not_read(headless: HeadlessEngine) -> None:
    HeadlessChat(headless).answer("What is a cache?", GREEDY)
    (refilled,) = of(headless.do(RebuildContext(SMALL, keep="state")), Refilled)
    assert refilled.n_read == 0
    assert refilled.n_carried > 0


def test_each_state_is_carried_over_in_a_step_of_its_own(headless: HeadlessEngine) -> None:
    for question in ("What is a cache?", "Name three towns."):
        HeadlessChat(headless).answer(question, GREEDY)
    engine = headless.engine
    headless.events = []
    engine.handle(RebuildContext(SMALL, keep="state"))
    engine.step()
    assert len(list(engine.session.runtime.cache_manager.pool)) == 1
    while engine.busy:
        engine.step()
    (refilled,) = of(headless.events, Refilled)
    assert (refilled.n_conversations, refilled.n_read, refilled.n_left) == (2, 0, 0)


def test_what_was_not_read_yet_is_read_after_the_next_rebuild(headless: HeadlessEngine) -> None:
    for question in ("What is a cache?", "Name three towns."):
        HeadlessChat(headless).answer(question, GREEDY)
    headless.events = []
    for command in (RebuildContext(SMALL, keep="state"), RebuildContext(SMALL, keep="tokens")):
        headless.engine.handle(command)
    while headless.engine.busy:
        headless.engine.step()
    (refilled,) = of(headless.events, Refilled)
    assert (refilled.n_conversations, refilled.n_carried, refilled.n_left) == (2, 0, 0)


def test_states_of_other_streams_are_read_again(headless: HeadlessEngine) -> None:
    HeadlessChat(headless).answer("What is a cache?", GREEDY)
    (refilled,) = of(
        headless.do(RebuildContext(SMALL.model_copy(update={"kv_unified": False}), keep="state")), Refilled
    )
    headless.do(RebuildContext(SMALL))
    assert (refilled.n_conversations, refilled.n_carried) == (1, 0)
    assert refilled.not_carried.startswith("Saved states do not fit into another number of streams")


def test_who_waits_for_a_job_hears_that_the_context_was_rebuilt(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer("What is a cache?", GREEDY)
    headless.events = []
    asked = [VerifyConversation(chat.id), VerifyConversation(chat.id)]
    for command in asked:
        headless.engine.handle(command)
    headless.engine.handle(RebuildContext(SMALL))
    failed = of(headless.events, CommandFailed)
    assert [f.command for f in failed] == asked
    assert {f.sentence for f in failed} == {"The context was rebuilt."}


def test_the_likeliest_tokens_of_an_operation_have_texts(headless: HeadlessEngine) -> None:
    HeadlessChat(headless).answer(LONG, GREEDY)
    events = headless.do(Operate(RemoveRange(0, 10, 60)))
    texts = {token for event in of(events, TokenTexts) for token in event.texts}
    effects = [event.effect for event in events if getattr(event, "effect", None) is not None]
    (logits,) = effects[-1].comparison.logits.values()
    assert {t for t in (logits.token_before, logits.token_after) if t >= 0} <= texts
