"""Which answers are to be stopped, and the decode that a stop aborts. Any thread asks, the engine's thread acts.

Owns the names of all answers between the inbox and their end, so that a stop finds each, wherever it is.
"""

from __future__ import annotations

import threading

from kvdesk.backends.local.llama.binding import StopFlag
from kvdesk.chat import MessageId


class Stops:
    """Of one engine. `closing`: every answer ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: set[MessageId] = set()  # answers that wait or run
        self._running: set[MessageId] = set()
        self._asked: set[MessageId] = set()
        self._flag: StopFlag | None = None  # of the context in use
        self._may_abort = True  # the decode that runs now
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

    def request_close(self) -> None:
        """Stop the decode that runs now; every request ends at the next step."""
        with self._lock:
            self.closing = True
            if self._may_abort or not self._running:  # else the state that is to be saved would be lost
                self._raise()

    # --- from the engine's thread -------------------------------------------------------------------------------------

    def use(self, flag: StopFlag | None) -> None:
        """Decodes run on another context from now on; None: on none."""
        with self._lock:
            self._flag = flag

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

    def _raise(self) -> None:
        if self._flag is not None:
            self._flag.raise_()
