"""`kvdesk bench engine`: the engine with inspection on against the barest loop and against `Llama`, in one run.

Every figure that is judged is a ratio of runs that took turns, so that a machine whose speed drifts changes both.
Inspection: every decode is mirrored and compared with what llama.cpp printed. What it costs when somebody looks as
well, 15 views a second, is measured beside it; `kvdesk bench ui` judges that with the window that draws them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from kvdesk.chat import TurnStats
from kvdesk.lab.bar import Bar
from kvdesk.lab.baselines import BareLoop, LlamaClass
from kvdesk.lab.in_turns import against, in_turns
from kvdesk.lab.talk import Headless, Talk, uncollected
from kvdesk.messages import CloseConversation, ContextReady, LoadModel, RebuildContext, Watch
from kvdesk.settings import ContextSettings, Sampling

GREEDY = Sampling(temperature=0.0, max_tokens=128)
SHORT = Sampling(temperature=0.0, max_tokens=32)
QUESTION = "Explain to a curious child, in many sentences, how a lighthouse keeper spends a stormy night. "
TURNS = 3
"""Answers of each contender in a round."""
REQUEST = "Count slowly from one to fifty in words and say something kind after every number, please. " * 6


def run(path: Path, settings: ContextSettings, rounds: int, say: Callable[[str], None]) -> dict[str, object]:
    """Run everything; returns figures, the values behind them, and whether each bar was reached."""
    headless = Headless()
    ready = next(e for e in headless.do(LoadModel(path, settings)) if isinstance(e, ContextReady)).context
    try:
        with uncollected():
            speeds = _decode_speeds(headless, path, settings, rounds, say)
            six, over_bare = _six_requests(headless)
        say("six equal requests: " + ", ".join(f"{s:.2f} s" for s in six))
        turns = _five_turns(headless)
        say("turn 5: " + f"{turns[-1].reused_tokens} reused, {turns[-1].prefilled_tokens} prefilled")
    finally:
        headless.close()
    allowed = path.stat().st_size + ready.k_bytes + ready.v_bytes + 300 * 2**20
    resident = _resident_bytes(path, settings)
    say(f"resident {resident / 2**20:.0f} MiB of {allowed / 2**20:.0f} MiB allowed")
    bars = {
        "decode_vs_bare_loop": Bar(_ratio(speeds["engine"], speeds["bare"]), 0.97, at_least=True),
        "decode_vs_llama_class": Bar(_ratio(speeds["engine"], speeds["llama"]), 1.0, at_least=True),
        "six_requests_slowest_over_fastest": Bar(max(over_bare) / min(over_bare), 1.15, at_least=False),
        "turn_5_prefilled_over_new": Bar(_prefilled_over_new(turns), 1.0, at_least=False),
        "resident_over_allowed": Bar(resident / allowed, 1.0, at_least=False),
    }
    return {
        "passed": all(bar.passed for bar in bars.values()),
        "figures": {
            name: {"value": round(bar.value, 4), "bar": bar.bar, "at_least": bar.at_least, "passed": bar.passed}
            for name, bar in bars.items()
        },
        "watched_vs_engine": round(_ratio(speeds["watched"], speeds["engine"]), 4),
        "decode_tok_s": {name: [round(v, 1) for v in values] for name, values in speeds.items()},
        "six_requests_s": [round(s, 3) for s in six],
        "six_requests_over_a_bare_loop": [round(r, 3) for r in over_bare],
        "turn_5": {"reused_tokens": turns[-1].reused_tokens, "prefilled_tokens": turns[-1].prefilled_tokens},
        "resident_bytes": resident,
        "allowed_bytes": allowed,
    }


def _decode_speeds(
    headless: Headless, path: Path, settings: ContextSettings, rounds: int, say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Decode speeds in tok/s of the contenders, who take turns; who begins changes every time.

    All make their contexts anew for every round: where memory happens to lie is worth 3 % and stays so for as long as a
    context lives. Runs that are compared lie next to each other, since the machine's own speed drifts more than that.
    """
    session = headless.engine.session
    assert session is not None
    talk = Talk(headless)
    n = talk.answer(QUESTION, GREEDY).stats.generated_tokens
    prompt = session.prompts.tokens(talk.messages[:1]) if session.prompts else []
    headless.do(CloseConversation(talk.id))
    names = ["engine", "bare", "llama", "watched"]
    speeds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        headless.do(RebuildContext(settings))
        bare, llama = BareLoop(session.model, settings), LlamaClass(path, settings)
        runs: dict[str, Callable[[], float]] = {
            "engine": lambda: _engine_tok_s(headless, watched=False),
            "bare": lambda bare=bare: bare.decode_tok_s(prompt, n),  # type: ignore[misc]
            "llama": lambda llama=llama: llama.decode_tok_s(prompt, n),  # type: ignore[misc]
            "watched": lambda: _engine_tok_s(headless, watched=True),
        }
        try:
            for turn in range(TURNS + 1):  # the first warms up
                first = (number + turn) % len(names)
                for name in names[first:] + names[:first]:
                    value = runs[name]()
                    if turn:
                        speeds[name].append(value)
        finally:
            bare.close()
            llama.close()
        told = (f"{k} {statistics.median(v[-TURNS:]):.1f} tok/s" for k, v in speeds.items())
        say(f"round {number + 1}: " + ", ".join(told))
    headless.do(Watch(snapshots=False))
    return speeds


