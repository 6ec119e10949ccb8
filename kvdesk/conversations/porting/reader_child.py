"""The process that reads a file of conversations for the window: however large or hostile it is, it costs no more.

Gets the paths as its arguments and says one value for each thing it finds.

    ["progress", done, total]                bytes of JSON
    ["chat", format, fields, left out]       a conversation without its messages, as `json_file.as_values` gives it
    ["message", fields]                      the next message of that conversation
    ["end"]                                  that was all
    ["error", sentence, detail]              the file is refused; nothing of it counts
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kvdesk.children.entry import Parent, limit
from kvdesk.conversations.porting import formats, json_file
from kvdesk.errors import KvdeskError, unexpected
from kvdesk.translation import tr

MEMORY_LIMIT: Final = 2 << 30
"""Bytes of address space: a chat of `LARGEST_VALUE` that is nothing but small objects takes less."""


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: the paths of the files. Returns 0 when all of it was read, 2 when not."""
    limit(MEMORY_LIMIT)
    try:
        path, *others = map(Path, argv)
        for found in formats.read(path, lambda done, total: parent.send_value(["progress", done, total]), others):
            parent.send_value(["chat", found.format, json_file.as_values(found.conversation), found.left_out])
            for message in found.conversation.messages:
                parent.send_value(["message", json_file.as_values(message)])
        parent.send_value(["end"])
    except KvdeskError as error:
        parent.send_value(["error", str(error), error.detail])
        return 2
    except MemoryError:
        parent.send_value(["error", tr("Reading this file needs more memory than kvdesk allows."), ""])
        return 2
    except Exception as error:  # noqa: BLE001 - the process's edge: told to whoever waits
        parent.send_value(["error", unexpected(error), repr(error)])
        return 2
    return 0
