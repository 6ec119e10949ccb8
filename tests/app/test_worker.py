"""The engine on its thread survives errors nobody expected: the model is loaded again, what waits is carried out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.app.worker import Worker
from kvdesk.backends.local.scheduler.running import Running
from kvdesk.host import subscription
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import CacheView, ContextReady, Watch
from kvdesk.protocol.chat import EngineRestarted, Generate, LoadModel, ModelLoaded, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event, SubscriptionDropped
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling
from tests.backends.heard import ask
from tests.backends.scripted import ScriptedBackend

E = TypeVar("E", bound=Event)
TINY = ContextSettings(n_ctx=256, n_seq_max=1, n_batch=64, n_ubatch=32, n_threads=1, n_threads_batch=1)


class Heard:
    """A worker that runs, and all its events so far."""

    def __init__(self, qtbot: QtBot) -> None:
        self.worker, self.events = Worker(), list[Event]()
        self._qtbot = qtbot
        self.worker.events_ready.connect(lambda: self.events.extend(self.worker.events.take()))
        self.worker.start()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def wait_for(self, kind: type[Event], n: int = 1) -> None:
        self._qtbot.waitUntil(lambda: len(self.of(kind)) >= n, timeout=60_000)


@pytest.fixture
def heard(qtbot: QtBot) -> Iterator[Heard]:
    heard = Heard(qtbot)
    yield heard
    heard.worker.shut_down()


def generate(text: str) -> Generate:
    return ask(text, Sampling(temperature=0.0, max_tokens=8))


def test_after_the_loop_died_the_model_is_loaded_again_and_what_waited_is_answered(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, talking_file: Path
) -> None:
    step, n_steps = Running.step, 0

    def dies_at_the_third(runner: Running) -> None:
        nonlocal n_steps
        n_steps += 1
        if n_steps == 3:
            raise ZeroDivisionError("injected")
        step(runner)

    monkeypatch.setattr(Running, "step", dies_at_the_third)
    first, second = generate("Where do puffins live?"), generate("And gulls?")
    for command in (Watch(True), LoadModel(LocalFile(talking_file), TINY), first, second):
        heard.worker.host.submit(command)
    heard.wait_for(TurnEnded, 2)
    ended = {event.answer: event for event in heard.of(TurnEnded)}
    assert (ended[first.answer].state, ended[first.answer].note) == ("interrupted", "The engine stopped unexpectedly.")
    assert ended[second.answer].state == "complete"
    assert "".join(e.text for e in heard.of(TextDelta) if e.answer == second.answer)
    (restarted,) = heard.of(EngineRestarted)
    assert "your chats go on" in restarted.sentence
    assert "ZeroDivisionError: injected" in restarted.detail
    assert len(heard.of(ModelLoaded)) == len(heard.of(ContextReady)) == 2
    assert heard.of(ContextReady)[1].context == heard.of(ContextReady)[0].context
    since = heard.events.index(heard.of(ContextReady)[1])
    assert any(isinstance(e, CacheView) for e in heard.events[since:]), "whoever looked at the cache still does"


def test_one_that_is_dropped_just_after_it_was_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `SubscriptionDropped` what is known anew would be taken for more of the same."""
    monkeypatch.setattr(subscription, "MOST_BYTES", 1_000)
    worker = Worker(make_backend=lambda emit: ScriptedBackend(emit, lambda _: "word " * 50))
    taken = subscription.Subscription._take
    text = TextDelta(ConversationId("c"), MessageId("other"), "x" * 5_000, (1,))

    def take_and_drop(self: subscription.Subscription) -> list[Event]:
        events = taken(self)
        monkeypatch.setattr(subscription.Subscription, "_take", taken)
        for _ in range(subscription.MOST_EVENTS + 1):
            self.put(text, self._n_put + 1)
        assert self.dropped
        return events

    worker.start()
    try:
        worker.host.submit(LoadModel(LocalFile(Path("/models/scripted.gguf")), TINY))
        monkeypatch.setattr(subscription.Subscription, "_take", take_and_drop)
        events = worker.events.take()
        assert any(isinstance(event, SubscriptionDropped) for event in events)
    finally:
        worker.shut_down()
