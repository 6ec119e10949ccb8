"""`kvdesk bench peers`: kvdesk beside other programs that run the same model. Run it on a quiet machine.

The peers are llama-cpp-python's `Llama` and every OpenAI-compatible server whose address is given: a llama-server,
Ollama. Each row of the table is measured on all of them in turn; it says
how many times as fast kvdesk is, with the 95 % interval, and where it is behind, by how much. A server that is given by
its address must already run, with the same model; a llama-server given by its program is started. Nothing is built or
downloaded.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.errors import KvdeskError
from tests.benchmarks.peers.rows import ROWS
from tests.benchmarks.peers.run import Others, Plan, run
from tests.benchmarks.peers.table import LOADS, text

ROUNDS, MINUTES = 5, 60.0
SHORT_ROUNDS, SHORT_MINUTES = 2, 5.0


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when a table was made, 2 for bad input."""
    loads = range(len(LOADS))
    parser = Parser(
        "bench peers",
        "kvdesk beside other programs that run the same model: llama-cpp-python's Llama, and every OpenAI-compatible "
        "server whose address is given. Each row of the table is measured on all of them in turn; it says how many "
        "times as fast kvdesk is, with the 95 % interval. A server must already run, with the same model: nothing is "
        "built or downloaded. Run it on a quiet machine.",
    )
    parser.several("--url", "URL", "a server, such as http://localhost:8080")
    parser.add_argument(
        "--llama-server", type=Path, metavar="FILE", help="a llama-server, which is started with the same settings"
    )
    parser.add_argument("--peers", nargs="+", default=[], metavar="NAME", help="only these peers, by their columns")
    parser.add_argument("--served-model", default="", metavar="NAME", help="the model on servers that have several")
    rows = f"only these rows: {', '.join(row.id for row in ROWS)}"
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help=rows)
    busy = "beside so many busy processes (default 0 1 2)"
    parser.add_argument("--busy", nargs="+", type=int, choices=loads, metavar="N", help=busy)
    often = f"how often everything is measured (default {ROUNDS})"
    parser.add_argument("--rounds", type=int, metavar="N", help=often)
    longest = f"nothing is begun after so many minutes (default {MINUTES:g})"
    parser.add_argument("--minutes", type=float, metavar="N", help=longest)
    parser.flag("--short", f"{SHORT_ROUNDS} rounds on the quiet machine, at most {SHORT_MINUTES:g} minutes")
    parser.flag("--json", "everything measured as one JSON object on standard output")
    options.add_model(parser)
    options.add_context(parser)
    args = parser.parse_args(argv)
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds takes a number from 1 on")
    if args.minutes is not None and not args.minutes > 0:
        parser.error("--minutes takes a number above 0")
    plan = Plan.of(
        args.only,
        args.busy or ([0] if args.short else loads),
        args.rounds or (SHORT_ROUNDS if args.short else ROUNDS),
        args.minutes or (SHORT_MINUTES if args.short else MINUTES),
    )
    try:
        outcome = run(
            options.model_path(args),
            options.context_settings(args),
            plan,
            Others(args.url, args.served_model, args.llama_server, args.peers),
            lambda line: print(line, file=sys.stderr, flush=True),
            follow_load=args.threads is None,  # who names a number means it, for everybody
        )
    except KvdeskError as error:
        print(error, file=sys.stderr)
        return 2
    table = [*text(outcome.lines, outcome.peers), *outcome.absent.values()]
    print("\n".join(table), file=sys.stderr if args.json else sys.stdout)
    if args.json:
        print(json.dumps(outcome.as_json(), indent=2))
    return 0
