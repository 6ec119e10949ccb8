"""One window for each folder of data: a second start passes its file to the open window, and ends.

The two talk over a local socket (a named pipe on Windows) that only the same person can open. Not with QLocalServer:
Qt's network module needs libraries that a small system lacks.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Qt, Signal

from kvdesk.errors import UserError
from kvdesk.translation import tr

if TYPE_CHECKING:
    from multiprocessing.connection import _ConnectionBase  # of a socket or, on Windows, of a pipe

ANSWER_S: Final = 5.0
"""So long a window may take to notice a second start."""
_LONGEST_ADDRESS: Final = 100  # bytes; the systems' limits for the path of a socket are 104 and 108
_LONGEST_MESSAGE: Final = 1 << 16
_OPEN: Final = b"open "  # a path, or nothing, follows
_DONE: Final = b"done"
_BYE: Final = b"bye"


def address_in(folder: Path) -> str | None:
    """Where the window of a folder of data listens; None when its path is too long for a socket."""
    if sys.platform == "win32":
        import hashlib

        digest = hashlib.sha256(str(folder.resolve()).lower().encode()).hexdigest()[:16]
        return rf"\\.\pipe\kvdesk-{digest}"
    file = str(folder / "window.socket")
    return file if len(file.encode(errors="surrogateescape")) <= _LONGEST_ADDRESS else None


def hand_over(folder: Path, file: str | None) -> bool:
    """Ask the window that is open to come to the front, and to open `file`; whether there is one.

    Raises UserError when there is one that does not answer.
    """
    address = address_in(folder)
    if address is None or (sys.platform != "win32" and not Path(address).exists()):
        return False
    try:
        with _connected(address, ANSWER_S) as connection:
            path = str(Path(file).absolute()) if file else ""
            connection.send_bytes(_OPEN + path.encode(errors="surrogateescape"))
            if connection.poll(ANSWER_S):
                return connection.recv_bytes(_LONGEST_MESSAGE) == _DONE
    except TimeoutError:  # a window that was stopped, and many starts wait already
        pass
    except (OSError, EOFError):  # no process listens: the socket of a window that has ended or is about to
        return False
    raise UserError(tr("kvdesk is open already, but its window does not answer."))


def _connected(address: str, wait_s: float) -> _ConnectionBase[Any, Any]:
    """To the window. On Linux a socket at which too many wait keeps everyone else waiting (unix(7)): at most so long.

    Raises TimeoutError, and OSError if nobody listens.
    """
    if sys.platform == "win32":
        return Client(address)
    until = time.monotonic() + wait_s
    with socket.socket(socket.AF_UNIX) as end:
        end.setblocking(False)
        while True:
            try:
                end.connect(address)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise TimeoutError from error
                time.sleep(0.02)
        end.setblocking(True)
        return Connection(end.detach())


class SecondStarts(QObject):
    """Hears of further starts. One for each folder of data: call it when the database is this process's own."""

    happened = Signal(str)
    """kvdesk was started once more, with this file or an empty string."""
    _told = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._shown, self._closing = threading.Event(), threading.Event()
        self._listener: Listener | None = None
        self._thread = threading.Thread(target=self._listen, name="kvdesk-starts", daemon=True)
        self._told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)
        self._address = address_in(folder)
        if self._address is None:
            return
        try:
            if sys.platform != "win32":
                Path(self._address).unlink(missing_ok=True)  # of a window that was killed
            self._listener = Listener(self._address, backlog=8)
            if sys.platform != "win32":
                Path(self._address).chmod(0o600)
        except OSError as error:  # a file system without sockets: a second start says that the database is in use
            logging.getLogger(__name__).warning("another start of kvdesk will not bring up this window: %s", error)
            return
        self._thread.start()

    def close(self) -> None:
        """Listen no longer. Must be called before the object goes."""
        if self._listener is None or self._address is None:
            return
        self._closing.set()
        self._shown.set()  # whoever waits for an answer gets none, and starts for itself
        with suppress(OSError, EOFError), _connected(self._address, 0.0) as connection:
            connection.send_bytes(_BYE)
        self._thread.join()
        self._listener.close()
        self._listener = None

    def _listen(self) -> None:
        """On its own thread: one start after the other, each answered once the window has shown itself."""
        assert self._listener is not None
        while not self._closing.is_set():
            with suppress(OSError, EOFError), self._listener.accept() as connection:  # a start may end before its turn
                self._serve(connection)

    def _serve(self, connection: _ConnectionBase[Any, Any]) -> None:
        if not connection.poll(1.0):
            return
        said = connection.recv_bytes(_LONGEST_MESSAGE)
        if not said.startswith(_OPEN):
            return
        self._shown.clear()
        if self._closing.is_set():
            return
        self._told.emit(said.removeprefix(_OPEN).decode(errors="surrogateescape"))
        if self._shown.wait(2 * ANSWER_S) and not self._closing.is_set():
            connection.send_bytes(_DONE)

    def _on_told(self, file: str) -> None:
        self.happened.emit(file)
        self._shown.set()
