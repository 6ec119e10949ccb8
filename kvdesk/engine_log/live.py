"""A log that grows: its requests explained as they end, and the cells that the engine printed last, as text."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.cells import SEARCH, CellsReader, ShownCache, cache_lines
from kvdesk.engine_log.events import TextJoiner
from kvdesk.engine_log.findings import HITS, Finding
from kvdesk.engine_log.first_token import FirstTokens
from kvdesk.engine_log.lines import CHUNK, LogLine
from kvdesk.engine_log.record import Request
from kvdesk.engine_log.report import Totals, late_lines, request_lines, summary_lines
from kvdesk.engine_log.sources import LogRequests
from kvdesk.translation import tr
from kvdesk.values import replace

LOOK_S: Final = 0.2
"""Between two looks at a file that does not grow."""


def follow(path: Path, caught_up: Callable[[], None], is_over: Callable[[], bool]) -> Iterator[bytes]:
    """The bytes of a file, and what is appended to it until `is_over`. A file that was cut or replaced is read again,
    after an empty piece. A pipe is read to its end.

    `caught_up` is called once, when everything that was there has been given. Raises OSError if the file cannot be
    opened.
    """
    log = path.open("rb")
    if not stat.S_ISREG(os.fstat(log.fileno()).st_mode):
        caught_up()
        with log:
            yield from iter(lambda: log.read1(CHUNK), b"")
        return
    there: int | None = os.fstat(log.fileno()).st_size
    try:
        while True:
            if chunk := log.read(CHUNK if there is None else min(CHUNK, max(there - log.tell(), 1))):
                yield chunk
            if there is not None and (log.tell() >= there or not chunk):
                there = None
                caught_up()
            if chunk:
                continue
            if is_over():
                return
            if _was_replaced(path, log.fileno(), log.tell()):
                while chunk := log.read(CHUNK):  # what was written to it last
                    yield chunk
                log.close()
                log = path.open("rb")
                yield b""
            else:
                time.sleep(LOOK_S)
    finally:
        log.close()


def _was_replaced(path: Path, descriptor: int, position: int) -> bool:
    try:
        now = path.stat()
    except OSError:
        return False  # moved away, and no new one yet
    old = os.fstat(descriptor)
    return now.st_size < position or (now.st_ino, now.st_dev) != (old.st_ino, old.st_dev)


class LiveLog:
    """Feed it lines; `say` gets the lines of text. With `is_quiet` everything is read and nothing said.

    with_cells  say the cells after each request too
    on_request  gets each request that has ended
    asks        whether the server of a request that has just ended is asked for the first token that differs; what is
                found is said on another thread
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        with_cells: bool = True,
        on_request: Callable[[Request, Finding], None] | None = None,
        asks: Callable[[], bool] = lambda: False,
    ) -> None:
        self.totals = Totals()
        self.is_quiet = False
        self._say, self._with_cells, self._on_request = say, with_cells, on_request
        self._joiner = TextJoiner()
        self._asks, self._first_tokens = asks, FirstTokens(say)
        self._requests = LogRequests(is_live=True)
        self._cells = CellsReader()
        self._cells_of: str | None = None  # the first program that prints cells
        self._says_one = False

    @property
    def caches(self) -> Mapping[tuple[bool, int], ShownCache]:
        """What was printed last of each stream of cells."""
        return self._cells.caches

    def feed(self, line: LogLine) -> bool:
        """Say what this line completes. Whether it completed a dump of cells."""
        is_shown = self._shows_cells(line)
        has_cells = is_shown and self._cells.feed(line)
        if is_shown and self._cells.in_map:
            return has_cells
        for event in self._joiner.feed(line):
            for request in self._requests.feed(event):
                self._finished(request)
            if self._requests.late:
                self._say_late()
        return has_cells

    def _shows_cells(self, line: LogLine) -> bool:
        """Whether the line is of the program whose cells are read: those of several are no one cache."""
        if self._cells_of == line.source:
            return True
        if not line.text.startswith(SEARCH):
            return not self._cells_of
        if self._cells_of is None:
            self._cells_of = line.source
            return True
        if not self._says_one:
            self._says_one = True
            self._say(tr("Several programs print their cells. Only those of the first are shown."))
        return False

    def _say_late(self) -> None:
        late, self._requests.late = self._requests.late, []
        for request in late:
            before, now = (explain_request(one, request.server) for one in (replace(request, follows=None), request))
            if before.cause not in HITS:
                continue  # said already
            self.totals.correct(before, now)
            if not self.is_quiet and not self._first_tokens.has_said(request):
                for text in late_lines(request, now):
                    self._say(text)

    def wait_for_answers(self) -> None:
        """Wait until the server was asked about every request so far, which may take seconds."""
        self._first_tokens.close()

    def close(self) -> None:
        """Say what is still open, and the sums."""
        self._cells.close()
        for event in self._joiner.close():
            for request in self._requests.feed(event):
                self._finished(request)
        for request in self._requests.close():
            self._finished(request)
        self.wait_for_answers()
        if not self.totals.score.requests and self._with_cells:
            self.say_cells()
        for text in summary_lines(self.totals, self._requests.servers):
            self._say(text)

    def say_cells(self) -> None:
        """Say the cells that were printed last."""
        for _, cache in sorted(self._cells.caches.items()):
            for text in cache_lines(cache):
                self._say(text)

    def _finished(self, request: Request) -> None:
        finding = explain_request(request, request.server)
        self.totals.add(request, finding)
        if self._on_request:
            self._on_request(request, finding)
        if not self.is_quiet:
            for text in request_lines(request, finding):
                self._say(text)
            if self._asks():
                self._first_tokens.ended(request, finding, request.server.url)
            if self._with_cells:
                self.say_cells()
