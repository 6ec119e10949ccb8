"""KV events of vLLM and SGLang over ZMQ, heard on a thread of its own that keeps the tree of blocks.

Live messages come from a PUB socket: topic, number (8 bytes, big-endian), msgpack. Missed ones are asked for at the
ROUTER socket beside it, by the number of the first; it answers with as many as it has kept and ends with -1. Replies
have two frames (older vLLM) or three (with the topic: newer vLLM, SGLang 0.5). Source: ZmqEventPublisher in
vllm/distributed/kv_events.py and sglang/srt/disaggregation/kv_events.py.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kvdesk.blocks.events import BadEvents, decode
from kvdesk.blocks.tree import BlockMap, BlockTree
from kvdesk.errors import UserError
from kvdesk.translation import tr
from kvdesk.values import dataclass

END: Final = (-1).to_bytes(8, "big", signed=True)
TOLD_S: Final = 0.2
"""From one map to the next."""
REPLAY_S: Final = 2.0
"""So long a silent replay socket is waited for."""
POLL_MS: Final = 50
MOST_WAITING: Final = 100_000
"""Messages that ZMQ keeps for us."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventsAddress:
    """Where a server publishes: `tcp://host:port` each; replay "" where missed messages cannot be had."""

    live: str
    replay: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """What is known now. `problem`: a sentence where something is wrong, with the last map that was right."""

    map: BlockMap
    problem: str = ""


class BlockEventReader:
    """Call `start`, then `close`. `on_heard` is called on the reader's thread, at most every TOLD_S."""

    def __init__(self, address: EventsAddress, on_heard: Callable[[Heard], None]) -> None:
        self._address, self._on_heard = address, on_heard
        self._prompts: queue.SimpleQueue[tuple[int, ...]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvdesk-block-events", daemon=True)
        self._tree = BlockTree()
        self._last_live = -1  # number of the last message from the PUB socket
        self._problem = ""
        self._changed = True

    def start(self) -> None:
        """Begin to listen. Raises UserError where pyzmq is not installed or the address is none."""
        try:
            import zmq
        except ImportError as error:
            raise UserError(tr("The block map needs the extra kv-events: pip install 'kvdesk[kv-events]'.")) from error
        for address in filter(None, (self._address.live, self._address.replay)):
            try:
                with zmq.Context() as context, context.socket(zmq.DEALER) as probe:
                    probe.linger = 0
                    probe.connect(address)
            except zmq.ZMQError as error:
                sentence = tr("{address} is no address of KV events.").format(address=address)
                raise UserError(sentence, str(error)) from error
        self._thread.start()

    def use(self, tokens: Sequence[int]) -> None:
        """A request of this window had this prompt. May be called from any thread."""
        self._prompts.put(tuple(tokens))

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        import zmq

        with zmq.Context() as context, context.socket(zmq.SUB) as live:
            context.linger = live.linger = 0
            live.rcvhwm = MOST_WAITING
            live.connect(self._address.live)
            live.subscribe(self._address.topic.encode())
            self._replay(context, 0)  # what is kept of the time before
            told_s = time.monotonic() - TOLD_S
            while not self._closing.is_set():
                if live.poll(POLL_MS):
                    self._take_all(context, live)
                self._count_uses()
                if self._changed and time.monotonic() - told_s >= TOLD_S:
                    told_s, self._changed = time.monotonic(), False
                    self._on_heard(Heard(self._tree.layout(), self._problem))

    def _take_all(self, context: Any, live: Any) -> None:
        """Every message that waits, for at most TOLD_S: a busy server must not keep the map from being shown."""
        import zmq

        until = time.monotonic() + TOLD_S
        while time.monotonic() < until and not self._closing.is_set():
            try:
                frames = live.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(frames) >= 2 and len(frames[-2]) == len(END):
                self._take_live(context, int.from_bytes(frames[-2], "big"), frames[-1])
            else:
                self._say(tr("A message of another kind came from the address of KV events."))

    def _take_live(self, context: Any, seq: int, payload: bytes) -> None:
        """Live numbers only rise; one that does not tells of a server that was started again."""
        if seq <= self._last_live:
            self._tree.restarted()
            self._changed = True
        self._last_live = seq
        if self._tree.missing(seq) or (self._tree.next_seq < 0 and seq > 0):
            self._replay(context, max(self._tree.next_seq, 0))
        self._apply(seq, payload)

    def _replay(self, context: Any, first: int) -> None:
        """Ask for the messages from number `first` on; what the server has not kept stays missing."""
        if not self._address.replay:
            return
        import zmq

        with contextlib.closing(context.socket(zmq.DEALER)) as asking:
            asking.linger = 0
            try:
                asking.connect(self._address.replay)
                asking.send_multipart((b"", first.to_bytes(len(END), "big")), zmq.NOBLOCK)
            except zmq.ZMQError as error:
                self._say(tr("Missed messages cannot be asked for: {why}").format(why=error))
                return
            for seq, payload in _replies(asking, self._closing):
                self._apply(seq, payload)

    def _apply(self, seq: int, payload: bytes) -> None:
        try:
            batch = decode(payload)
        except BadEvents as error:
            _log.warning("KV events %d: %s", seq, error)
            self._say(tr("Message {n} could not be read: {why}").format(n=seq, why=error))
            return
        self._changed |= self._tree.apply(seq, batch)

    def _count_uses(self) -> None:
        while not self._prompts.empty():
            self._tree.use(self._tree.match(self._prompts.get()))
            self._changed = True

    def _say(self, problem: str) -> None:
        self._problem, self._changed = problem, True


def _replies(asking: Any, closing: threading.Event) -> Iterator[tuple[int, bytes]]:
    """The messages that a replay socket sends, until its end, or until it is silent for REPLAY_S."""
    silent_since = time.monotonic()
    while not closing.is_set() and time.monotonic() - silent_since < REPLAY_S:
        if not asking.poll(POLL_MS):
            continue
        frames: list[bytes] = [b"", *asking.recv_multipart()]
        seq, payload = frames[-2:]
        if seq == END:
            return
        silent_since = time.monotonic()
        if len(seq) == len(END):
            yield int.from_bytes(seq, "big"), payload
