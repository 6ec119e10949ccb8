"""A context of 256 tokens that answers at the same time share: the one that finds it full has less than all of it."""

from __future__ import annotations

import pytest

from kvdesk.benchmarks.headless_chat import HeadlessChat, HeadlessEngine
from kvdesk.chat import Message, MessageId, new_message_id
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.chat import Generate, Overflowed, PrefillProgress, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import Overflow, Sampling
from tests.backends.local.test_overflow import QUESTION, SHORT, SYSTEM, TOLD, filled
from tests.backends.local.test_turns import of


def together(
    desk: HeadlessEngine, talks: list[HeadlessChat], *, questions: list[str], n_tokens: int
) -> dict[str, list[Event]]:
    """All are asked at once, and none ends by itself; returns the events of each conversation."""
    commands, events = [], []
    for talk, question in zip(talks, questions, strict=True):
        talk.add_question(question)
        sampling = Sampling(temperature=0.9, seed=7, max_tokens=n_tokens, repeat_penalty=1.2)
        commands.append(Generate(talk.id, new_message_id(), tuple(talk.messages), sampling, talk.overflow))
    vocab = desk.engine.session.loaded.model.vocab
    is_eog, vocab.is_eog = vocab.is_eog, lambda _: False  # type: ignore[method-assign]
    try:
        desk.events = []
        for command in commands:
            desk.engine.handle(command)
        while desk.engine.busy:
            desk.engine.step()
            events += desk.events
            desk.events = []
    finally:
        vocab.is_eog = is_eog  # type: ignore[method-assign]
    assert desk.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"
    return {talk.id: [e for e in events if getattr(e, "conversation", None) == talk.id] for talk in talks}


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_where_others_fill_the_cache_the_own_policy_acts(desk: HeadlessEngine, overflow: Overflow) -> None:
    """256 cells for two answers that would need about 150 each, so neither has a context that is full by itself."""
    long, short = HeadlessChat(desk, SYSTEM, overflow), HeadlessChat(desk, "You are brief.", Overflow.STOP)
    long.answer(TOLD[:97], SHORT)
    long.answer("And then?", SHORT)
    oldest = [m.id for m in long.messages][1:3]
    told = together(desk, [long, short], questions=["Go on.", QUESTION], n_tokens=90)
    events = of(told[long.id], Overflowed)
    assert {event.policy for event in events} == {overflow}
    for event in events:
        assert event.sentence.startswith("The cache, shared with other running answers, was full: ")
    gone = [name for event in events for name in event.evicted]
    assert [name for name in gone if name != long.messages[0].id][:2] == oldest, "whole exchanges, oldest first"
    assert overflow is Overflow.SINKS or long.messages[0].id not in gone
    (ended,) = of(told[long.id], TurnEnded)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 90)
    assert events[-1].sentence in ended.note
    (other,) = of(told[short.id], TurnEnded)
    assert (other.state, other.stats.generated_tokens) == ("complete", 90)


def test_where_nothing_may_leave_the_answer_ends_and_says_why(desk: HeadlessEngine) -> None:
    one, two = HeadlessChat(desk, SYSTEM, Overflow.STOP), HeadlessChat(desk, "You are brief.", Overflow.SLIDE)
    told = together(desk, [one, two], questions=[QUESTION, QUESTION], n_tokens=150)
    ends = [of(told[talk.id], TurnEnded)[0] for talk in (one, two)]
    assert sorted(end.state for end in ends) == ["complete", "stopped"], "the other has the room that is left"
    (stopped,) = [end for end in ends if end.state == "stopped"]
    (event,) = of(told[stopped.conversation], Overflowed)
    assert event.policy is Overflow.STOP
    assert event.sentence == stopped.note
    assert stopped.note.startswith("The cache, shared with other running answers, is full.")
    assert stopped.note.endswith("The answer ends here.")


def test_nothing_is_evicted_that_would_free_nothing(desk: HeadlessEngine) -> None:
    """Two answers to one question share all that is old: letting it leave one of them gives no cell."""
    talk = filled(desk, Overflow.SLIDE)
    told = together(desk, [talk, talk], questions=["Go on.", "Go on."], n_tokens=120)
    events = of(told[talk.id], Overflowed)
    assert events[0].policy is Overflow.STOP
    assert "shared with them" in events[0].sentence
    assert events[0].evicted == ()


@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_a_prompt_that_others_leave_no_room_for_while_it_is_read(
    desk: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, overflow: Overflow
) -> None:
    """It fits when it begins, but the other answer goes on meanwhile. No time is known, so chunks are of 4 tokens."""
    monkeypatch.setattr(desk.engine.session.runtime.speed_model.times, "ms", lambda *_: None)
    talk = filled(desk, overflow)
    desk.do(Forget(talk.id))
    session, other = desk.engine.session, HeadlessChat(desk, "You are brief.")
    other.add_question(QUESTION)
    endless = Sampling(temperature=0.9, seed=7, max_tokens=100, repeat_penalty=1.2)
    desk.events = []
    desk.engine.handle(Generate(other.id, new_message_id(), tuple(other.messages), endless))
    while not of(desk.events, TextDelta):
        desk.engine.step()
    free = session.runtime.context.memory.free_cells(0)
    question = QUESTION
    while len(session.runtime.chats.fit(asked := generate(talk, question)).whole.tokens) < free - 1:
        question += " Why"
    desk.engine.handle(asked)
    while not of(desk.events, Overflowed):
        desk.engine.step()
    (event,) = of(desk.events, Overflowed)
    assert (event.conversation, event.policy) == (talk.id, overflow)
    assert len([e for e in of(desk.events, PrefillProgress) if e.answer == asked.answer and e.done < e.total]) > 1
    assert asked.messages[-1].id not in event.evicted
    while desk.engine.busy:
        desk.engine.step()
    ended = {e.answer: e for e in of(desk.events, TurnEnded)}
    assert ended[asked.answer].state == "complete"
    assert all(0 <= e.done <= e.total for e in of(desk.events, PrefillProgress))
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"


def generate(talk: HeadlessChat, question: str) -> Generate:
    asked = Message(MessageId("asked"), talk.id, talk.messages[-1].id, "user", question)
    return Generate(talk.id, MessageId("answer"), (*talk.messages, asked), SHORT, talk.overflow)
