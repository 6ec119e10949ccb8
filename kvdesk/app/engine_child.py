"""The child process that runs the engine in safe mode: its host on the main thread, requests in, reports of events out.

Ends with the process that started it. Owns nothing that outlives it but saved states; may die of anything.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence

from kvdesk import translation
from kvdesk.backends.base import Emit
from kvdesk.backends.local.engine import Engine
from kvdesk.backends.process.messages import Cancel, Close, Report, Request, Stop, Submit
from kvdesk.children.entry import Parent
from kvdesk.host.host import GIL_SWITCH_S, Host
from kvdesk.host.subscription import Subscription
from kvdesk.paths import catalogues
from kvdesk.protocol.chat import BackendReady, ModelLoaded
from kvdesk.protocol.messages import Command
from kvdesk.protocol.wire import frame, read_frame

REPORT_S = 0.08
"""Between two reports while it computes: each wakes three threads, on the processors that compute."""


def child_main(parent: Parent, _argv: Sequence[str]) -> int:
    """Runs an engine for the parent. Returns 0."""
    sys.setswitchinterval(GIL_SWITCH_S)
    reporter = _Reporter(parent)
    reporter.start()
    threading.Thread(target=_listen, args=(parent, reporter.host), name="kvdesk-requests", daemon=True).start()
    gc.freeze()
    reporter.host.run()
    reporter.finish()
    return 0


def _listen(parent: Parent, host: Host) -> None:
    """Take the parent's requests."""
    try:
        while True:
            match read_frame(Request, io.BytesIO(parent.receive()).read):
                case Submit(command, age_s, language):
                    if language != translation.installed():
                        translation.use([language], catalogues())
                    host.submit(command, age_s)
                case Stop(answer):
                    host.stop(answer)
                case Cancel():
                    host.cancel()
                case Close():
                    host.shut_down()
    except Exception:  # noqa: BLE001 - the parent shows it
        traceback.print_exc()
        os._exit(1)


class _Counted(Engine):
    """An engine of which it is known how many commands it has handled, and when it has nothing left to do."""

    def __init__(self, emit: Emit, reporter: _Reporter) -> None:
        super().__init__(emit)
        self._reporter = reporter

    def handle(self, command: Command, at_s: float | None = None) -> None:
        super().handle(command, at_s)
        self._reporter.n_handled += 1
        self._reporter.changed(busy=self.busy)

    def step(self) -> None:
        super().step()
        if not self.busy:
            self._reporter.changed(busy=False)

    def give_up(self, note: str) -> tuple[Command, ...]:  # noqa: ARG002 - the parent says it
        """An error nobody expected ends this process: the parent starts another one."""
        self._reporter.finish()
        os._exit(1)


class _Reporter(threading.Thread):
    """Writes what the engine says, as it comes: several events at once where they come faster than `REPORT_S`."""

    def __init__(self, parent: Parent) -> None:
        super().__init__(name="kvdesk-report", daemon=True)
        self._parent = parent
        self._ready, self._due = threading.Event(), threading.Event()
        self._over = False
        self.n_handled, self._busy = 0, False
        self.host = Host(lambda emit: _Counted(emit, self))
        self._subscription: Subscription = self.host.subscribe(self._ready.set)

    def changed(self, *, busy: bool) -> None:
        """The engine has handled a command, or has nothing left to do."""
        self._busy = busy
        self._due.set()
        self._ready.set()

    def finish(self) -> None:
        """Write what is left, and nothing more."""
        self._over = True
        self._due.set()
        self._ready.set()
        self.join()

    def run(self) -> None:
        written_s = 0.0
        while True:
            self._ready.wait()
            if (left_s := written_s + REPORT_S - time.monotonic()) > 0:
                self._due.wait(left_s)
            self._due.clear()
            self._ready.clear()
            over, n_handled, busy = self._over, self.n_handled, self._busy  # before the events: see `Report`
            events = self._subscription.take()
            if any(isinstance(event, ModelLoaded) for event in events):
                gc.freeze()  # what was loaded stays: collections between tokens need not look at it
            told = tuple(event for event in events if not isinstance(event, BackendReady))  # the parent's host says it
            self._parent.send(frame(Report, Report(n_handled, busy, told)))
            if over:
                return
            written_s = time.monotonic()
