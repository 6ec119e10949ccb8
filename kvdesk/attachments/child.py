"""The child process that reads one file: it may be killed by the file, by a limit, or by its parent.

Answers with one value. Started by `reader`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from kvdesk.attachments.contents import read_contents
from kvdesk.attachments.found import Answer, Unreadable
from kvdesk.attachments.limits import ADDRESS_SPACE, CPU_S, MOST_OUTPUT
from kvdesk.children.entry import Parent, limit


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: the file, and the encoding that a user chose for it."""
    path, *encoding = argv
    limit(ADDRESS_SPACE, CPU_S, MOST_OUTPUT)
    try:
        answer = Answer(read_contents(Path(path), *encoding))
    except Unreadable as error:
        answer = Answer(None, error.problem, error.detail)
    except MemoryError:
        answer = Answer(None, "memory")
    except OSError as error:
        answer = Answer(None, "os", error.strerror or str(error))
    parent.send_value(answer)
    os._exit(0)  # what a library does at the end of a process is of no use here
