"""The process that reads a file of conversations for the window: however large or hostile it is, it costs no more.

Gets the path as its argument and writes one line of JSON for each thing it finds. Ends with the process that started
it.

    ["progress", done, total]                bytes of JSON
    ["chat", format, fields, left out]       a conversation without its messages, as `json_file.as_values` gives it
    ["message", fields]                      the next message of that conversation
    ["end"]                                  that was all
    ["error", sentence, detail]              the file is refused; nothing of it counts
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kvdesk.conversations.porting import formats, json_file
from kvdesk.errors import KvdeskError, unexpected
from kvdesk.library.child import limit_memory, read_parent
from kvdesk.translation import tr

MEMORY_LIMIT: Final = 2 << 30
"""Bytes of address space: a chat of `LARGEST_VALUE` that is nothing but small objects takes less."""


def child_main(argv: Sequence[str]) -> int:
    """`argv`: the path of the file. Returns 0 when all of it was read, 2 when not."""
    read_parent()
    limit_memory(MEMORY_LIMIT)
    try:
        for found in formats.read(Path(argv[0]), lambda done, total: _say("progress", done, total)):
            _say("chat", found.format, json_file.as_values(found.conversation), dict(found.left_out))
            for message in found.conversation.messages:
                _say("message", json_file.as_values(message))
        _say("end")
    except KvdeskError as error:
        _say("error", str(error), error.detail)
        return 2
    except MemoryError:
        _say("error", tr("This file needs more memory to be read than kvdesk gives it."), "")
        return 2
    except Exception as error:  # noqa: BLE001 - the process's edge: told to whoever waits
        _say("error", unexpected(error), repr(error))
        return 2
    return 0


def _say(*told: Any) -> None:
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
    sys.stdout.buffer.flush()