def _engine_tok_s(headless: Headless, *, watched: bool) -> float:
    """Decode speed of one answer in an empty cache, as the other contenders have it."""
    headless.do(Watch(snapshots=watched))
    talk = Talk(headless)
    speed = talk.answer(QUESTION, GREEDY).stats.decode_tok_s
    headless.do(CloseConversation(talk.id))
    return speed


def _six_requests(headless: Headless) -> tuple[list[float], list[float]]:
    """Six independent requests of equal size, one after another (the seeds' failing program): seconds of each, and the
    same over those of the bare loop before and after it.

    Every answer is cut at the same number of tokens, before the model would end it.
    """
    requests = [f"Request {number + 1}. {REQUEST}" for number in range(6)]
    seconds, empty = in_turns(headless, requests, SHORT)
    return seconds, against(seconds, empty)


def _five_turns(headless: Headless) -> list[TurnStats]:
    talk = Talk(headless, "You are brief.")
    return [talk.answer(f"Question {n}: name one thing that is {n} metres long.", GREEDY).stats for n in range(1, 6)]


def _prefilled_over_new(turns: list[TurnStats]) -> float:
    """Prefilled tokens of the last turn over those that were not in the cache when it began: 1.0 is right."""
    before, last = turns[-2], turns[-1]
    new = last.prompt_tokens - (before.prompt_tokens + before.generated_tokens)
    return last.prefilled_tokens / new


def _resident_bytes(path: Path, settings: ContextSettings) -> int:
    """Largest resident memory of a chat in a process of its own, as that process sees it."""
    code = "import sys; from kvdesk.lab.bench_engine import chat_alone; chat_alone(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(path), settings.model_dump_json()]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout)


def chat_alone(path: str, settings: str) -> None:
    """The child of `_resident_bytes`: one long prompt, one answer, then its peak memory in bytes on standard output."""
    headless = Headless()
    headless.do(LoadModel(Path(path), ContextSettings.model_validate_json(settings)))
    Talk(headless).answer(REQUEST * 8, GREEDY)
    headless.close()
    sys.stdout.write(str(_peak_bytes()))


def _peak_bytes() -> int:
    """Peak resident memory of this process. `ru_maxrss` would count the parent's memory from before the exec."""
    memory = psutil.Process().memory_info()
    if (peak_on_windows := getattr(memory, "peak_wset", 0)) > 0:
        return int(peak_on_windows)
    status = Path("/proc/self/status")
    if status.exists():
        highest = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(highest.split()[1]) * 1024
    return int(memory.rss)


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """Median of the ratios of runs that belong together."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
