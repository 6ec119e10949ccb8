"""Standard output and error that take every text: what their encoding lacks is written as JSON would, `\\u4f60`."""

import codecs
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from kvdesk.errors import explained
from kvdesk.translation import tr

_ESCAPING = "kvdesk.escaping"


def take_every_text() -> None:
    """From now on no text fails to be written, whatever encoding the terminal, a pipe or a file asks for."""
    codecs.register_error(_ESCAPING, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if there is no terminal, as in Windows' own start menu
            stream.reconfigure(errors=_ESCAPING)


def say(line: str) -> None:
    """A line on standard error, at once: progress, remarks and what went wrong."""
    print(line, file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """Lines on standard output, at once, for a command that goes on until Ctrl+C."""
    print(text, flush=True)


def private_file(path: Path) -> BinaryIO:
    """A new file that nobody else can read: it will hold prompts. Raises UserError."""
    file = new_file(path, 0o600)
    tell(tr("{file} contains prompts; only you can read it.").format(file=path))
    return file


class Log:
    """A private file that a command can do without. Once it cannot be written, one line says so, and the rest is left
    out. None: no file.

    is_whole  nothing was left out
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = private_file(path) if path is not None else None
        self.is_whole = True

    def write(self, data: bytes) -> None:
        """At the end of the file, for others to read at once."""
        if self._file is None:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            said = tr("{file} cannot be written any more: {strerror}. Everything else goes on.")
            say(said.format(file=self._path, strerror=error.strerror))
            self.is_whole = False
            self.close()

    def close(self) -> None:
        """May be called again."""
        if self._file is not None:
            with suppress(OSError):  # of what is still in the buffer
                self._file.close()
            self._file = None


def new_file(path: Path, mode: int = 0o666) -> BinaryIO:
    """A new file. Raises UserError, also if there is one already."""
    with explained(tr("{file} cannot be written: {strerror}."), file=path):
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """In UTF-16 units, so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end
