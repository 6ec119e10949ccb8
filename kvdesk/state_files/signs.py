"""Whether a file is worth a try as a saved KV cache, by its name and its first bytes. Reads no more of it."""

from pathlib import Path
from typing import Final

from kvdesk.paths import open_regular

_SUFFIX: Final = ".kvstate"  # of kvdesk's own
_MAGIC: Final = (b"qsgg", b"nsgg")
"""A slot's or sequence's ("ggsq", little endian), and a session's ("ggsn")."""


def looks_like_state(path: str) -> bool:
    """False also for what cannot be read."""
    if path.endswith(_SUFFIX):
        return True
    try:
        with open_regular(Path(path)) as file:
            return file.read(4) in _MAGIC
    except (OSError, ValueError):
        return False
