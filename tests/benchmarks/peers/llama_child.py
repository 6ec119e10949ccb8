"""The process of llama-cpp-python's `Llama`: requests as lines of JSON on standard input, pieces as lines on standard
output. Its arguments are the file and the settings, as JSON.

It has one of its own because two threads of one process that compute with ggml halve each other: llama-cpp-python is
built with OpenMP, and where libgomp manages more threads than there are processors (libgomp/config/linux/wait.h), those
that wait for each other within a token sleep at once instead of a little later. Measured here: 54 instead of 112 tok/s.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kvdesk.benchmarks.baselines import made_llama
from kvdesk.library.child import read_parent
from kvdesk.settings import ContextSettings


def child_main(argv: Sequence[str]) -> int:
    """Answers until the parent ends."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not get between the lines
    requests, stopped = queue.SimpleQueue[dict[str, Any]](), threading.Event()
    read_parent(_lines(requests, stopped))

    def tell(**line: object) -> None:
        os.write(out, (json.dumps(line) + "\n").encode())

    llama = made_llama(Path(argv[0]), ContextSettings.model_validate_json(argv[1]))
    tell(ready=True)
    while True:
        request = requests.get()
        stopped.clear()
        try:
            reason = None
            for chunk in llama.create_chat_completion(
                request["messages"], temperature=0.0, repeat_penalty=1.0, max_tokens=request["n_tokens"], stream=True
            ):
                choice = chunk["choices"][0]
                reason = choice.get("finish_reason") or reason
                if new := choice["delta"].get("content"):
                    tell(text=new)
                if stopped.is_set():
                    break
            tell(end=reason)
        except (ValueError, RuntimeError) as error:  # the prompt is too long, llama_decode failed
            tell(failed=str(error).rstrip("."))


def _lines(requests: queue.SimpleQueue[dict[str, Any]], stopped: threading.Event) -> Callable[[bytes], None]:
    """What the parent sends, in pieces of any length: a request, or `{"stop": true}` for the one that is answered."""
    rest = b""

    def take(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "stop" in request:
                stopped.set()
            else:
                requests.put(request)

    return take


if __name__ == "__main__":
    sys.exit(child_main(sys.argv[1:]))
