"""`kvdesk bench`: measurements that are judged, each a ratio within one run. Run them on a quiet machine."""

import argparse
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kvdesk.cli import options
from kvdesk.cli.checkout import of_checkout
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.errors import KvdeskError, UserError
from kvdesk.experiments.benchmarks import engine
from kvdesk.experiments.benchmarks.cache import run
from kvdesk.experiments.benchmarks.cache.run import SCENARIOS
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.translation import tr

UI_ROWS = ("frames", "messages", "decoding", "lab")
"""What `bench ui` can measure separately; here, because what measures it needs Qt."""
Measure = Callable[[Path, ContextSettings, int, Callable[[str], None]], dict[str, object]]


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when every bar was reached, 1 when one was not. Raises KvdeskError."""
    if argv[:1] == ["peers"]:
        return int(of_checkout("benchmarks.peers.command").main(argv[1:]))
    parser = Parser(
        "bench", tr("Measurements that are judged, each a ratio within one run. Run them on a quiet machine.")
    )
    parser.add_argument(
        "what",
        choices=["engine", "cache", "ui", "serve", "peers"],
        help=tr(
            "engine: prefill and decode speed, equal requests, reuse, memory; cache: equal requests, sharing, "
            "swapping, batching, load, compaction, exactness; ui: drawing, stalls, and what the inspector takes (the "
            "real window, on whatever display there is); serve: what HTTP costs, and "
            "several clients at once; peers: beside other programs (`kvdesk bench peers --help`); ui and peers need a "
            "checkout of the source"
        ),
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=tr("counted rounds (default 7, of ui at least; cache 3)")
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help=tr("of cache: {cache}; of engine: {engine}; of ui: {ui}").format(
            cache=", ".join(SCENARIOS), engine=", ".join(engine.ROWS), ui=", ".join(UI_ROWS)
        ),
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help=tr(
            "of engine and ui: rounds of this kvdesk and of that in another folder in turns, and how many times as "
            "good each figure is now (--rounds: of each, default 5)"
        ),
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="N",
        help=tr("of --against: no further round if it would take longer altogether"),
    )
    parser.add_argument(
        "--peer", default="", metavar="URL", help=tr("of serve: another server, such as http://…:8081/v1")
    )
    parser.flag("--json", tr("the result as one JSON object on standard output"))
    options.add_model(parser)
    options.add_context(parser)
    args = parser.parse_args(argv)
    if args.rounds is not None and args.rounds < 1:
        parser.error("--rounds takes a number from 1 on")
    rows: Sequence[str] = {"cache": tuple(SCENARIOS), "engine": engine.ROWS, "ui": UI_ROWS}.get(args.what, ())
    if args.only and not rows:
        parser.error("--only is for `bench cache`, `bench engine` and `bench ui`")
    if args.what != "cache" and (unknown := [name for name in args.only if name not in rows]):
        parser.error(f"--only of `bench {args.what}` takes {', '.join(rows)}, not {', '.join(unknown)}")
    if args.peer and args.what != "serve":
        parser.error("--peer is for `bench serve`")
    if args.against is not None:
        if args.what not in ("engine", "ui"):
            parser.error("--against is for `bench engine` and `bench ui`")
        return _against(args, argv)
    cache = partial(run.run, only=args.only)
    measures: dict[str, Measure] = {
        "engine": partial(engine.run, only=args.only),
        "cache": cache,
        "ui": partial(_ui, only=args.only),
        "serve": partial(_serve, peer=args.peer),
    }
    rounds = args.rounds or (3 if args.what == "cache" else 7)
    result = measures[args.what](options.model_path(args), options.context_settings(args), rounds, say)
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print("\n".join(_table(result)))
    return 0 if result["passed"] else 1


def _against(args: argparse.Namespace, argv: Sequence[str]) -> int:
    """Exit code 0 when the two could be compared: no bar says how much better one must be."""
    own = argparse.ArgumentParser(add_help=False)
    for name in ("--against", "--rounds", "--minutes", "--model", "--peer"):
        own.add_argument(name)
    own.add_argument("--only", nargs="+")
    own.add_argument("--json", action="store_true")
    _, passed_on = own.parse_known_args(argv)
    against = of_checkout("benchmarks.against")
    passed_on.remove(args.what)
    try:
        model = ["--model", str(options.model_path(args))] if args.model else []
        result = against.run(
            args.what,
            args.against,
            rounds=args.rounds or 5,
            minutes=args.minutes,
            only=args.only,
            options=[*model, *passed_on],
            say=say,
        )
    except KvdeskError as error:
        say("\n".join(filter(None, (str(error), error.detail))))
        return 2
    print(json.dumps(result, indent=2) if args.json else "\n".join(against.table(result)))
    return 0


def _table(result: dict[str, Any]) -> Iterator[str]:
    """One line a figure, then what could not be measured, and wrong maps."""
    figures = result["figures"]
    width = max((len(name) for name in figures), default=0)
    for name, figure in figures.items():
        sign = "at least" if figure["at_least"] else "at most "
        verdict = "ok  " if figure["passed"] else "FAIL"
        noise = f" (± {figure['noise']:.2g})" if figure.get("noise") else ""
        yield f"{verdict}  {name:<{width}}  {figure['value']:>10.4g}   {sign} {figure['bar']:.4g}{noise}"
    if result.get("audit", "verified") != "verified":
        yield f"FAIL  the map is {result['audit']}"
    for name, scenario in result.get("scenarios", {}).items():
        if "problem" in scenario:
            yield f"FAIL  {name}: {scenario['problem']}"
        elif scenario["audit"] != "verified":
            yield f"FAIL  {name}: the map is {scenario['audit']}"


def _serve(
    model: Path, context: ContextSettings, rounds: int, say: Callable[[str], None], peer: str
) -> dict[str, object]:
    from kvdesk.experiments.benchmarks import serve

    return serve.run(model, context, rounds, say, peer)


def _ui(
    model: Path, context: ContextSettings, rounds: int, say: Callable[[str], None], only: Sequence[str]
) -> dict[str, object]:
    """In its own home: a measurement leaves nothing in the user's chats."""
    bench_ui = of_checkout("benchmarks.ui.window")
    from kvdesk import paths
    from kvdesk.app.application import owned_process
    from kvdesk.app.display import has_display

    if not has_display():
        raise UserError(tr("There is no display: run it under Xvfb, or with QT_QPA_PLATFORM=offscreen."))
    from kvdesk.store.settings_file import save_settings

    with tempfile.TemporaryDirectory(prefix="kvdesk-bench-") as home:
        os.environ["KVDESK_HOME"] = home
        sampling = Sampling(temperature=0.0, max_tokens=bench_ui.MAX_TOKENS)
        save_settings(Settings(context=context, sampling=sampling, all_instruments=True), paths.settings_file())
        with owned_process():
            result: dict[str, object] = bench_ui.run(model, context, rounds, say, only)
            return result
