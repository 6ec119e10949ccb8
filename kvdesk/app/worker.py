"""The QThread that runs a back end's host, and brings its events to the window's thread.

One signal says that there are events, and is not sent again until they were taken: 20,000 tokens cost 20,000 appends,
not 20,000 queued calls.
"""

import sys
from collections.abc import Callable

from PySide6.QtCore import QObject, QThread, Signal

from kvdesk.backends.base import Backend, Emit
from kvdesk.errors import guarded
from kvdesk.host.host import GIL_SWITCH_S, Host

CLOSE_S = 5.0
"""So long `shut_down` waits for an engine: one that hangs in llama.cpp must not keep the window from closing."""


def local_engine(emit: Emit) -> Backend:
    """llama.cpp in this process. Imported by the thread that runs it: the window need not wait for that."""
    from kvdesk.backends.local.engine import Engine

    return Engine(emit)


class Worker(QThread):
    """Runs a `Host`. The window's thread takes `events` after `events_ready`, and calls `shut_down`."""

    events_ready = Signal()
    """There are events to take. Emitted from the worker's thread, once until they are taken."""

    def __init__(
        self,
        parent: QObject | None = None,
        make_backend: Callable[[Emit], Backend] = local_engine,
        first: Callable[[], object] = lambda: None,
    ) -> None:
        """`first`: what the thread does before it runs the host."""
        super().__init__(parent)
        self._first = first
        self.host = Host(make_backend)
        self.events = self.host.subscribe(self._tell)

    def shut_down(self) -> bool:
        """Refuse new work, stop what runs, and wait until context and model are closed.

        False: the engine hangs. This thread goes on then, and only the end of the process ends it.
        """
        if not self.isRunning():
            return True
        self.host.shut_down()
        return self.wait(round(1000 * CLOSE_S))

    def run(self) -> None:
        sys.setswitchinterval(GIL_SWITCH_S)
        guarded(self._first)
        self.host.run()

    def _tell(self) -> None:
        self.events_ready.emit()
