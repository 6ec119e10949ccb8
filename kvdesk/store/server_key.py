"""The key of the server behind the window's switch: a file that only its owner can read."""

import contextlib
import os
from pathlib import Path
from typing import Final

from kvdesk import paths

_MOST_KEY: Final = 200


def key_file() -> Path:
    """Only its owner can read it."""
    return paths.data_dir() / "server_key.txt"


def read_key(file: Path) -> str:
    """The key in the file, which is made if there is none. Raises OSError."""
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        with paths.open_regular(file) as opened:
            key = opened.read(_MOST_KEY).decode("ascii").strip()
        if len(key) >= 8 and key.isprintable():
            return key
    from kvdesk.server.config import new_key

    key = new_key()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as written:
        written.write(f"{key}\n")
    return key
