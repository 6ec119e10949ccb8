"""A second kvdesk over TCP: its map is the first one's, cell by cell, and a chat goes on there."""

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kvdesk.__main__ import main
from kvdesk.backends.openai import far_cache
from kvdesk.backends.openai.backend import OpenAIBackend
from kvdesk.backends.openai.far_cache import FarCache, check
from kvdesk.cache.compaction import Layout
from kvdesk.cache.journal.file import load_journal
from kvdesk.codec import CodecError
from kvdesk.host.host import Host
from kvdesk.message import ConversationId, Message, new_conversation_id, new_message_id
from kvdesk.protocol import operations
from kvdesk.protocol.cache import AuditCache, CacheView, ContextReady, Forget, Lease, RecordingTaken, TakeRecording
from kvdesk.protocol.chat import BackendReady, CloseConversation, Generate, LoadModel, LogLine, ModelLoaded, TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import Endpoint
from kvdesk.protocol.wire import to_json
from kvdesk.server.config import ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.values import replace
from kvdesk.viewmodel.cells.readout import verification_line
from tests.backends.heard import WAIT_S, Heard, ask
from tests.server.conftest import INSPECT, KEY, Running

WORDS = ("gulls", "sea", "cliff", "egg", "storm", "rock", "north", "wind")


class Window(Heard):
    """What another kvdesk hears over TCP."""

    def __init__(self, running: Running, key: Callable[[], str]) -> None:
        super().__init__(lambda emit: OpenAIBackend(emit, lambda _url: key()))
        self._load = LoadModel(Endpoint(running.root, "", "first"), ContextSettings())
        self.connect()

    def connect(self) -> None:
        """As a person does by the dialog, also again."""
        self.send(self._load)
        self.wait(lambda: self.of(ModelLoaded) or self.of(CommandFailed))

    @property
    def view(self) -> CacheView | None:
        return next((event for event in reversed(self.events) if isinstance(event, CacheView)), None)


@pytest.fixture
def window(running: Running) -> Iterator[Window]:
    window = Window(running, lambda: INSPECT.value)
    yield window
    window.close()


class Near:
    """The first kvdesk's own view."""

    def __init__(self, host: Host) -> None:
        self.view: CacheView | None = None
        self.n_ended = 0
        self._changed = threading.Condition()
        self._subscription = host.subscribe(self._take, known=True)
        self._take()

    def _take(self) -> None:
        with self._changed:
            for event in self._subscription.take():
                if isinstance(event, CacheView):
                    self.view = event
                self.n_ended += isinstance(event, TurnEnded)
            self._changed.notify_all()

    def settle(self, running: Running, n_asked: int) -> None:
        """Wait until all answers have ended and the cells are compared with the engine's own."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.n_ended >= n_asked, timeout=WAIT_S)
        running.answered(AuditCache())

    def close(self) -> None:
        self._subscription.close()


def is_same(a: CacheView | None, b: CacheView | None) -> bool:
    """Cell by cell."""
    if a is None or b is None:
        return False
    same = a.snapshot.operation == b.snapshot.operation and a.leases == b.leases
    for ours, theirs in zip(a.snapshot.maps, b.snapshot.maps, strict=True):
        for x, y in zip(ours.streams, theirs.streams, strict=True):
            same = same and (x.head, x.used, x.high_water, x.size) == (y.head, y.used, y.high_water, y.size)
            for name in ("pos", "seq_bits", "token", "written_at_op"):
                same = same and np.array_equal(getattr(x, name), getattr(y, name))
    return same and a.snapshot.sequences == b.snapshot.sequences


class Choice:
    """Random commands, deterministic in a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.chats: list[ConversationId] = [new_conversation_id() for _ in range(5)]

    def next(self, view: CacheView | None) -> Command:
        rng = self._rng
        chat = rng.choice(self.chats)
        used = [int(s.seq_id) for s in view.snapshot.sequences if s.n_cells] if view is not None else []
        if not used or rng.random() < 0.3:
            text = " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))
            return ask(text, Sampling(temperature=0.0, max_tokens=rng.randint(1, 3)), chat)
        seq, p0 = rng.choice(used), rng.randint(0, 30)
        choices: dict[operations.HandOperation | Forget | CloseConversation, int] = {
            operations.RemoveRange(seq, p0, p0 + rng.randint(1, 9)): 15,
            operations.CopySequence(seq, chat): 12,
            operations.KeepOnly(seq): 2,
            operations.ShiftPositions(seq, p0, -1, rng.choice([-3, 1, 5])): 12,
            operations.ClearCache(): 2,
            operations.Compact(rng.choice(list(Layout))): 6,
            operations.SwapOut(chat): 6,
            operations.SwapIn(chat): 8,
            Forget(chat): 4,
            CloseConversation(chat): 3,
        }
        (chosen,) = rng.choices([*choices], [*choices.values()])
        return chosen if isinstance(chosen, Forget | CloseConversation) else operations.Operate(chosen, measured=False)


