"""Reads KV events of vLLM and SGLang over ZMQ, in a thread that owns the tree of blocks.

Live messages come from a PUB socket: topic, number (8 bytes, big-endian), msgpack. Missed ones are requested from the
ROUTER socket beside it, by the number of the first. It sends as many as it has kept and ends with -1. Replies have two
frames (older vLLM) or three (with the topic: newer vLLM, SGLang 0.5). Source: ZmqEventPublisher in
vllm/distributed/kv_events.py and sglang/srt/disaggregation/kv_events.py.
"""

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
"""Interval between two maps."""
REPLAY_S: Final = 2.0
"""How long a silent replay socket is waited for."""
SILENT_S: Final = 3.0
"""After the start, how long there may be no publisher at the address."""
POLL_MS: Final = 50
MOST_WAITING: Final = 100_000
"""Messages that ZMQ queues."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventsAddress:
    """Where a server publishes: `tcp://host:port` each; replay "" if missed messages are not available."""

    live: str
    replay: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """What is currently known. `problem`: a sentence if something is wrong, with the last correct map."""

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
        self._last_payload = b""  # of the message before the tree's next one
        self._n_connected = 0
        self._problem = self._silence = ""
        self._changed = True

    def start(self) -> None:
        """Begin to listen. Raises UserError if pyzmq is not installed or the address is invalid."""
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
                sentence = tr("{address} is not an address for KV events.").format(address=address)
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
            with live.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED) as monitor:
                live.connect(self._address.live)
                live.subscribe(self._address.topic.encode())
                began_s = told_s = time.monotonic()
                told_s -= TOLD_S
                while not self._closing.is_set():
                    waiting = live.poll(POLL_MS)
                    self._follow_connection(context, monitor)
                    if waiting:
                        self._take_all(context, live, monitor)
                    if not self._n_connected and not self._silence and time.monotonic() - began_s >= SILENT_S:
                        self._fall_silent()
                    self._count_uses()
                    if self._changed and time.monotonic() - told_s >= TOLD_S:
                        told_s, self._changed = time.monotonic(), False
                        self._on_heard(Heard(self._tree.layout(), self._silence or self._problem))
                live.disable_monitor()

    def _follow_connection(self, context: Any, monitor: Any) -> None:
        """Notice publishers that appear or disappear at the address."""
        import zmq
        from zmq.utils.monitor import recv_monitor_message

        while monitor.poll(0):
            if recv_monitor_message(monitor)["event"] != zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._fall_silent()
                continue
            self._n_connected += 1
            self._silence, self._changed = "", True
            if self._n_connected > 1 and not self._is_the_same(context):
                self._forget()
            self._replay(context, max(self._tree.next_seq, 0))  # what was published before or meanwhile, if it was kept

    def _fall_silent(self) -> None:
        sentence = tr("No KV events come from {address}. Was the server started with --kv-events-config?")
        if self._n_connected:
            sentence = tr("The server at {address} no longer publishes KV events.")
        self._silence, self._changed = sentence.format(address=self._address.live), True

    def _is_the_same(self, context: Any) -> bool:
        """Whether a publisher that reappeared still has the last message that was read. If it cannot be asked, it
        counts as another one, because what it did meanwhile is unknown.
        """
        last = self._tree.next_seq - 1
        if last < 0:
            return True
        return next(iter(self._replies(context, last)), None) == (last, self._last_payload)

    def _forget(self) -> None:
        self._tree.restarted()
        self._last_live, self._changed = -1, True

    def _take_all(self, context: Any, live: Any, monitor: Any) -> None:
        """Read waiting messages for at most TOLD_S, so that a busy server does not delay the map."""
        import zmq

        until = time.monotonic() + TOLD_S
        while time.monotonic() < until and not self._closing.is_set():
            try:
                frames = live.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._follow_connection(context, monitor)  # it may be the first message of a restarted server
            if len(frames) >= 2 and len(frames[-2]) == len(END):
                self._take_live(context, int.from_bytes(frames[-2], "big"), frames[-1])
            else:
                self._say(tr("A message that is not a KV event came from this address."))

    def _take_live(self, context: Any, seq: int, payload: bytes) -> None:
        """Live numbers only rise; a lower one means that the server was restarted."""
        if seq <= self._last_live:
            self._forget()
        self._last_live = seq
        if self._tree.missing(seq) or (self._tree.next_seq < 0 and seq > 0):
            self._replay(context, max(self._tree.next_seq, 0))
        self._apply(seq, payload)

    def _replay(self, context: Any, first: int) -> None:
        """Ask for the messages from number `first` on; what the server has not kept stays missing."""
        for seq, payload in self._replies(context, first):
            self._apply(seq, payload)

    def _replies(self, context: Any, first: int) -> Iterator[tuple[int, bytes]]:
        """Messages from number `first` on, as sent by the replay socket. A silent socket is reported."""
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
            silent_since = time.monotonic()
            while not self._closing.is_set():
                if asking.poll(POLL_MS):
                    frames: list[bytes] = [b"", *asking.recv_multipart()]
                    seq, payload = frames[-2:]
                    if seq == END:
                        return
                    silent_since = time.monotonic()
                    if len(seq) == len(END):
                        yield int.from_bytes(seq, "big"), payload
                elif time.monotonic() - silent_since >= REPLAY_S:
                    sentence = tr("Missed messages cannot be asked for: {address} does not answer.")
                    self._say(sentence.format(address=self._address.replay))
                    return

    def _apply(self, seq: int, payload: bytes) -> None:
        try:
            batch = decode(payload)
        except BadEvents as error:
            _log.warning("KV events %d: %s", seq, error)
            self._say(tr("Message {n} could not be read: {why}").format(n=seq, why=error))
            return
        if self._tree.apply(seq, batch):
            self._last_payload, self._changed = payload, True

    def _count_uses(self) -> None:
        while not self._prompts.empty():
            self._tree.use(self._tree.match(self._prompts.get()))
            self._changed = True

    def _say(self, problem: str) -> None:
        self._problem, self._changed = problem, True
