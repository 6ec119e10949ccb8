"""A log that is read while it grows: its requests as text, and its cells as a recording."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from kvdesk.cache.journal.recording import Recording
from kvdesk.engine_log.cells import number_lines
from kvdesk.engine_log.findings import Finding
from kvdesk.engine_log.journal import CellsJournal
from kvdesk.engine_log.lines import LogLine, seconds_of
from kvdesk.engine_log.live import LiveLog
from kvdesk.engine_log.record import Request
from kvdesk.engine_log.report import request_lines
from kvdesk.errors import UserError
from kvdesk.translation import tr

REST: Final = 49.0
"""Times as long as recording, or showing, took of a processor that is waited before the next: the server that is
watched has the rest. At 4,096 cells it keeps 0.96 of its speed, and 0.87 to 0.92 with 19 times.
"""
_OF_PROXY: Final = '{"n": '
"""Begins a line of `kvdesk proxy --log`."""


class LogRecorder:
    """Feed it the lines of a log; `say` gets the lines of text.

    A server that is watched shares its processors with us: while the log `is_live`, at most a fiftieth of the time
    goes into recording its cells, so that some of its ubatches are left out.

    with_requests  each request is an operation of the recording, too; else the server is asked, as in `LiveLog`
    """

    def __init__(self, say: Callable[[str], None], is_live: Callable[[], bool], *, with_requests: bool = False) -> None:
        self._is_live, self._with_requests = is_live, with_requests
        more: Any = {"on_request": self._note} if with_requests else {"asks": is_live}
        self._live = LiveLog(say, with_cells=False, **more)
        self._journal = CellsJournal()
        self._not_before = 0.0

    def feed(self, line: LogLine) -> bool:
        """Whether this line completed a dump of cells."""
        if self._with_requests and line.text.startswith(_OF_PROXY) and (passed := _passed(line.text)):
            self._journal.note(time.time() if self._is_live() else 0.0, *passed)
            return False
        if not self._live.feed(line):
            return False
        began = time.monotonic()
        if began >= self._not_before or not self._is_live():
            self._journal.take(self._live.caches)
            ended = time.monotonic()
            self._not_before = ended + REST * (ended - began)
        return True

    def wait_for_answers(self) -> None:
        """See `LiveLog.wait_for_answers`."""
        self._live.wait_for_answers()

    def close(self) -> None:
        """The log has ended: say what is still open, and the sums."""
        self._live.close()

    @property
    def n_operations(self) -> int:
        """Of the recording."""
        return self._journal.n

    def recording(self, *, latest: bool = True) -> Recording | None:
        """What was recorded; None before the first cells. `latest`: with the cells that were printed last."""
        if latest:
            self._journal.take(self._live.caches)
        return self._journal.recording()

    @property
    def numbers(self) -> str:
        """The numbers of each stream, as text."""
        caches = [cache for _, cache in sorted(self._live.caches.items())]
        return "\n".join(line for cache in caches for line in number_lines(cache))

    def _note(self, request: Request, finding: Finding) -> None:
        ms = max(request.prompt_ms, 0.0) + max(request.generated_ms, 0.0)
        call = _call(request.slot, request.n_prompt, request.reused, request.read, finding.cause)
        began = seconds_of(request.clock)
        self._journal.note(began and began + ms / 1e3, call, ms, "\n".join(request_lines(request, finding)))


class LogReading:
    """Reads a log on its own thread. What it knows so far may be asked for from another."""

    def __init__(self, lines: Iterator[LogLine], is_live: Callable[[], bool]) -> None:
        self._lines = lines
        self._lock = threading.Lock()
        self._has_cells = False
        self._said: deque[str] = deque()  # also by the thread that asks the server
        self._recorder = LogRecorder(self._said.append, is_live)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read, name="kvdesk-log", daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            for line in self._lines:
                with self._lock:
                    self._has_cells |= self._recorder.feed(line)
        except (OSError, UserError) as error:
            with self._lock:
                self._said.append(str(error))
        self._recorder.wait_for_answers()  # without the lock: the window reads meanwhile
        with self._lock:
            self._recorder.close()
            self._has_cells = True  # the end may complete a dump
        self.ended.set()

    def news(self) -> tuple[list[str], bool]:
        """Lines of text since the last time, and whether cells were printed since."""
        with self._lock:
            texts = [self._said.popleft() for _ in range(len(self._said))]
            has_cells, self._has_cells = self._has_cells, False
        return texts, has_cells

    def state(self) -> tuple[str, Recording | None]:
        """The numbers of each stream as text, and the recording of the cells."""
        with self._lock:
            return self._recorder.numbers, self._recorder.recording()


def _passed(text: str) -> tuple[str, float, str] | None:
    """A request that `kvdesk proxy` wrote: its numbers, its ms, its texts; None for another line."""
    try:
        found: dict[str, Any] = json.loads(text)
        prompt, reused, read = (int(found[name]) for name in ("prompt_tokens", "reused", "read"))
        numbers = _call(-1, prompt, reused, read, str(found["cause"])[:60])
        call = f"{str(found['path'])[:60]} {int(found['status'])}: {numbers}"
        return call, 1e3 * float(found["first_byte_s"]), str(found["sentence"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _call(slot: int, n_prompt: int, reused: int, read: int, cause: str) -> str:
    """A request in numbers, without its texts; -1 for what is unknown."""
    parts = [tr("slot {slot}").format(slot=slot)] if slot >= 0 else []
    counts = (tr("{n:,} tokens"), n_prompt), (tr("{n:,} reused"), reused), (tr("{n:,} read"), read)
    parts += [text.format(n=n) for text, n in counts if n >= 0]
    return " · ".join([*parts, cause] if cause else parts)
