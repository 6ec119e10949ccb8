"""The key of the server behind the window's switch: a file that only its owner can read."""

import contextlib
from pathlib import Path
from typing import Final

from kvdesk import paths
from kvdesk.whole_file import write_whole

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
    write_whole(file, f"{key}\n".encode(), mode=0o600)
    return key
