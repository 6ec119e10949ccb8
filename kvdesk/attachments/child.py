"""The child process that reads one file: it may be killed by the file, by a limit, or by its parent.

Answers with one line of JSON. Started by `reader`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kvdesk.attachments.contents import read_contents
from kvdesk.attachments.found import Unreadable
from kvdesk.attachments.limits import ADDRESS_SPACE, CPU_S, MOST_OUTPUT
from kvdesk.library.child import limit_memory, read_parent


def child_main(argv: Sequence[str]) -> int:
    """`argv`: the file, and the encoding that a person chose for it."""
    path, *encoding = argv
    limit_memory(ADDRESS_SPACE)
    _limit_more()
    read_parent()
    answer: dict[str, Any]
    try:
        answer = asdict(read_contents(Path(path), *encoding))
    except Unreadable as error:
        answer = {"problem": error.problem, "detail": error.detail}
    except MemoryError:
        answer = {"problem": "memory", "detail": ""}
    except OSError as error:
        answer = {"problem": "os", "detail": error.strerror or str(error)}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    os._exit(0)  # what a library does at the end of a process is of no use here


def _limit_more() -> None:
    """Time of the processor and bytes that are written, where the system limits them."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
