"""The process of llama-cpp-python's own server: `--binding-server OPTIONS`, those of `python -m llama_cpp.server`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from kvdesk.children.entry import Parent

FLAG = "--binding-server"
NAME = "llama_cpp.server"


def child_main(_parent: Parent, argv: Sequence[str]) -> int:
    """Serves until the parent ends: started by itself the server would go on, and be measured beside the next
    benchmark.
    """
    os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"  # before the engine is loaded
    sys.argv = [NAME, *argv]
    runpy.run_module(NAME, run_name="__main__", alter_sys=True)
    return 0
