"""`kvdesk bench cache`: what the cache saves, scenario by scenario. Each figure is a ratio within one run.

After every scenario the whole cache of each engine it used is audited: a figure of a wrong map would count for nothing.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kvdesk.errors import KvdeskError, UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.cache import (
    beside,
    compact,
    equal,
    exact,
    load,
    prefix,
    rounding,
    swap,
    together,
    verify,
)
from kvdesk.experiments.outcome import Outcome
from kvdesk.settings import ContextSettings

SCENARIOS: dict[str, Callable[[Bench], Outcome]] = {
    "hundred": equal.hundred,
    "seeds": equal.seeds,
    "prefix": prefix.system_prompt,
    "fork": prefix.fork,
    "memory": swap.memory,
    "disk": swap.disk,
    "restart": swap.restart,
    "four": together.four,
    "beside": beside.in_empty_cache,
    "beside-others": beside.among_others,
    "verify": verify.beside,
    "one-busy": load.one_busy,
    "two-busy": load.two_busy,
    "compaction": compact.fragmented,
    "exact": exact.exact,
    "rounding": rounding.rounding,
}
TEXTS = frozenset({"prefix", "fork", "memory", "disk", "restart"})
"""Scenarios that compare texts with those of a fresh start, token for token: they run with `exact`."""


def run(
    path: Path, settings: ContextSettings, rounds: int, say: Callable[[str], None], only: Sequence[str] = ()
) -> dict[str, object]:
    """Run the scenarios, all or those named; figures under "figures", everything else by scenario. Raises UserError."""
    if unknown := [name for name in only if name not in SCENARIOS]:
        raise UserError(f"There is no scenario {', '.join(unknown)}. There are: {', '.join(SCENARIOS)}.")
    scenarios = {}
    figures: dict[str, object] = {}
    for name in only or SCENARIOS:
        say(f"{name}: {(SCENARIOS[name].__doc__ or name).splitlines()[0]}")
        used = settings.model_copy(update={"exact": True}) if name in TEXTS else settings
        scenarios[name] = result = _measure(Bench(path, used, {"rounds": rounds}, say=say), SCENARIOS[name])
        figures |= {f"{name}.{figure}": value for figure, value in result["figures"].items()}  # type: ignore[attr-defined]
    return {"passed": all(s["passed"] for s in scenarios.values()), "figures": figures, "scenarios": scenarios}


def _measure(bench: Bench, scenario: Callable[[Bench], Outcome]) -> dict[str, object]:
    """One scenario: passed when every bar was reached and every map was right. One that cannot be run has failed."""
    start = time.perf_counter()
    try:
        outcome = scenario(bench)
    except KvdeskError as error:
        bench.say(f"  FAIL {error}")
        return {"passed": False, "audit": bench.audited, "problem": f"{error} {error.detail}".strip(), "figures": {}}
    passed = outcome.passed and bench.audited == "verified"
    for figure in outcome.figures:
        bars = ", ".join(f"{bar.limit:.4g}" for bar in figure.bars)
        bench.say(f"  {'ok  ' if figure.holds else 'FAIL'} {figure.name}: {figure.value:.4g} (bar {bars})")
    if bench.audited != "verified":
        bench.say(f"  FAIL the map: {bench.audited}")
    seconds = round(time.perf_counter() - start, 1)
    return {
        "passed": passed,
        "seconds": seconds,
        "audit": bench.audited,
        "figures": outcome.as_json(_rounded)["figures"],
        "raw": _rounded(outcome.raw),
    }


def _rounded(value: object) -> object:
    """Numbers with as many digits as they are worth."""
    match value:
        case float():
            return float(f"{value:.5g}")
        case dict():
            return {key: _rounded(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_rounded(inner) for inner in value]
        case _:
            return value
