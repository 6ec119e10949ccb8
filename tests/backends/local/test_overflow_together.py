"""A context of 256 tokens that answers at the same time share: the one that finds it full has less than all of it."""

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, MessageId, new_message_id
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.chat import Generate, Overflowed, PrefillProgress, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import Overflow, Sampling
from tests.backends.local.test_overflow import QUESTION, SHORT, SYSTEM, TOLD, filled
from tests.backends.local.test_turns import of


def together(
    headless: HeadlessEngine, chats: list[HeadlessChat], *, questions: list[str], n_tokens: list[int]
) -> dict[str, list[Event]]:
    """All are asked at once, and none ends by itself; returns the events of each conversation."""
    commands, events = [], []
    for chat, question, n in zip(chats, questions, n_tokens, strict=True):
        chat.add_question(question)
        sampling = Sampling(temperature=0.9, seed=7, max_tokens=n, repeat_penalty=1.2)
        commands.append(Generate(chat.id, new_message_id(), tuple(chat.messages), sampling, chat.overflow))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headless.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
        headless.events = []
        for command in commands:
            headless.engine.handle(command)
        while headless.engine.busy:
            headless.engine.step()
            events += headless.events
            headless.events = []
    assert headless.engine.session.runtime.context.auditor.audit(whole=True).state == "verified"
    return {chat.id: [e for e in events if getattr(e, "conversation", None) == chat.id] for chat in chats}


@pytest.mark.parametrize("opened", ["tiny"], indirect=True)  # with another speed one may end before the cache is full
@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_where_others_fill_the_cache_the_own_policy_acts(narrow: HeadlessEngine, overflow: Overflow) -> None:
    """256 cells for two answers that would need about 150 each, so neither has a context that is full by itself."""
    long, short = HeadlessChat(narrow, SYSTEM, overflow), HeadlessChat(narrow, "You are brief.", Overflow.STOP)
    long.answer(TOLD[:98], SHORT)
    long.answer("And then?", SHORT)
    oldest = [m.id for m in long.messages][1:3]
    told = together(narrow, [long, short], questions=["Go on.", QUESTION], n_tokens=[90, 70])
    events = of(told[long.id], Overflowed)
    assert {event.policy for event in events} == {overflow}
    for event in events:
        assert event.sentence.startswith("The cache, shared with other running answers, was full: ")
    evicted = [name for event in events for name in event.evicted]
    assert [name for name in evicted if name != long.messages[0].id][:2] == oldest, "whole exchanges, oldest first"
    assert overflow is Overflow.SINKS or long.messages[0].id not in evicted
    (ended,) = of(told[long.id], TurnEnded)
    assert (ended.state, ended.stats.generated_tokens) == ("complete", 90)
    assert events[-1].sentence in ended.note
    (other,) = of(told[short.id], TurnEnded)
    assert (other.state, other.stats.generated_tokens) == ("complete", 70), "it ends before the cache is full again"


def test_prompts_for_which_there_is_no_room_together_are_read_one_after_the_other(narrow: HeadlessEngine) -> None:
    """Each fits into 256 cells: both are answered, though the second comes before the first has taken its cells."""
    one, two = HeadlessChat(narrow, SYSTEM), HeadlessChat(narrow, "Be brief.")
    told = together(narrow, [one, two], questions=[TOLD * 3, "Now this. " + TOLD * 3], n_tokens=[40, 40])
    ends = [of(told[chat.id], TurnEnded)[0] for chat in (one, two)]
    assert [(end.state, end.stats.generated_tokens) for end in ends] == [("complete", 40)] * 2
    assert min(end.stats.prompt_tokens for end in ends) > 128


def test_where_nothing_may_leave_the_answer_ends_and_says_why(narrow: HeadlessEngine) -> None:
    one, two = HeadlessChat(narrow, SYSTEM, Overflow.STOP), HeadlessChat(narrow, "You are brief.", Overflow.SLIDE)
    told = together(narrow, [one, two], questions=[QUESTION, QUESTION], n_tokens=[150, 150])
    ends = [of(told[chat.id], TurnEnded)[0] for chat in (one, two)]
    assert sorted(end.state for end in ends) == ["complete", "stopped"], "the other has the room that is left"
    (stopped,) = [end for end in ends if end.state == "stopped"]
    (event,) = of(told[stopped.conversation], Overflowed)
    assert event.policy is Overflow.STOP
    assert event.sentence == stopped.note
    assert stopped.note.startswith("The cache, shared with other running answers, is full.")
    assert stopped.note.endswith("The answer ends here.")


def test_nothing_is_evicted_that_would_free_nothing(narrow: HeadlessEngine) -> None:
    """Two answers to one question share all that is old: letting it leave one of them gives no cell."""
    chat = filled(narrow, Overflow.SLIDE)
    told = together(narrow, [chat, chat], questions=["Go on.", "Go on."], n_tokens=[120, 120])
    events = of(told[chat.id], Overflowed)
    assert events[0].policy is Overflow.STOP
    assert "shared with them" in events[0].sentence
    assert events[0].evicted == ()


@pytest.mark.parametrize("opened", ["tiny"], indirect=True)  # with another speed the other answer may be the first
@pytest.mark.parametrize("overflow", [Overflow.SLIDE, Overflow.RECOMPUTE, Overflow.SINKS])
def test_a_prompt_that_others_leave_no_room_for_while_it_is_read(narrow: HeadlessEngine, overflow: Overflow) -> None:
    """It fits when it begins, but the other answer goes on meanwhile: a prompt is read in chunks of 16 tokens."""
    chat = filled(narrow, overflow)
    narrow.do(Forget(chat.id))
    session, other = narrow.engine.session, HeadlessChat(narrow, "You are brief.")
    other.add_question(QUESTION)
    endless = Sampling(temperature=0.9, seed=7, max_tokens=100, repeat_penalty=1.2)
    narrow.events = []
    narrow.engine.handle(Generate(other.id, new_message_id(), tuple(other.messages), endless))
    while not of(narrow.events, TextDelta):
        narrow.engine.step()
    free = session.runtime.context.memory.free_cells(0)
    question = QUESTION
    while len(session.runtime.chats.fit(asked := generate(chat, question)).whole.tokens) < free - 1:
        question += " Why"
    narrow.engine.handle(asked)
    while not of(narrow.events, Overflowed):
        narrow.engine.step()
    (event,) = of(narrow.events, Overflowed)
    assert (event.conversation, event.policy) == (chat.id, overflow)
    assert len([e for e in of(narrow.events, PrefillProgress) if e.answer == asked.answer and e.done < e.total]) > 1
    assert asked.messages[-1].id not in event.evicted
    narrow.host.run_until_idle()
    ended = {e.answer: e for e in of(narrow.events, TurnEnded)}
    assert ended[asked.answer].state == "complete"
    assert all(0 <= e.done <= e.total for e in of(narrow.events, PrefillProgress))
    assert session.runtime.context.auditor.audit(whole=True).state == "verified"


def generate(chat: HeadlessChat, question: str) -> Generate:
    asked = Message(MessageId("asked"), chat.id, chat.messages[-1].id, "user", question)
    return Generate(chat.id, MessageId("answer"), (*chat.messages, asked), SHORT, chat.overflow)
