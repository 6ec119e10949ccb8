"""Subscribers at different paces, each with all that concerns it; and the loop, on this thread and on another."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from kvdesk.backends.base import Emit
from kvdesk.host import known, subscription
from kvdesk.host.host import MOST_DEATHS, Host
from kvdesk.host.joining import join
from kvdesk.host.subscription import MOST_EVENTS, Subscription
from kvdesk.message import MessageId, new_conversation_id
from kvdesk.protocol import chat
from kvdesk.protocol.cache import AuditCache, Forget, LoadSample, OperationDone, Watch
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event, SubscriptionDropped
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings
from tests.backends.heard import ask
from tests.backends.scripted import ScriptedBackend

E = TypeVar("E", bound=Event)
MODEL = chat.LoadModel(LocalFile(Path("/models/scripted.gguf")), ContextSettings())


def of(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def text_of(events: Sequence[Event], command: chat.Generate) -> str:
    """As whoever keeps conversations puts it together: what was dropped begins anew."""
    text = ""
    for event in events:
        if isinstance(event, SubscriptionDropped):
            text = ""
        elif isinstance(event, chat.TextDelta) and event.answer == command.answer:
            text += event.text
    return text


class Stepped:
    """A host that makes one step at a time, so that a test can do something in the middle of an answer."""

    def __init__(self, answer: Callable[[str], str] | None = None) -> None:
        self.backend: ScriptedBackend | None = None
        self._answer = answer
        self.host = Host(self._make)
        self.host.submit(MODEL)
        self.host.run_until_idle()

    def _make(self, emit: Emit) -> ScriptedBackend:
        self.backend = ScriptedBackend(emit, self._answer) if self._answer else ScriptedBackend(emit)
        return self.backend

    def begin(self, command: chat.Generate, n_words: int) -> None:
        self.backend.handle(command)
        for _ in range(n_words):
            self.backend.step()


@pytest.fixture
def stepped() -> Stepped:
    return Stepped()


def nothing() -> None:
    """A subscriber that looks when it likes."""


def test_subscribers_at_different_paces_get_the_same_and_take_nothing_from_each_other(stepped: Stepped) -> None:
    host = stepped.host
    at_once: list[Event] = []
    eager = host.subscribe(lambda: at_once.extend(eager.take()))
    lazy = host.subscribe(nothing)
    first, second = ask("one two three"), ask("four five six seven")
    for command in (first, second):
        host.submit(command)
    host.run_until_idle()
    assert text_of(at_once, first) == "You said: one two three"
    assert len(of(at_once, chat.TextDelta)) == 5 + 6, "a word each: as they were"
    assert lazy.take() == at_once
    assert lazy.take() == eager.take() == []


def test_a_back_end_gets_no_command_of_a_feature_it_has_not(stepped: Stepped) -> None:
    """Questions that nobody waits for are passed over; what a person asked for is answered in one sentence."""
    heard = stepped.host.subscribe(nothing)
    for command in (Watch(True), Forget(new_conversation_id()), AuditCache()):
        stepped.host.submit(command)
    stepped.host.run_until_idle()
    assert [(type(e.command), e.sentence) for e in of(heard.take(), CommandFailed)] == [
        (Forget, MISSING[Feature.CACHE_OPERATIONS]),
        (AuditCache, MISSING[Feature.AUDIT]),
    ]
    assert stepped.backend.handled == [MODEL]


class Growing(ScriptedBackend):
    """With its second model it shows cells, with its third no more: as a server that is given another key."""

    features = frozenset({Feature.CHAT})

    def handle(self, command: Command, at_s: float | None = None) -> None:
        if isinstance(command, chat.LoadModel):
            shows = sum(isinstance(one, chat.LoadModel) for one in self.handled) == 1
            self.features = frozenset({Feature.CHAT, Feature.CACHE_VIEW} if shows else {Feature.CHAT})
        super().handle(command, at_s)


def test_features_that_change_are_told_before_what_comes_with_them() -> None:
    host = Host(Growing)
    heard, late = host.subscribe(nothing), list[Event]()
    for _ in range(4):
        host.submit(MODEL)
        host.run_until_idle()
        late.append(host.subscribe(nothing, known=True).take()[0])
    chats, cells = (
        chat.BackendReady(frozenset({Feature.CHAT})),
        chat.BackendReady(frozenset({Feature.CHAT, Feature.CACHE_VIEW})),
    )
    told = [event if isinstance(event, chat.BackendReady) else type(event) for event in heard.take()]
    assert told == [chats, chat.ModelLoaded, cells, chat.ModelLoaded, chats, chat.ModelLoaded, chat.ModelLoaded]
    assert late == [chats, cells, chats, chats]


def test_it_is_told_once_until_the_events_are_taken(stepped: Stepped) -> None:
    told: list[int] = []
    subscribed = stepped.host.subscribe(lambda: told.append(1))
    stepped.begin(ask("a b c"), 2)
    assert len(told) == 1
    assert len(subscribed.take()) == 3
    stepped.backend.step()
    assert len(told) == 2


def test_a_subscriber_that_fails_costs_the_others_nothing_and_is_asked_again(
    stepped: Stepped, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def fails_at_first() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise ZeroDivisionError("injected")

    failing, other = stepped.host.subscribe(fails_at_first), stepped.host.subscribe(nothing)
    command = ask("a b c d")
    stepped.host.submit(command)
    stepped.host.run_until_idle()
    assert text_of(other.take(), command) == text_of(failing.take(), command) == "You said: a b c d"
    assert len(calls) == 3, "until it did not fail"
    assert caplog.text.count("a subscriber failed") == 1


def test_text_is_joined_for_a_slow_subscriber_and_what_ends_something_stays() -> None:
    words = " ".join(f"w{n}" for n in range(3 * MOST_EVENTS))
    stepped = Stepped(lambda _: words)
    slow = stepped.host.subscribe(nothing)
    first, second = ask("x"), ask("y")
    for command in (first, second):
        stepped.host.submit(command)
    stepped.host.run_until_idle()
    events = slow.take()
    assert len(events) < MOST_EVENTS + 10
    for command in (first, second):
        assert text_of(events, command) == words
        ended = next(i for i, e in enumerate(events) if isinstance(e, chat.TurnEnded) and e.answer == command.answer)
        last = max(i for i, e in enumerate(events) if isinstance(e, chat.TextDelta) and e.answer == command.answer)
        assert last < ended
        tokens = [t for e in of(events, chat.TextDelta) if e.answer == command.answer for t in e.tokens]
        assert tokens == list(range(3 * MOST_EVENTS))


def test_of_views_and_samples_the_latest_stays_in_its_place() -> None:
    a, b = ask("a"), ask("b")

    def delta(command: chat.Generate, text: str) -> chat.TextDelta:
        return chat.TextDelta(command.conversation, command.answer, text, (1,))

    def read(command: chat.Generate, done: int) -> chat.PrefillProgress:
        return chat.PrefillProgress(command.conversation, command.answer, done, 9, 1.0)

    done, failed = OperationDone(1, 1.0, "seq_rm", "", 0.1), CommandFailed(a, "No.")
    events: list[Event] = [
        *(LoadSample(1.0, 1.0, 0.0, 1), read(a, 3), read(b, 4), delta(a, "x"), done),
        *(read(a, 9), delta(b, "z"), failed, LoadSample(2.0, 1.0, 0.0, 1), delta(a, "y"), done, chat.Working("", 0, 0)),
    ]
    assert join(events) == [
        *(read(b, 4), chat.TextDelta(a.conversation, a.answer, "xy", (1, 1)), done),
        *(read(a, 9), delta(b, "z"), failed, LoadSample(2.0, 1.0, 0.0, 1), done, chat.Working("", 0, 0)),
    ]
    assert join(join(events)) == join(events)


def test_who_begins_in_the_middle_is_told_what_is_known(stepped: Stepped) -> None:
    before, running = ask("one two"), ask("three four five")
    stepped.host.submit(before)
    stepped.host.run_until_idle()
    stepped.begin(running, 3)
    from_now_on, with_all = stepped.host.subscribe(nothing), stepped.host.subscribe(nothing, known=True)
    assert from_now_on.take() == []
    ready, model, started, text = with_all.take()
    assert ready == chat.BackendReady(frozenset({Feature.CHAT}))
    assert isinstance(model, chat.ModelLoaded)
    assert isinstance(started, chat.TurnStarted)
    assert text == chat.TextDelta(running.conversation, running.answer, "You said: three", (0, 1, 2))
    stepped.host.run_until_idle()
    assert text_of([text, *with_all.take()], running) == "You said: three four five"


@pytest.mark.parametrize("n_words", [1, 4, 7])
def test_who_was_dropped_begins_anew_and_has_the_same_text(monkeypatch: pytest.MonkeyPatch, n_words: int) -> None:
    """In the middle of an answer; `n_words` of seven were taken before. Another one began and ended meanwhile."""
    monkeypatch.setattr(subscription, "MOST_BYTES", 1 << 16)
    stepped = Stepped()
    other = stepped.host.subscribe(nothing)
    slow = stepped.host.subscribe(nothing)
    running, meanwhile, later = ask("a b c d e"), ask("short"), ask("still there?")
    stepped.begin(running, n_words)
    events = slow.take()
    for _ in range(3 * MOST_EVENTS):
        stepped.host._emit(chat.LogLine("info", "what nobody reads"))
    assert slow.dropped
    stepped.host.submit(meanwhile)
    stepped.host.run_until_idle()
    dropped = slow.take()
    assert [type(event) for event in dropped].count(SubscriptionDropped) == 1
    assert isinstance(dropped[0], SubscriptionDropped)
    stepped.host.submit(later)
    stepped.host.run_until_idle()
    events += [*dropped, *slow.take()]
    for command, text in ((running, "a b c d e"), (meanwhile, "short"), (later, "still there?")):
        assert text_of(events, command) == f"You said: {text}"
        assert len([e for e in of(events, chat.TurnEnded) if e.answer == command.answer]) == 1
    other_events = other.take()
    assert any(isinstance(event, SubscriptionDropped) for event in other_events), "it read nothing at all"
    assert slow.take() == []


def test_a_subscription_that_is_closed_gets_nothing(stepped: Stepped) -> None:
    closed = stepped.host.subscribe(nothing)
    closed.close()
    stepped.host.submit(ask("hello"))
    stepped.host.run_until_idle()
    assert closed.take() == []
    assert stepped.host._subscriptions == ()


def test_of_conversations_only_the_last_are_remembered(stepped: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvdesk.chat import NONE_EVICTED
    from kvdesk.protocol.chat import MessagesEvicted

    monkeypatch.setattr(known, "MOST_CONVERSATIONS", 2)
    told = [MessagesEvicted(new_conversation_id(), NONE_EVICTED) for _ in range(3)]
    for event in told:
        stepped.host._emit(event)
    assert stepped.host.subscribe(nothing, known=True).take()[2:] == told[1:]


class DiesOnce(ScriptedBackend):
    """Dies when it has said the first word of an answer to "die"."""

    def step(self) -> None:
        dies = bool(self._turns) and self._turns[0][3] == 1 and self._turns[0][0].messages[-1].text == "die"
        if dies:
            raise ZeroDivisionError("injected")
        super().step()


class Forgets(ScriptedBackend):
    """Knows nothing of a stop for an answer that it has not, as any back end may."""

    def request_stop(self, answer: MessageId) -> None:
        if any(command.answer == answer for command, *_ in self._turns):
            super().request_stop(answer)


def test_a_stop_reaches_an_answer_whose_command_still_waits_and_none_that_is_asked_later() -> None:
    host = Host(Forgets)
    heard = host.subscribe(nothing)
    command = ask("How are you?")
    states = []
    for waits in (False, True, False):
        host.submit(command)
        if waits:
            host.stop(command.answer)
        host.run_until_idle()
        states += [event.state for event in of(heard.take(), chat.TurnEnded)]
        host.stop(command.answer)  # too late
    assert states == ["complete", "stopped", "complete"]
    assert not host._asked


def test_after_a_death_another_back_end_goes_on() -> None:
    made: list[ScriptedBackend] = []

    def make(emit: Emit) -> ScriptedBackend:
        made.append(DiesOnce(emit))
        return made[-1]

    host = Host(make)
    heard = host.subscribe(nothing)
    dies, lives = ask("die"), ask("live")
    for command in (MODEL, dies):
        host.submit(command)
    host.run_until_idle()
    host.submit(lives)
    host.run_until_idle()
    events = heard.take()
    assert len(made) == 2
    assert made[1].handled == [MODEL, lives], "the model is loaded again"
    assert {e.answer: e.state for e in of(events, chat.TurnEnded)} == {
        dies.answer: "interrupted",
        lives.answer: "complete",
    }
    assert text_of(events, dies) == "You"
    (restarted,) = of(events, chat.EngineRestarted)
    assert "ZeroDivisionError: injected" in restarted.detail
    assert len(of(host.subscribe(nothing, known=True).take(), chat.ModelLoaded)) == 1


def test_one_that_dies_again_and_again_is_left_alone() -> None:
    host = Host(DiesOnce)
    heard = host.subscribe(nothing)
    host.submit(MODEL)
    for _ in range(MOST_DEATHS + 1):
        host.submit(ask("die"))
        host.run_until_idle()
    events = heard.take()
    assert len(of(events, chat.EngineRestarted)) == MOST_DEATHS - 1
    assert isinstance(events[-1], chat.EngineDied)
    assert [type(event) for event in host.subscribe(nothing, known=True).take()] == [chat.BackendReady, chat.EngineDied]
    waiting = host._inbox.qsize()
    host.submit(ask("one more"))
    assert host._inbox.qsize() == waiting, "nobody would take it"


class Poisoned(ScriptedBackend):
    """Dies of a request for poison, before it begins that or what comes after it."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self.waiting: list[Command] = []

    @property
    def busy(self) -> bool:
        return bool(self.waiting) or super().busy

    def handle(self, command: Command, at_s: float | None = None) -> None:
        if self.waiting or (isinstance(command, chat.Generate) and command.messages[-1].text == "poison"):
            self.waiting.append(command)
        else:
            super().handle(command, at_s)

    def step(self) -> None:
        if self.waiting:
            raise ZeroDivisionError("injected")
        super().step()

    def give_up(self, note: str) -> tuple[Command, ...]:
        return (*super().give_up(note), *self.waiting)


