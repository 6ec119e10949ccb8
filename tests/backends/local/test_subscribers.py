"""Whoever begins in the middle of an answer knows what the others know: model, context, cache, and the text so far."""

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.host.subscription import Subscription
from kvdesk.protocol.cache import CacheView, ContextReady, MemoryLedger, MessageSpans, TokenTexts, Watch
from kvdesk.protocol.chat import BackendReady, ModelLoaded, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.features import OF_ENGINE
from kvdesk.protocol.messages import Event
from kvdesk.settings import Sampling
from tests.backends.local.test_turns import of


def nothing() -> None:
    """It looks when it likes."""


def test_who_begins_in_the_middle_of_an_answer_has_all_of_it(headless: HeadlessEngine) -> None:
    chat, late = HeadlessChat(headless), list[Subscription]()

    def begin_at_the_second(event: Event) -> None:
        if isinstance(event, TextDelta) and len(of(headless.events, TextDelta)) == 2:
            late.append(headless.host.subscribe(nothing, known=True))

    headless.do(Watch(True))
    headless._on_event = begin_at_the_second
    chat.answer("Where do puffins live?", Sampling(temperature=0.0, max_tokens=24))
    headless.do(Watch(False))
    events = late[0].take()
    first = [type(event) for event in events[: events.index(of(events, TextDelta)[0]) + 1]]
    assert first[:5] == [BackendReady, ModelLoaded, ContextReady, MemoryLedger, TokenTexts]
    assert first[-2:] == [TurnStarted, TextDelta]
    assert CacheView in first
    assert {spans.conversation for spans in of(events, MessageSpans)} >= {chat.id}
    assert of(events, BackendReady)[0].features == OF_ENGINE
    answer = chat.messages[-1]
    assert "".join(event.text for event in of(events, TextDelta)) == answer.text
    assert tuple(token for event in of(events, TextDelta) for token in event.tokens) == answer.tokens
    assert len(of(events, TurnEnded)) == 1
    late[0].close()
