"""`kvdesk bench engine|ui --against CHECKOUT`: this kvdesk and that of another checkout, a round of each in turns.

Owns the children, which figures can be compared, and their ratios. Must never know: how a figure is measured. A ratio
is above 1 if this kvdesk is better, whatever the figure is.
"""

import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.errors import UserError
from kvdesk.experiments.statistics import geometric_mean
from kvdesk.translation import tr

MORE_IS_BETTER, LESS_IS_BETTER = 1, -1
_UNITS = {
    **dict.fromkeys(("tok_s", "per_s"), MORE_IS_BETTER),
    **dict.fromkeys(("ms", "s", "seconds", "bytes", "cores"), LESS_IS_BETTER),
}
"""How values are named that are better when they are more or less; of other values nobody knows it."""
_NOT_MEASURED = ("figures", "allowed_bytes")
"""Of a result: the judged figures, which say what is better, and what is allowed."""
_PASSED_OR_NOT = (0, 1)
ROUND_LIMIT_S = 900.0
"""Of one side. A round takes one to three minutes on two cores that nobody else uses."""
BRIEF_UI = Path(__file__).parent / "ui" / "brief.py"


@dataclass(frozen=True, slots=True)
class Value:
    """One figure of one round. sense: MORE_IS_BETTER or LESS_IS_BETTER."""

    value: float
    sense: int


Figures = Mapping[str, Value]


@dataclass(slots=True)
class Side:
    """A kvdesk that measures: this one (folder None), or that of a checkout."""

    name: str
    folder: Path | None
    what: str
    only: Sequence[str]
    options: Sequence[str]

    def measure(self) -> Figures:
        """One round. Raises UserError if the child says why it cannot, or nothing at all, or does not end."""
        code, out, said = self._run()
        if code in _PASSED_OR_NOT and (figures := read(out)):
            return figures
        raise UserError(tr("{name} measured nothing (exit code {code}).").format(name=self.name, code=code), said)

    def _run(self) -> tuple[int | None, str, str]:
        arguments = ["bench", self.what, "--rounds", "1", *self.options]
        if self.only:
            arguments += ["--only", *self.only]
        arguments.append("--json")
        command = child_command(*arguments)
        if self.folder is not None:
            command = [_python(self.folder), "-m", "kvdesk", *arguments]
        if self.what == "ui":
            command = [command[0], str(BRIEF_UI), *arguments]
        parts: list[bytes] = []
        deadline = time.monotonic() + ROUND_LIMIT_S
        with Child(command, stdout="bytes", folder=self.folder) as child:
            try:
                while True:
                    parts.append(child.receive(deadline - time.monotonic()))
            except ChildStopped as stopped:
                if stopped.reason == "time":
                    sentence = tr("{name} did not measure one round in {minutes:.0f} minutes.")
                    raise UserError(
                        sentence.format(name=self.name, minutes=ROUND_LIMIT_S / 60), stopped.detail
                    ) from stopped
            return child.wait(None), b"".join(parts).decode("utf-8", "replace"), child.last_words


