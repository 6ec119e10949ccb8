"""What a file of chats is known by before it is read: asked of every file that is dropped, so it imports no format."""

import json
import re
from pathlib import Path
from typing import Final

from kvdesk.paths import open_regular

ENDINGS: Final = (".json", ".jsonl", ".zip")
"""Of the files that are offered and may be dropped on the window."""
_IN_FOLDER: Final = ("*.conversation.json", "*/*.conversation.json", "*/messages.jsonl", "conversations.json")
_LOOKED_AT: Final = 1 << 16
_SIGNS: Final = re.compile(
    r'"kvdesk conversations"|"mapping"\s*:|"currentlySelected"\s*:|"conv"\s*:\s*\{|"lastModified"\s*:|"dexie"'
    r'|"childrenIds"\s*:|"thread\.message"|"text"\s*:\s*\{\s*"value"\s*:'
)


def looks_like_chats(path: Path) -> bool:
    """Whether a file is worth a try, by its ending and beginning: a ZIP, or JSON with a word of one of the formats; a
    folder by the names of its files.
    """
    name = path.name.lower()
    try:
        if path.is_dir():
            return any(next(path.glob(pattern), None) is not None for pattern in _IN_FOLDER)
        if not name.endswith(ENDINGS):
            return False
        with open_regular(path) as file:
            head = file.read(_LOOKED_AT)
    except OSError:
        return False
    if name.endswith(".zip"):
        return head.startswith(b"PK")
    return _SIGNS.search(head.decode(json.detect_encoding(head), "replace")) is not None
