"""Requests and jobs go on beside each other: neither waits for the other's end."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, new_message_id
from kvdesk.policies.batching import ChunkSize
from kvdesk.protocol.cache import RebuildContext, Refilled, Verified, VerifyConversation
from kvdesk.protocol.chat import Generate, TextDelta, TurnStarted, Working
from kvdesk.protocol.messages import CommandFailed
from kvdesk.settings import Sampling
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_overflow import TOLD
from tests.backends.local.test_stop_waiting import asked, ends, step_until
from tests.backends.local.test_turns import GREEDY, LONG, held, of

LARGE = SMALL.model_copy(update={"n_ctx": 16384, "n_batch": 512, "n_ubatch": 512})


@pytest.fixture
def large(talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, LARGE)


def test_an_answer_begins_and_is_written_while_a_long_chat_is_verified(large: HeadlessEngine) -> None:
    """As much time goes to the answer as to the verification, which ends although the answer goes on."""
    engine, chat = large.engine, HeadlessChat(large)
    engine.session.loaded.model.vocab.ignore_eog()
    stats = chat.answer("the sea " * 2000, Sampling(temperature=0.0, max_tokens=4)).stats
    assert stats.prompt_tokens >= 4000
    large.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    assert of(large.events, Working), "it has begun"
    answer = asked("Hello", n_tokens=8000)
    engine.handle(answer)
    engine.step()
    assert of(large.events, TurnStarted), "within one step"
    verifying, writing, chunks = 0.0, 0.0, [0.0]
    while not of(large.events, Verified):
        n_told, start = len(of(large.events, Working)), time.perf_counter()
        engine.step()
        took = time.perf_counter() - start
        if len(of(large.events, Working)) > n_told:
            verifying, chunks = verifying + took, [*chunks, took]
        else:
            writing += took
    assert verifying - chunks[-1] <= 1.2 * writing + max(chunks), "after each chunk the answer has as long"
    assert sum(len(delta.tokens) for delta in of(large.events, TextDelta)) > len(chunks)
    assert answer.answer not in ends(large), "it did not wait for the answer"
    engine.request_stop(answer.answer)
    step_until(large, lambda: not engine.busy)
    (verified,) = of(large.events, Verified)
    assert verified.logits.verdict.same


def test_a_stop_of_an_answer_lets_the_job_go_on(headless: HeadlessEngine) -> None:
    chat, engine = HeadlessChat(headless), headless.engine
    chat.answer(LONG, GREEDY)
    headless.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    answer = asked("Hello", n_tokens=400)
    engine.handle(answer)
    step_until(headless, lambda: bool(of(headless.events, TextDelta)))
    assert not of(headless.events, Verified)
    engine.request_stop(answer.answer)
    step_until(headless, lambda: not engine.busy)
    assert ends(headless)[answer.answer].state == "stopped"
    assert of(headless.events, Verified)


def test_a_verification_waits_for_the_answer_in_its_conversation(headless: HeadlessEngine) -> None:
    chat, engine = HeadlessChat(headless), headless.engine
    chat.answer(LONG, GREEDY)
    said = (*chat.messages, Message(new_message_id(), chat.id, None, "user", "Go on."))
    answer = Generate(chat.id, new_message_id(), said, GREEDY)
    headless.events = []
    engine.handle(answer)
    engine.step()
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    assert answer.answer not in ends(headless)
    step_until(headless, lambda: not engine.busy)
    assert ends(headless)[answer.answer].state == "complete"
    (verified,) = of(headless.events, Verified)
    assert verified.n_tokens == len(held(headless, chat))


def test_an_answer_that_needs_the_cells_ends_a_verification(
    narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, engine = HeadlessChat(narrow), narrow.engine
    monkeypatch.setattr(engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    chat.answer(TOLD, Sampling(temperature=0.0, max_tokens=4))
    narrow.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    monkeypatch.setattr(ChunkSize, "halved", False)  # no chunk of it any more
    answer = asked("Hi", n_tokens=210)
    engine.handle(answer)
    step_until(narrow, lambda: answer.answer in ends(narrow))
    (failed,) = of(narrow.events, CommandFailed)
    assert "needed for an answer" in failed.sentence
    assert ends(narrow)[answer.answer].stats.generated_tokens == 210
    assert not engine.busy


def test_a_chat_that_is_read_again_goes_on_before_it_is_all_read(headless: HeadlessEngine) -> None:
    chats = HeadlessChat(headless), HeadlessChat(headless)
    chats[0].answer(LONG, GREEDY)
    chats[1].answer("Name three towns. " + TOLD, GREEDY)
    engine, settings = headless.engine, headless.engine.session.runtime.context.settings
    headless.events = []
    engine.handle(RebuildContext(settings, keep="tokens"))
    engine.step()
    (begun,) = engine.session.runtime.cache_manager.pool
    chat = next(chat for chat in chats if chat.id == begun.conversation)
    said = (*chat.messages, Message(new_message_id(), chat.id, None, "user", "Go on."))
    answer = Generate(chat.id, new_message_id(), said, GREEDY)
    engine.handle(answer)
    engine.step()
    assert of(headless.events, TurnStarted), "within one step"
    step_until(headless, lambda: not engine.busy)
    assert ends(headless)[answer.answer].state == "complete"
    (refilled,) = of(headless.events, Refilled)
    assert (refilled.n_conversations, refilled.n_left) == (1, 1), "its next turn read the other one"
    for chat in chats:
        held(headless, chat)


@pytest.fixture
def exact(talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, SMALL.model_copy(update={"exact": True}))


def test_with_exact_answers_no_token_comes_before_older_ones_when_a_verification_ends(exact: HeadlessEngine) -> None:
    engine, chat = exact.engine, HeadlessChat(exact)
    engine.session.loaded.model.vocab.ignore_eog()
    chat.answer(LONG, GREEDY)
    exact.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    answer = asked("Hello", n_tokens=400)
    engine.handle(answer)
    step_until(exact, lambda: bool(of(exact.events, Verified)))
    assert answer.answer not in ends(exact)
    step_until(exact, lambda: not engine.busy)
    runtime = engine.session.runtime
    cells = runtime.context.memory.snapshot().maps[0].streams[0]
    seq_id = runtime.cache_manager.pool.get(answer.conversation).seq_id
    positions = cells.pos[(cells.seq_bits[:, 0] >> seq_id) & 1 == 1]
    assert (np.diff(positions) > 0).all()