def run(
    what: str,
    checkout: Path,
    *,
    rounds: int,
    minutes: float,
    only: Sequence[str],
    options: Sequence[str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Rounds of both in turns, who begins changes every time; fewer of them if they would take more than `minutes`.
    options: more of the command line, for both.

    Raises UserError.
    """
    checkout = checkout.absolute()
    if not (checkout / "kvdesk" / "__main__.py").is_file():
        raise UserError(tr("{folder} is no checkout of kvdesk.").format(folder=checkout))
    now, then = Side("now", None, what, only, options), Side("then", checkout, what, only, options)
    found: dict[str, list[Figures]] = {now.name: [], then.name: []}
    end = time.monotonic() + 60 * minutes
    longest = 0.0
    for number in range(rounds):
        begun = time.monotonic()
        if number and begun + longest > end:
            say(f"no further round: it would take more than {minutes:g} minutes")
            rounds = number
            break
        for side in (now, then) if number % 2 == 0 else (then, now):
            began = time.monotonic()
            found[side.name].append(side.measure())
            say(f"round {number + 1} of {rounds}, {side.name}: {time.monotonic() - began:.0f} s")
        longest = max(longest, time.monotonic() - begun)
    result = compare(found[now.name], found[then.name])
    return {"what": what, "against": str(checkout), "rounds": rounds, **result}


def compare(now: Sequence[Figures], then: Sequence[Figures]) -> dict[str, Any]:
    """Of each figure that both have in every round its medians, and the mean ratio of rounds that belong together."""
    ours, theirs = _in_all(now), _in_all(then)
    figures, not_compared = {}, []
    for name in (name for name in ours if name in theirs):
        a, b = [round_[name].value for round_ in now], [round_[name].value for round_ in then]
        if min(*a, *b) <= 0:
            not_compared.append(name)  # it has no ratio
            continue
        sense = now[0][name].sense
        ratio, low, high = geometric_mean([(x / y) ** sense for x, y in zip(a, b, strict=True)])
        figures[name] = {
            "now": statistics.median(a),
            "then": statistics.median(b),
            "ratio": round(ratio, 4),
            "low": round(low, 4) if len(a) > 1 else None,
            "high": round(high, 4) if len(a) > 1 else None,
            "less_is_better": sense == LESS_IS_BETTER,
        }
    return {
        "figures": figures,
        "only_now": [name for name in ours if name not in theirs],
        "only_then": [name for name in theirs if name not in ours],
        "not_above_0": not_compared,
    }


def table(result: Mapping[str, Any]) -> Iterator[str]:
    """One line a figure, then what could not be compared."""
    figures = result["figures"]
    width = max((len(name) for name in figures), default=0)
    heading = tr("ratio (above 1: better now), 95 % interval")
    yield f"{'':<{width}}  {'now':>10}  {'then':>10}  {heading}"
    for name, of in figures.items():
        interval = f"{of['low']:.3f} to {of['high']:.3f}" if of["high"] is not None else tr("one round: not known")
        yield f"{name:<{width}}  {of['now']:>10.5g}  {of['then']:>10.5g}  {of['ratio']:.3f}  {interval}"
    told = {
        "only_now": tr("Only this kvdesk has: {names}"),
        "only_then": tr("Only the other has: {names}"),
        "not_above_0": tr("Without a ratio, since a value is 0: {names}"),
    }
    for key, sentence in told.items():
        if result[key]:
            yield sentence.format(names=", ".join(result[key]))


def read(out: str) -> dict[str, Value]:
    """The figures of the JSON that a kvdesk gives on standard output; none if it gives something else."""
    try:
        result = json.loads(out)
    except ValueError:
        return {}
    if not isinstance(result, dict):
        return {}
    judged = {name: Value(float(of["value"]), _sense(of["at_least"])) for name, of in result.get("figures", {}).items()}
    return judged | dict(_values("", {key: of for key, of in result.items() if key not in _NOT_MEASURED}))


def _values(name: str, of: object, sense: int = 0) -> Iterator[tuple[str, Value]]:
    """Those whose name, or the name of what they are in, says what is better; of a list its median."""
    if isinstance(of, dict):
        for key, inner in of.items():
            yield from _values(f"{name}.{key}" if name else str(key), inner, _sense_of(str(key)) or sense)
    elif sense and (numbers := list(_numbers(of))):
        yield name, Value(statistics.median(numbers), sense)


def _numbers(of: object) -> Iterator[float]:
    if isinstance(of, list):
        for inner in of:
            yield from _numbers(inner)
    elif isinstance(of, int | float) and not isinstance(of, bool):
        yield float(of)


def _sense_of(key: str) -> int:
    """By the unit at the end of a name, or before "of" and "n": "seconds_of_a_bare_loop"."""
    words = re.sub(r"_(of|n)_.*", "", key)
    return next((sense for unit, sense in _UNITS.items() if words == unit or words.endswith(f"_{unit}")), 0)


def _sense(at_least: bool) -> int:
    return MORE_IS_BETTER if at_least else LESS_IS_BETTER


def _in_all(rounds: Sequence[Figures]) -> list[str]:
    return [name for name in rounds[0] if all(name in figures for figures in rounds)]


def _python(checkout: Path) -> str:
    """Of the checkout's own environment, or this one, which imports the checkout's package."""
    own = (checkout / ".venv" / place for place in ("bin/python", "Scripts/python.exe"))
    return next((str(python) for python in own if python.exists()), sys.executable)
