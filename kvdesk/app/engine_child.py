"""The child process that runs the engine in safe mode: its host on the main thread, requests in, reports of events out.

Ends with the process that started it. Owns nothing that outlives it but saved states; may die of anything.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence

from kvdesk import translation
from kvdesk.backends.base import Emit
from kvdesk.backends.local.engine import Engine
from kvdesk.backends.process.messages import Cancel, Close, Report, Request, Stop, Submit
from kvdesk.host.host import Host
from kvdesk.host.subscription import Subscription
from kvdesk.library.child import no_core_file
from kvdesk.paths import catalogues
from kvdesk.protocol.chat import BackendReady, ModelLoaded
from kvdesk.protocol.messages import Command
from kvdesk.protocol.wire import frame, read_frame

REPORT_S = 0.08
"""Between two reports while it computes: each wakes three threads, on the processors that compute."""
GIL_SWITCH_S = 0.001
"""A token must not wait 5 ms for a thread that writes a view."""


def child_main(_argv: Sequence[str] = ()) -> int:
    """Runs an engine for the process that holds the other ends of standard input and output. Returns 0."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not get between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the parent's
    no_core_file()
    faulthandler.enable()
    sys.setswitchinterval(GIL_SWITCH_S)
    reporter = _Reporter(out)
    reporter.start()
    threading.Thread(target=_listen, args=(reporter.host,), name="kvdesk-parent", daemon=True).start()
    gc.freeze()
    reporter.host.run()
    reporter.finish()
    return 0


def _listen(host: Host) -> None:
    """Take the parent's requests; end this process, whatever it does, when the parent ends."""
    try:
        while True:
            match read_frame(Request, _read):
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
    except EOFError:
        pass
    except Exception:  # noqa: BLE001 - the parent shows it
        traceback.print_exc()
    finally:
        os._exit(1)


def _read(n_bytes: int) -> bytes:
    """So many bytes of standard input. Raises EOFError."""
    parts = []
    while n_bytes:
        try:
            part = os.read(0, min(n_bytes, 1 << 20))
        except OSError:
            part = b""
        if not part:
            raise EOFError
        parts.append(part)
        n_bytes -= len(part)
    return b"".join(parts)


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

    def __init__(self, out: int) -> None:
        super().__init__(name="kvdesk-report", daemon=True)
        self._out = out
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
            if not self._write(frame(Report, Report(n_handled, busy, told))) or over:
                return
            written_s = time.monotonic()

    def _write(self, data: bytes) -> bool:
        """Whether the parent is still there."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._out, left) :]
        except OSError:
            return False
        return True
