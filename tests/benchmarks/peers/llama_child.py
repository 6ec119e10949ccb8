"""The process of llama-cpp-python's `Llama`, which gets requests and says pieces. Its arguments are the file and
the settings, as JSON.

It has one of its own because two threads of one process that compute with ggml halve each other: llama-cpp-python is
built with OpenMP, and where libgomp manages more threads than there are processors (libgomp/config/linux/wait.h), those
that wait for each other within a token sleep at once instead of a little later. Measured here: 54 instead of 112 tok/s.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from kvdesk.children import entry
from kvdesk.children.entry import Parent
from kvdesk.experiments.benchmarks.baselines import made_llama
from kvdesk.settings import ContextSettings

CHILD = "tests.benchmarks.peers.llama_child"


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """Answers until the parent ends. A request `{"stop": true}` is for the answer that is under way."""
    llama = made_llama(Path(argv[0]), ContextSettings.model_validate_json(argv[1]))
    parent.send_value({"ready": True})
    while True:
        request = parent.receive_value()
        if "stop" in request:  # it had ended
            continue
        try:
            reason = None
            for chunk in llama.create_chat_completion(
                request["messages"], temperature=0.0, repeat_penalty=1.0, max_tokens=request["n_tokens"], stream=True
            ):
                choice = chunk["choices"][0]
                reason = choice.get("finish_reason") or reason
                if new := choice["delta"].get("content"):
                    parent.send_value({"text": new})
                if parent.has_message:  # nothing but a stop comes before the end
                    break
            parent.send_value({"end": reason})
        except (ValueError, RuntimeError) as error:  # the prompt is too long, llama_decode failed
            parent.send_value({"failed": str(error).rstrip(".")})


if __name__ == "__main__":
    sys.exit(entry.run(f"{CHILD}:child_main", sys.argv[1:]))