def follow(running: Running, window: Window, n: int, seed: int) -> None:
    near, choice = Near(running.host), Choice(seed)
    n_before, n_asked, compared = near.n_ended, 0, 0
    try:
        for number in range(n):
            command = choice.next(near.view)
            n_asked += isinstance(command, Generate)
            running.host.submit(command)
            if number % 10 == 9 or number == n - 1:
                near.settle(running, n_before + n_asked)
                window.wait(
                    lambda: near.view is not None and window.view is not None and is_same(window.view, near.view)
                )
                compared += 1
    finally:
        near.close()
        for chat in choice.chats:  # other tests have this engine too, and chats leave it last
            running.host.submit(CloseConversation(chat))
    assert compared == -(-n // 10)
    said = window.view.snapshot.verification
    assert (said.state, said.by) == ("verified", "first")
    assert verification_line(said)[0].startswith("first says: map verified")


def test_its_map_is_that_of_the_first_after_60_operations(running: Running, window: Window) -> None:
    follow(running, window, 60, seed=1)
    window.send(TakeRecording())
    window.wait(lambda: window.of(RecordingTaken))
    recording, view = window.of(RecordingTaken)[0].recording, window.view
    assert recording.last == view.snapshot.operation
    for ours, theirs in zip(recording.state_at(recording.last), view.snapshot.maps, strict=True):
        for x, y in zip(ours.streams, theirs.streams, strict=True):
            assert np.array_equal(x.pos, y.pos)
            assert np.array_equal(x.token, y.token)
            assert np.array_equal(x.seq_bits, y.seq_bits)
    assert len(recording) >= 6  # it was compared 6 times; views between may be merged


@pytest.mark.stress
@pytest.mark.timeout(1200)
def test_its_map_is_that_of_the_first_after_2000_operations(running: Running, window: Window) -> None:
    follow(running, window, 2000, seed=2)


def test_a_chat_goes_on_there_and_its_second_turn_is_in_the_cache(window: Window) -> None:
    conversation, messages = new_conversation_id(), list[Message]()
    for text in ("Where do puffins live?", "And gulls?"):
        messages.append(Message(new_message_id(), conversation, None, "user", text))
        command = Generate(conversation, new_message_id(), tuple(messages), Sampling(temperature=0.0, max_tokens=12))
        window.send(command)
        ended = window.ended(command)
        assert ended.state == "complete", ended.note
        said = window.text(command)
        messages.append(Message(command.answer, conversation, None, "assistant", said))
    assert ended.stats.reused_tokens > 30, "all before, cached on the other side"

    def mine() -> list[Lease]:
        return [lease for lease in window.view.leases if lease.conversation == conversation] if window.view else []

    window.wait(lambda: [lease for lease in mine() if not lease.inactive])  # the view comes a frame after the answer
    assert sum(not lease.inactive for lease in mine()) == 1, "its cells are the chat's own here, in its colour"
    assert all(not lease.client for lease in mine())
    assert len({lease.branch for lease in mine()}) == len(mine())


def test_requests_of_a_chat_are_its_branches_and_keep_their_numbers() -> None:
    cache, mine = FarCache(lambda _event: None, "far"), ConversationId("mine")
    one, two = (Lease(ConversationId(name), seq, client="kvdesk") for seq, name in enumerate(("r1", "r2")))
    stranger = Lease(ConversationId("r9"), 7, client="curl")
    cache.know("chatcmpl-r1", mine)
    assert cache._own_leases((one, stranger)) == (Lease(mine, 0), stranger)
    cache.know("chatcmpl-r2", mine)
    assert cache._own_leases((one, two)) == (Lease(mine, 0, inactive=True), Lease(mine, 1, branch=2))
    assert cache._own_leases((two,)) == (Lease(mine, 1, branch=2),), "it keeps its number"
    cache.know("42", mine)
    assert cache._own_leases((replace(one, conversation=ConversationId("42")),))[0].client, "no kvdesk's id"


def test_a_key_that_may_not_look_chats_only(running: Running) -> None:
    window = Window(running, lambda: KEY.value)
    try:
        loaded = window.of(ModelLoaded)[0]
        assert loaded.model.name.endswith(" on first")
        window.send(TakeRecording())
        window.wait(lambda: window.of(CommandFailed))
        assert not window.of(CacheView)
        assert not window.of(ContextReady)
    finally:
        window.close()


def shows(window: Window) -> bool | None:
    """Whether the window was told last that cells are shown."""
    ready = window.of(BackendReady)
    return Feature.CACHE_VIEW in ready[-1].features if ready else None


def test_another_key_for_the_same_server_shows_and_hides_its_cells(running: Running) -> None:
    """Connected with a key that may not look, with one that may, without that one, and with it again."""
    keys = [KEY.value, INSPECT.value, KEY.value, INSPECT.value]
    window = Window(running, lambda: keys[0])
    try:
        assert not shows(window)
        while True:
            window.wait(lambda: shows(window) == (keys[0] == INSPECT.value))
            known = window.host.subscribe(lambda: None, known=True)
            if shows(window):
                window.wait(lambda: window.view is not None)
            else:
                assert not [event for event in known.take() if isinstance(event, CacheView | ContextReady)]
            known.close()
            if len(keys) == 1:
                break
            del keys[0]
            window.events.clear()
            window.connect()
    finally:
        window.close()


def test_a_server_that_is_started_again_with_other_keys_shows_and_hides_its_cells(
    engine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_cache, "AGAIN_S", (0.02,))

    def started(port: int, *, inspect: bool) -> Server:
        key = replace(INSPECT, inspect=inspect)
        server = Server(engine, ServerConfig(port=port, keys=(key,)), Sampling(temperature=0.0))
        server.start()
        return server

    server = started(0, inspect=False)
    port = int(server.url.removesuffix("/v1").rsplit(":", 1)[1])
    window = Window(Running(engine, server), lambda: INSPECT.value)
    try:
        assert not shows(window)
        for inspect in (True, False, True):
            server.close()
            window.events.clear()
            server = started(port, inspect=inspect)
            window.wait(lambda: shows(window) == inspect)  # noqa: B023
            if inspect:
                window.wait(lambda: window.view is not None)
            else:
                (said,) = [e for e in window.of(LogLine) if "no longer" in e.text]
                assert said == LogLine("warning", "first no longer shows its cells. The server refuses the key (403).")
    finally:
        window.close()
        server.close()


def test_a_newer_one_and_a_liar_are_passed_over_and_said_once(window: Window) -> None:
    window.wait(lambda: window.view is not None)
    view = window.view
    assert view is not None
    told: list[Event] = []
    far = FarCache(told.append, "first")
    for _ in range(3):
        assert far.read('{"type": "CellsPainted"}') is None
        assert far.read("{oops") is None
    assert [type(event) for event in told] == [LogLine, LogLine]
    assert "CellsPainted" in told[0].text
    cache = view.snapshot.maps[0]
    stream = cache.streams[0]
    lies = [
        replace(stream, high_water=stream.high_water + 1),
        replace(stream, size=len(stream.pos) - 1) if len(stream.pos) else replace(stream, head=-1),
        replace(stream, head=stream.size + 1),
        replace(stream, used=stream.used + 1),
        replace(stream, token=np.zeros(len(stream.pos) + 1, np.int32)),
        replace(stream, seq_bits=np.zeros((len(stream.pos), 0), np.uint64)),
    ]
    for lie in lies:
        lied = replace(view, snapshot=replace(view.snapshot, maps=(replace(cache, streams=(lie,)),)))
        with pytest.raises(CodecError):
            check(lied.snapshot)
        assert far.read(json.dumps(to_json(Event, lied))) is None
    check(view.snapshot)


def test_it_is_recorded_to_a_file_without_token_ids(running: Running, tmp_path: Path) -> None:
    client, file = running.openai(), tmp_path / "out.jsonl"

    def ask() -> None:
        """Until operations are in the file: they come a frame after the answer."""
        for n in range(1000):
            word = WORDS[n % len(WORDS)]
            client.chat.completions.create(model="", messages=[{"role": "user", "content": word}], max_tokens=4)
            if file.exists() and file.read_bytes().count(b"\n") > 3:
                break
        os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Timer(1.0, ask)
    asking.start()
    assert main(["record", running.root, str(file), "--key", INSPECT.value]) == 0
    asking.join()
    _header, recording = load_journal(file)
    streams = [stream for cache in recording.state_at(recording.last) for stream in cache.streams]
    assert sum(stream.used for stream in streams) > 0
    assert all((stream.token == -1).all() for stream in streams)
    assert len(recording) > 0


def test_who_may_not_inspect_records_nothing(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", running.root, str(tmp_path / "out"), "--key", KEY.value]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())
