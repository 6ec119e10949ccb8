"""The process of llama-cpp-python's own server. Its arguments are those of `python -m llama_cpp.server`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from kvdesk.children import entry
from kvdesk.children.entry import Parent

CHILD = "tests.benchmarks.peers.binding_server_child"
NAME = "llama_cpp.server"


def child_main(_parent: Parent, argv: Sequence[str]) -> int:
    """Serves until the parent ends: started by itself the server would go on, and be measured beside the next
    benchmark.
    """
    os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"  # before the engine is loaded
    sys.argv = [NAME, *argv]
    runpy.run_module(NAME, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(entry.run(f"{CHILD}:child_main", sys.argv[1:]))
