"""`kvdesk audit`: random operations on the cache, every one compared with the engine in every cell."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.experiments.benchmarks import audit
from kvdesk.translation import tr

_SMALL = {"n_batch": 96, "n_ubatch": 32, "n_seq_max": 4, "threads": 1}
"""Defaults that differ from those of other commands: few cells fill up soon, and the engine says little of many."""
_N_CTX = {(False, False): 256, (True, False): 1024, (False, True): 512, (True, True): 2048}
"""Cells by (streams, small window cache): few, but more than a window cache has."""


def main(argv: Sequence[str]) -> int:
    """Exit code 0 with no mismatch, 1 with one. Raises KvdeskError."""
    parser = Parser("audit", tr("Random operations on the cache, every one compared with the engine in every cell."))
    parser.add_argument("--ops", type=int, default=2000, metavar="N", help=tr("operations (default 2000)"))
    parser.add_argument("--seed", type=int, default=1, metavar="S", help=tr("same seed, same operations (default 1)"))
    parser.flag("--json", tr("the result as one JSON object on standard output"))
    options.add_report(parser, tr("save the report of the last mismatch here"))
    options.add_model(parser)
    options.add_context(parser)
    parser.set_defaults(**_SMALL)
    args = parser.parse_args(argv)
    if args.ops < 1:
        parser.error(tr("--ops: at least one operation"))
    options.check_report(parser, args)
    if args.n_ctx is None:
        args.n_ctx = _N_CTX[args.streams, args.no_swa_full]
    progress = Progress(args.ops, sys.stderr, time.monotonic)
    try:
        tally = audit.run(options.model_path(args), options.context_settings(args), args.ops, args.seed, progress.say)
    finally:
        progress.end()
    if args.report and tally.report:
        args.report.write_text(tally.report, encoding="utf-8")
    print(json.dumps(tally.as_json(), indent=2) if args.json else _words(tally))
    return 1 if tally.mismatches else 0


class Progress:
    """Says how far an audit is: a line that changes on a terminal, a new one every few seconds elsewhere."""

    def __init__(self, n_ops: int, out: TextIO, clock: Callable[[], float]) -> None:
        self._n_ops, self._out, self._clock = n_ops, out, clock
        self._every_s = 0.2 if out.isatty() else 5.0
        self._said_s = clock()
        self._is_open = False  # the line can still change

    def say(self, t: audit.Tally) -> None:
        now = self._clock()
        if now - self._said_s >= self._every_s:
            self._said_s = now
            line = tr("{ops:,} of {n_ops:,} operations, {mismatches} mismatches, {seconds:.0f} s").format(
                ops=t.ops, n_ops=self._n_ops, mismatches=t.mismatches, seconds=t.seconds
            )
            self._is_open = self._out.isatty()
            print(
                f"\r{line}\033[K" if self._is_open else line,
                end="" if self._is_open else "\n",
                file=self._out,
                flush=True,
            )

    def end(self) -> None:
        """What is written next begins its own line."""
        if self._is_open:
            print(file=self._out, flush=True)


def _words(t: audit.Tally) -> str:
    codes = ", ".join(f"rc {code}: {n}" for code, n in sorted(t.codes.items()))
    lines = [
        tr("{ops} operations, {decodes} decodes, {maps} maps and {blobs} states compared in {seconds} s").format(
            ops=t.ops, decodes=t.decodes, maps=t.maps, blobs=t.blobs, seconds=t.seconds
        ),
        tr("return codes: {codes}; calls refused: {refused}").format(codes=codes, refused=t.refused),
        tr("mismatches: {mismatches}").format(mismatches=t.mismatches),
    ]
    return "\n".join([*lines, t.first] if t.first else lines)
