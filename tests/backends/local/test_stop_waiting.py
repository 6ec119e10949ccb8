"""A stop ends an answer that waits at once, whatever it waits for: room, a job, a load, or those before it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.scheduler import answer_events
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import MessageId
from kvdesk.protocol.cache import Forget, RebuildContext, VerifyConversation
from kvdesk.protocol.chat import Generate, LoadModel, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import Sampling
from tests.backends.heard import ask
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_overflow import TOLD
from tests.backends.local.test_turns import GREEDY, LONG, of

UNBEGUN = "Stopped before it began."
TOO_LONG_BESIDE = "Now this. " + TOLD * 4  # it fits into 256 cells, but not beside another answer


def asked(text: str, n_tokens: int = 8) -> Generate:
    return ask(text, Sampling(temperature=0.0, max_tokens=n_tokens))


def ends(headless: HeadlessEngine) -> dict[MessageId, TurnEnded]:
    return {event.answer: event for event in of(headless.events, TurnEnded)}


@pytest.fixture
def writing(narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Generate]:
    """An answer that has begun to be written in 256 cells, and does not end by itself."""
    monkeypatch.setattr(answer_events, "TELL_S", 0.0)  # every token is told
    monkeypatch.setattr(narrow.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    writer = asked(TOLD, n_tokens=120)
    narrow.events = []
    narrow.engine.handle(writer)
    step_until(narrow, lambda: bool(of(narrow.events, TextDelta)))
    yield writer
    narrow.engine.request_stop(writer.answer)
    step_until(narrow, lambda: not narrow.engine.busy)


def step_until(headless: HeadlessEngine, reached: Callable[[], bool]) -> None:
    for _ in range(500):
        if reached():
            return
        headless.engine.step()
    pytest.fail("it did not come to that")


def test_the_first_that_found_no_room_is_stopped_and_the_next_begins(narrow: HeadlessEngine, writing: Generate) -> None:
    engine, long, short = narrow.engine, asked(TOO_LONG_BESIDE), asked("Hi")
    engine.handle(long)
    engine.handle(short)
    step_until(narrow, lambda: engine._scheduler._blocked)
    engine.request_stop(long.answer)
    step_until(narrow, lambda: long.answer in ends(narrow))
    assert (ends(narrow)[long.answer].state, ends(narrow)[long.answer].note) == ("stopped", UNBEGUN)
    step_until(narrow, lambda: short.answer in ends(narrow))
    assert ends(narrow)[short.answer].state == "complete"
    assert writing.answer not in ends(narrow), "neither waited for it"


def test_one_behind_the_first_is_stopped_and_the_first_waits_on(narrow: HeadlessEngine, writing: Generate) -> None:
    engine, long, short = narrow.engine, asked(TOO_LONG_BESIDE), asked("Hi")
    engine.handle(long)
    engine.handle(short)
    step_until(narrow, lambda: engine._scheduler._blocked)
    engine.request_stop(short.answer)
    engine.step()
    assert ends(narrow)[short.answer].state == "stopped"
    assert engine._scheduler._blocked, "there is no more room than before"
    assert not {long.answer, writing.answer} & set(ends(narrow))
    engine.request_stop(long.answer)


def test_an_answer_that_waits_evicts_nobody_in_vain(narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    idle, engine, writer, long = HeadlessChat(narrow), narrow.engine, asked(TOLD, n_tokens=60), asked(TOO_LONG_BESIDE)
    idle.answer("Hi", Sampling(temperature=0.0, max_tokens=4))
    held = session_of(narrow).runtime.cache_manager.pool.get(idle.id)
    narrow.events = []
    engine.handle(writer)
    step_until(narrow, lambda: bool(of(narrow.events, TextDelta)))
    engine.handle(long)
    step_until(narrow, lambda: engine._scheduler._blocked)
    assert held.tokens, "without its cells there is too little room, too"
    step_until(narrow, lambda: not engine.busy)
    assert [ends(narrow)[command.answer].state for command in (writer, long)] == ["complete"] * 2


def test_one_that_found_no_room_is_tried_again_when_a_chat_is_forgotten(
    narrow: HeadlessEngine, writing: Generate
) -> None:
    """Another answer goes on meanwhile, which leaves room enough."""
    engine, other, long = narrow.engine, asked("Hi", n_tokens=30), asked("Now this. " + TOLD * 3 + TOLD[:130])
    engine.handle(other)
    step_until(narrow, lambda: any(delta.answer == other.answer for delta in of(narrow.events, TextDelta)))
    engine.handle(long)
    step_until(narrow, lambda: engine._scheduler._blocked)
    engine.handle(Forget(writing.conversation))
    step_until(narrow, lambda: any(event.answer == long.answer for event in of(narrow.events, TurnStarted)))
    assert other.answer not in ends(narrow)
    step_until(narrow, lambda: not engine.busy)
    assert ends(narrow)[long.answer].state == "complete"


def test_one_that_found_no_room_before_a_rebuild_delays_none_after_it(
    narrow: HeadlessEngine, writing: Generate
) -> None:
    """Chats are read again for a while: an answer need not wait for the end of that."""
    engine, long, context = narrow.engine, asked(TOO_LONG_BESIDE), session_of(narrow).runtime.context.settings
    engine.handle(long)
    step_until(narrow, lambda: engine._scheduler._blocked)
    engine.handle(RebuildContext(context, keep="tokens"))
    assert {long.answer, writing.answer} <= set(ends(narrow))
    assert engine.busy, "the chat is read again"
    command = asked("Hi")
    engine.handle(command)
    engine.step()
    assert any(event.answer == command.answer for event in of(narrow.events, TurnStarted))
    step_until(narrow, lambda: not engine.busy)


def test_one_behind_a_job_is_stopped(headless: HeadlessEngine) -> None:
    chat, engine = HeadlessChat(headless), headless.engine
    chat.answer(LONG, GREEDY)
    headless.events = []
    engine.handle(VerifyConversation(chat.id))
    engine.step()
    command = asked("Hello")
    engine.handle(command)
    engine.request_stop(command.answer)
    engine.step()
    assert ends(headless)[command.answer].note == UNBEGUN
    assert engine.busy, "the job goes on"
    step_until(headless, lambda: not engine.busy)
    assert not of(headless.events, TurnStarted)


def test_one_that_waits_is_stopped_while_a_model_is_loaded(talking_file: Path) -> None:
    for headless in opened_with(talking_file, SMALL):
        headless.events = []
        command = asked("Hello")
        headless.engine.handle(command)
        headless.engine.request_stop(command.answer)
        headless.engine.handle(LoadModel(LocalFile(talking_file), SMALL))
        assert ends(headless)[command.answer].note == UNBEGUN


def test_a_stop_between_two_decodes_ends_the_answer(
    narrow: HeadlessEngine, writing: Generate, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Cache.decode

    def stopped_after(cache: Cache, parts: Any, kind: Any) -> Any:
        done = decode(cache, parts, kind)
        narrow.engine.request_stop(writing.answer)
        return done

    monkeypatch.setattr(Cache, "decode", stopped_after)
    step_until(narrow, lambda: writing.answer in ends(narrow))
    assert ends(narrow)[writing.answer].state == "stopped"
