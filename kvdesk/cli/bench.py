"""`kvdesk bench`: measurements that are judged, each a ratio within one run. Run them on a quiet machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from kvdesk.cli import options
from kvdesk.errors import KvdeskError
from kvdesk.lab import bench_engine


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when every bar was reached, 1 when one was not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="kvdesk bench", description=__doc__)
    parser.add_argument("what", choices=["engine"], help="engine: decode speed, equal requests, reuse, memory")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="counted rounds (default 7)")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object on standard output")
    options.add_model(parser)
    options.add_context(parser)
    args = parser.parse_args(argv)
    try:
        result = bench_engine.run(
            options.model_path(args),
            options.context_settings(args),
            max(1, args.rounds),
            lambda line: print(line, file=sys.stderr, flush=True),
        )
    except KvdeskError as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        for name, figure in result["figures"].items():  # type: ignore[attr-defined]
            sign = "at least" if figure["at_least"] else "at most"
            print(f"{'ok  ' if figure['passed'] else 'FAIL'} {name}: {figure['value']} ({sign} {figure['bar']})")
    return 0 if result["passed"] else 1
