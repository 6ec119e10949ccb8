"""`kvdesk bench ui` of the checkout in the working folder, with short answers and none for more certainty: a round of
`--against`. `python brief.py bench ui …`, run by the checkout's Python.

Other checkouts have no option for that, and the bench of an old one gives up to 34 answers of 320 tokens in one round.
"""

import importlib
import sys
from pathlib import Path

MAX_TOKENS = 64
BENCHES = ("kvdesk.dev.bench_ui", "tests.benchmarks.ui.window")
"""Where the bench was, and where it is. In this order: `tests` may also be found in a checkout that is installed."""


def shorten() -> None:
    """Shorten the answers of the checkout's bench. Raises ModuleNotFoundError if it has none."""
    for name in BENCHES:
        try:
            bench = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if name == BENCHES[-1] or not name.startswith(error.name or "?"):
                raise
        else:
            bench.MAX_TOKENS = MAX_TOKENS  # type: ignore[attr-defined]
            bench.MOST_ROUNDS = 1  # type: ignore[attr-defined]
            return


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    shorten()
    from kvdesk.__main__ import main

    sys.exit(main())