def test_a_request_of_which_it_dies_again_is_not_asked_a_third_time() -> None:
    host = Host(Poisoned)
    heard = host.subscribe(nothing)
    poison, after = ask("poison"), ask("live")
    for command in (MODEL, poison, after):
        host.submit(command)
    host.run_until_idle()
    events = heard.take()
    (failed,) = of(events, CommandFailed)
    assert (failed.command, "stopped twice" in failed.sentence) == (poison, True)
    assert [(e.answer, e.state) for e in of(events, chat.TurnEnded)] == [(after.answer, "complete")]
    assert (len(of(events, chat.EngineRestarted)), of(events, chat.EngineDied)) == (2, [])


@pytest.fixture
def running() -> Iterator[Host]:
    """A host on a thread of its own."""
    host = Host(ScriptedBackend)
    thread = threading.Thread(target=host.run)
    thread.start()
    yield host
    host.shut_down()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_on_a_thread_of_its_own_every_subscriber_is_served(running: Host) -> None:
    n, words = 4, " ".join(f"w{i}" for i in range(400))
    commands = [ask(words) for _ in range(3)]
    got: list[list[Event]] = [[] for _ in range(n)]
    ready = [threading.Event() for _ in range(n)]
    subscriptions: list[Subscription] = [running.subscribe(event.set) for event in ready]

    def read(i: int) -> None:
        while len(of(got[i], chat.TurnEnded)) < len(commands) and ready[i].wait(timeout=10):
            ready[i].clear()
            got[i] += subscriptions[i].take()

    readers = [threading.Thread(target=read, args=(i,)) for i in range(n)]
    for reader in readers:
        reader.start()
    for command in commands:
        running.submit(command)
    for reader in readers:
        reader.join(timeout=30)
    for events in got:
        assert [text_of(events, command) for command in commands] == [f"You said: {words}"] * 3


