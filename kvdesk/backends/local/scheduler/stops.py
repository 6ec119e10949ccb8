"""Which answers are to be stopped, and the decode that a stop aborts. Any thread asks, the engine's thread acts.

Owns the names of all answers between the inbox and their end, so that a stop finds each, wherever it is.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.message import MessageId


class Stops:
    """Of one engine. `closing`: every answer ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: set[MessageId] = set()  # answers that wait or run
        self._running: set[MessageId] = set()
        self._asked: set[MessageId] = set()
        self._flag: StopFlag | None = None  # of the context in use
        self._may_abort = True  # the decode that runs now
        self._measured: MessageId | None = None  # the answer for which something is measured now
        self._measuring: StopFlag | None = None
        self.closing = False

    # --- from any thread ----------------------------------------------------------------------------------------------

    def request(self, answer: MessageId) -> None:
        """Stop the answer, whether it waits, prefills or generates. One that has ended may be continued under the same
        name: a stop that comes too late does not count then.
        """
        with self._lock:
            if answer in self._expected:
                self._asked.add(answer)
            if answer in self._running and self._may_abort:
                self._raise()
            if answer == self._measured:
                self._end_measuring()

    def request_close(self) -> None:
        """Stop the decode that runs now; every request ends at the next step."""
        with self._lock:
            self.closing = True
            if self._may_abort or not self._running:  # else the state that is to be saved would be lost
                self._raise()
            self._end_measuring()

    # --- from the engine's thread -------------------------------------------------------------------------------------

    def use(self, flag: StopFlag | None, measuring: StopFlag | None = None) -> None:
        """Decodes run on another context from now on; None: on none. `measuring`: ends what is measured there."""
        with self._lock:
            self._flag, self._measuring = flag, measuring

    def expect(self, answer: MessageId) -> None:
        """The answer waits from now on."""
        with self._lock:
            self._expected.add(answer)

    def begin(self, answer: MessageId) -> None:
        """It runs from now on."""
        with self._lock:
            self._running.add(answer)

    def end(self, answer: MessageId) -> None:
        """It has ended, begun or not: a stop comes too late."""
        with self._lock:
            self._expected.discard(answer)
            self._asked.discard(answer)
            if answer in self._running:
                self._running.discard(answer)
                if not self.closing and self._flag is not None:
                    self._flag.lower()

    @contextmanager
    def measuring(self, answer: MessageId) -> Iterator[None]:
        """In the block something may be measured for this answer, which a stop ends: `Stopped` is raised there."""
        with self._lock:
            self._measured = answer
            if self.closing or answer in self._asked:
                self._end_measuring()
        try:
            yield
        finally:
            with self._lock:
                self._measured = None
                if self._measuring is not None:
                    self._measuring.lower()

    def asked(self, answer: MessageId) -> bool:
        """Whether this answer is to be stopped."""
        return answer in self._asked

    @property
    def any_running(self) -> bool:
        """Whether an answer that runs is to be stopped."""
        return not self._asked.isdisjoint(self._running)

    def may_decode(self, *, may_abort: bool) -> bool:
        """Whether no answer is to be stopped first. may_abort: a stop that comes from now on aborts the decode."""
        with self._lock:
            self._may_abort = may_abort
            return not self.closing and self._asked.isdisjoint(self._running)

    def _end_measuring(self) -> None:
        if self._measured is not None and self._measuring is not None:
            self._measuring.raise_()

    def _raise(self) -> None:
        if self._flag is not None:
            self._flag.raise_()
