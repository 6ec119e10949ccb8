"""Requests and jobs go on beside each other: neither waits for the other's end."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kvdesk.backends.local.llama.binding import CountdownFlag
from kvdesk.backends.local.llama.memory.decodes import DecodeKind, PendingDecode
from kvdesk.backends.local.scheduler import answer_events
from kvdesk.backends.local.scheduler.jobs import CELLS_NEEDED
from kvdesk.cache.batch import Batch
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import Message, new_message_id
from kvdesk.policies.batching import ChunkSize
from kvdesk.protocol.cache import OperationDone, RebuildContext, Refilled, Verified, VerifyConversation
from kvdesk.protocol.chat import Client, Generate, TextDelta, TurnStarted, Working
from kvdesk.protocol.messages import CommandFailed
from kvdesk.settings import Sampling
from kvdesk.values import replace
from tests.backends.heard import ask
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_checkpoints import use
from tests.backends.local.test_overflow import TOLD
from tests.backends.local.test_stop_waiting import asked, ends, step_until
from tests.backends.local.test_turns import GREEDY, LONG, held, of

LARGE = SMALL.model_copy(update={"n_ctx": 16384, "n_batch": 512, "n_ubatch": 512})


@pytest.fixture
def large(talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, LARGE)


def test_an_answer_begins_and_is_written_while_a_long_chat_is_verified(
    large: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much time goes to the answer as to the verification, which ends although the answer goes on."""
    monkeypatch.setattr(answer_events, "TELL_S", 0.0)  # every token is told
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


def asks(headless: HeadlessEngine) -> bool:
    """Whether only the last token of a verification is missing."""
    reading = headless.engine._scheduler.jobs.reading
    return reading is not None and reading.asks


def test_a_stop_beside_the_last_token_of_a_verification_lets_it_go_on(talking_file: Path) -> None:
    """In streams that follow each other it is in the first ubatch of a batch, and the stop comes in the last."""
    for headless in opened_with(talking_file, SMALL.model_copy(update={"kv_unified": False, "n_ctx": 4096})):
        chat, reader, engine, flag = HeadlessChat(headless), HeadlessChat(headless), headless.engine, CountdownFlag()
        chat.answer(LONG, GREEDY)
        reader.answer("Hi", GREEDY)
        use(headless, flag)
        n_asked = 0  # times that llama.cpp asks whether to stop, in the batch that is meant
        for stops in (False, True):
            headless.events = []
            engine.handle(VerifyConversation(chat.id))
            step_until(headless, partial(asks, headless))
            text = f"{int(stops)}. " + "Name three rivers at the sea. " * 6  # another one each time, of three ubatches
            question, answer = Message(new_message_id(), reader.id, None, "user", text), new_message_id()
            engine.handle(Generate(reader.id, answer, (*reader.messages, question), GREEDY))
            engine.step()
            flag.left = n_asked - 1 if stops else 1 << 30
            engine.step()
            n_asked, flag.left = (1 << 30) - flag.left, -1
            assert bool(of(headless.events, Verified)) is not stops
            engine.request_stop(answer)
            headless.host.run_until_idle()
            assert ends(headless)[answer].state == "stopped"
            (verified,) = of(headless.events, Verified)
            assert verified.logits.verdict.same


def test_a_stop_while_a_prompt_is_read_costs_the_answer_beside_it_nothing(
    engine: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that cannot be taken back would be lost with their common batch."""
    context, writer, reader = session_of(engine).runtime.context, asked("Hi", n_tokens=40), asked(LONG)
    decode, engine.events = context.decode, []

    def stop_and_decode(batch: Batch, kind: DecodeKind = "decode") -> PendingDecode:
        if len(batch.tokens) > len(set(batch.seq_ids)) > 1:
            engine.engine.request_stop(reader.answer)
        return decode(batch, kind)

    monkeypatch.setattr(context, "decode", stop_and_decode)
    monkeypatch.setattr(session_of(engine).loaded.model.vocab, "is_eog", lambda _: False)
    monkeypatch.setattr(ChunkSize, "chunk_took", lambda *_, **__: None)  # some tokens, along with the answer
    engine.engine.handle(writer)
    step_until(engine, lambda: bool(of(engine.events, TextDelta)))
    engine.engine.handle(reader)
    step_until(engine, lambda: not engine.engine.busy)
    assert [ends(engine)[command.answer].state for command in (reader, writer)] == ["stopped", "complete"]
    assert ends(engine)[writer.answer].stats.generated_tokens == 40
    lost = [done for done in of(engine.events, OperationDone) if done.name == "seq_rm"]
    assert writer.conversation not in [done.conversation for done in lost]


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


def test_idle_requests_give_a_seq_id_for_a_verification(headless: HeadlessEngine) -> None:
    """No chat and no branch leaves for it, and nobody could close them by hand."""
    chat = HeadlessChat(headless)
    chat.answer("Name three rivers.", GREEDY)
    for town in ("Rome", "Oslo", "Lima"):
        headless.do(replace(ask(f"What do you know about {town}?", GREEDY), client=Client("agent")))
    cache = session_of(headless).runtime.cache_manager
    assert not cache.pool.free
    (verified,) = of(headless.do(VerifyConversation(chat.id)), Verified)
    assert verified.logits.verdict.same
    assert len(list(cache.pool)) == 3
    assert cache.pool.get(chat.id).tokens


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


def test_a_question_that_needs_the_cells_ends_a_verification(narrow: HeadlessEngine) -> None:
    """It does not wait for the end of it, whose chat may be long."""
    chat, engine = HeadlessChat(narrow), narrow.engine
    chat.answer(TOLD, Sampling(temperature=0.0, max_tokens=4))
    narrow.events = []
    engine.handle(VerifyConversation(chat.id))
    step_until(narrow, partial(asks, narrow))
    answer = asked(TOLD * 4)
    engine.handle(answer)
    step_until(narrow, lambda: answer.answer in ends(narrow))
    (failed,) = of(narrow.events, CommandFailed)
    assert failed.sentence == CELLS_NEEDED
    assert ends(narrow)[answer.answer].state == "complete"


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