def test_stop_reaches_an_answer_that_is_written(running: Host) -> None:
    ended = threading.Event()
    heard: list[Event] = []

    def hear() -> None:
        heard.extend(subscribed.take())
        if of(heard, chat.TextDelta):
            running.stop(command.answer)
        if of(heard, chat.TurnEnded):
            ended.set()

    subscribed = running.subscribe(hear)
    command = ask("w " * 100_000)
    running.submit(command)
    assert ended.wait(timeout=10)
    assert of(heard, chat.TurnEnded)[0].state == "stopped"
    assert running.silent_s < 10


class FromElsewhere(ScriptedBackend):
    """Says what another thread has put there: `step` waits for nothing."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self.wake: Callable[[], None] = nothing
        self.arrived: list[Event] = []
        self.n_steps = 0

    @property
    def busy(self) -> bool:
        return True

    @property
    def waits(self) -> bool:
        return not self.arrived

    def step(self) -> None:
        self.n_steps += 1
        while self.arrived:
            self._emit(self.arrived.pop(0))


def test_one_whose_work_is_done_elsewhere_is_stepped_when_it_wakes_the_host() -> None:
    made: list[FromElsewhere] = []

    def make(emit: Emit) -> FromElsewhere:
        made.append(FromElsewhere(emit))
        return made[-1]

    host, heard = Host(make), threading.Event()
    subscribed = host.subscribe(heard.set)
    thread = threading.Thread(target=host.run)
    thread.start()
    try:
        assert heard.wait(timeout=10)  # BackendReady
        heard.clear()
        subscribed.take()
        host.submit(MODEL)  # a command is carried out while it waits
        assert heard.wait(timeout=10)
        heard.clear()
        assert [type(event) for event in subscribed.take()] == [chat.ModelLoaded]
        for n in range(3):
            made[0].arrived.append(chat.LogLine("info", str(n)))
            made[0].wake()
            assert heard.wait(timeout=10)
            heard.clear()
            assert subscribed.take() == [chat.LogLine("info", str(n))]
        assert made[0].n_steps <= 6, "it waits for being woken"
        assert host.silent_s < 10
    finally:
        host.shut_down()
        thread.join(timeout=10)
    assert not thread.is_alive()
