"""`python -m tests.benchmarks.peers.judged DIR --llama-server FILE`: every figure by which the speed is judged.

Each part is a command in a process of its own: `kvdesk bench peers`, `kvdesk bench cache` or `two_servers`. DIR has the
GGUF files; the parts take them by their size.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kvdesk import paths
from kvdesk.children.process import child_command
from kvdesk.errors import UserError
from tests.benchmarks.peers.llama_class import LlamaPeer
from tests.benchmarks.peers.rows import ROWS, TURN_NAMES
from tests.benchmarks.peers.started_server import LLAMA_SERVER
from tests.places import ROOT

CONTEXT: Final = ("--n-ctx", "8192", "--n-seq-max", "4")
Model = Literal["embedded", "second", "largest"]
"""The embedded one, or one of the folder's by its size."""


class Bar(NamedTuple):
    """kvdesk is at least so many times as fast: by its median, or within the interval."""

    least: float
    by_median: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """what      the command that measures it
    rows      their ids, or scenarios of `bench cache`, whose bars are their own as those of `two_servers` are
    peers     beside which `bench peers` measures them
    load      busy processes
    bars      of rows, by their ids; of the first turn of a chat there is none
    minutes   after which no row is begun, those of `bench cache` excepted; together with these about 50 on two cores.
              Five whole rounds of all rows take 14 of a model of 0.5 B parameters and about 36 of one of 1.5 B
    """

    what: Literal["peers", "cache", "servers"]
    model: Model
    rounds: int
    minutes: float
    rows: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    load: int = 0
    bars: Mapping[str, Bar] = field(default_factory=dict)


ALIKE, TIMES, BACK = Bar(0.98), Bar(1.3, True), Bar(30, True)
QUIET: Final = ("turns", "decode", "prefill", "in-turn")
BOTH: Final = (LlamaPeer.name, LLAMA_SERVER)
PARTS: Final = {
    "second": Part("peers", "second", 5, 9, QUIET, BOTH, bars=dict.fromkeys(QUIET, ALIKE)),
    "busy": Part(
        "peers",
        "second",
        5,
        4,
        ("turns", "decode", "middle"),
        (LLAMA_SERVER,),
        load=1,
        bars={"turns": TIMES, "decode": TIMES, "middle": ALIKE},
    ),
    "servers": Part("servers", "second", 5, 4),
    "largest": Part("peers", "largest", 5, 15, QUIET, BOTH, bars=dict.fromkeys(QUIET, ALIKE)),
    "back": Part("peers", "largest", 1, 6, ("return", "restart"), BOTH[:1], bars={"return": BACK, "restart": BACK}),
    "embedded": Part("peers", "embedded", 5, 3, QUIET, BOTH, bars=dict.fromkeys(QUIET, Bar(0.95))),
    "beside": Part("cache", "second", 1, 5, ("beside", "verify")),
    "beside-largest": Part("cache", "largest", 1, 5, ("beside",)),
}


class Verdict(NamedTuple):
    """Of one figure: what it is, what was measured, and whether that is enough."""

    name: str
    found: str
    passed: bool

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'}  {self.name}: {self.found}"


def command(part: Part, folder: Path, llama_server: Path) -> list[str]:
    """What measures the part. Raises UserError if its model is not there."""
    model = ["--model", str(_model(part.model, folder))]
    common = [*model, "--rounds", str(part.rounds), "--json"]
    limit = ["--minutes", str(part.minutes)]
    only = ["--only", *part.rows] if part.rows else []
    server = ["--llama-server", str(llama_server)]
    match part.what:
        case "cache":
            return child_command("bench", "cache", *common, *only)
        case "servers":
            return [sys.executable, "-m", "tests.benchmarks.peers.two_servers", *server, *common, *only, *limit]
    beside = ["--busy", str(part.load), "--peers", *part.peers]
    return child_command("bench", "peers", *common, *only, *server, *limit, *beside, *CONTEXT)


def verdicts(part: Part, result: Mapping[str, Any]) -> Iterator[Verdict]:
    """Of what the part's command gave, as JSON."""
    if part.what == "cache":
        for name, figure in result["figures"].items():
            side = "at least" if figure["at_least"] else "at most"
            yield Verdict(name, f"{figure['value']:.4g} ({side} {figure['bar']:.4g})", figure["passed"])
        for name, scenario in result["scenarios"].items():
            if said := scenario.get("problem") or (scenario["audit"] != "verified" and scenario["audit"]):
                yield Verdict(name, str(said), passed=False)
        return
    bars = {name: bar for row in ROWS for name in row.names if (bar := part.bars.get(row.id)) and name != TURN_NAMES[0]}
    for line in result["rows"]:
        for peer, ratio in line["peers"].items():
            bar = ALIKE if part.what == "servers" else bars.get(line["what"])
            name = f"{line['what']}, over {peer}"
            if "problem" in ratio:
                yield Verdict(name, ratio["problem"], passed=bar is None)
                continue
            value, high = ratio["times_as_fast"], ratio["high"]
            found = f"{value:.3g} ({ratio['low'] or value:.3g} to {high or value:.3g})"
            if bar is None:
                yield Verdict(name, f"{found}, no bar", passed=True)
                continue
            reached = value if bar.by_median else high or value
            yield Verdict(name, f"{found}, at least {bar.least:g}", reached >= bar.least)


def main(argv: Sequence[str]) -> int:
    """Exit code 0 if every bar was reached, 1 if one was not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="judged", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the GGUF files are")
    parser.add_argument("--llama-server", type=Path, required=True, help="its program")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, help="of each part, in place of its own")
    parser.add_argument("--minutes", type=float, help="of each part, in place of its own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where everything that was measured is written")
    args = parser.parse_args(argv)
    found: dict[str, Any] = {}
    passed = True
    for name in args.only:
        part, start = PARTS[name], time.monotonic()
        part = replace(part, rounds=args.rounds or part.rounds, minutes=args.minutes or part.minutes)
        try:
            asked = command(part, args.folder, args.llama_server)
        except UserError as error:
            print(error, file=sys.stderr)
            return 2
        done = subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        print(f"{name}, {part.model} model, {(time.monotonic() - start) / 60:.1f} minutes")
        try:
            found[name] = json.loads(done.stdout)
        except ValueError:
            found[name], passed = {"exit_code": done.returncode}, False
            print(f"FAIL  it measured nothing (exit code {done.returncode})")
            continue
        for verdict in verdicts(part, found[name]):
            passed &= verdict.passed
            print(verdict, flush=True)
        if args.json is not None:
            args.json.write_text(json.dumps(found, indent=2), "utf-8")
    return 0 if passed else 1


# --- private ----------------------------------------------------------------------------------------------------------


def _model(model: Model, folder: Path) -> Path:
    if model == "embedded":
        if (path := paths.embedded_model()) is None:
            raise UserError("The embedded model is not installed.")
        return path
    files = sorted(folder.glob("*.gguf"), key=lambda path: path.stat().st_size)
    if not files:
        raise UserError(f"There is no GGUF file in {folder}.")
    return files[max(-len(files), -2 if model == "second" else -1)].absolute()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
