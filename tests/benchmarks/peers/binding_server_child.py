"""The process of llama-cpp-python's own server: its arguments are those of `python -m llama_cpp.server`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from kvdesk.library.child import read_parent

NAME = "llama_cpp.server"


def child_main(argv: Sequence[str]) -> int:
    """Serves until the parent ends, however it does: started by itself the server would go on, and be measured beside
    the next benchmark.
    """
    read_parent()
    os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"  # before the engine is loaded
    sys.argv = [NAME, *argv]
    runpy.run_module(NAME, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(child_main(sys.argv[1:]))
