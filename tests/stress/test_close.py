"""The window closed at random moments, started a second time, left without a screen: it ends soon, and keeps all."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.stress.conftest import Row, forms
from tests.stress.driven import START_S, Driven, Kept, make_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and X11 are a Unix matter")
END_S = 2.0
"""So long a window may take from being asked to close to the end of its process."""
GIVE_UP_S = 30.0


@forms(1, 60)
def test_closed(row: Row, tmp_path: Path, n: int) -> None:
    """By its close button or by the system (SIGTERM), from the start of the event loop on."""
    home, kept, took = tmp_path / "home", Kept(), list[float]()
    make_home(home)
    for name, numbers in row.rounds("closed", n):
        after_s, by_signal = numbers.uniform(0.0, 5.0), numbers.random() < 0.3
        run = Driven(home, name, *(() if by_signal else ("--close", f"{after_s:.3f}")))
        assert run.wait_until(lambda run=run: bool(run.told("built"))), f"{name}: it did not start: {run.said()}"  # type: ignore[misc]
        run.live_for(after_s + 0.2 * by_signal)
        if by_signal:
            run.process.send_signal(signal.SIGTERM)
        problems, seconds = ending(run)
        took.append(seconds)
        problems += kept.check(home, run)
        assert not problems, f"{name}, closed after {after_s:.2f} s: {problems}"
    took.sort()
    row.say(f"closed: median {took[len(took) // 2]:.2f} s, longest {took[-1]:.2f} s")


def ending(run: Driven) -> tuple[list[str], float]:
    """What is wrong with how a run ended that was asked to, and the seconds it took since it heard of it."""
    code = run.end(GIVE_UP_S)
    if code is None:
        return [f"it did not end; {run.told()[-3:]}"], GIVE_UP_S
    closing, closed = run.told("closing"), run.told("closed")
    seconds = run.ended_at - closing[0]["at"] if closing else 0.0
    if closing and closed:  # without what it waited for a processor that others had
        seconds -= closed[0]["waited_s"]
    problems = [] if code == 0 else [f"exit code {code}: {run.said()}"]
    if seconds > END_S:
        problems.append(f"{seconds:.2f} s to the end; {run.told('act')[-2:]}")
    return problems, seconds


@forms(1, 25)
def test_second_starts(row: Row, tmp_path: Path, n: int) -> None:
    """Several at once, on a home that is new or was used: one window, every other start ends well."""
    home, kept = tmp_path / "home", Kept()
    for name, numbers in row.rounds("second starts", n):
        if numbers.random() < 0.3 and home.exists():
            shutil.rmtree(home)
            kept = Kept()
        if not home.exists():
            make_home(home)
        runs = [Driven(home, f"{name}:{i}") for i in range(numbers.randint(2, 3))]
        problems = one_winner(runs, numbers)
        for run in runs:
            if run.told("built"):  # the others stored and deleted nothing
                problems += kept.check(home, run)
        assert not problems, f"{name}: {problems}"


def one_winner(runs: list[Driven], numbers: Random) -> list[str]:
    """Wait until one window is there and all others have ended; then close it."""
    deadline = time.monotonic() + START_S
    while not any(run.told("ready") for run in runs) and time.monotonic() < deadline:
        time.sleep(0.05)
    winners = [run for run in runs if run.told("built")]
    if not winners:
        return [f"no window; {[(run.end(0.0), run.said()) for run in runs]}"]
    problems = [f"{len(winners)} windows"] if len(winners) != 1 else []
    others = [(run.end(GIVE_UP_S), run.said()) for run in runs if run not in winners]
    problems += [f"a start beside it ended with {code}: {said}" for code, said in others if code != 0]
    winners[0].live_for(numbers.uniform(0.0, 1.0))
    if winners[0].process.poll() is None:
        winners[0].process.send_signal(signal.SIGTERM)
    return problems + ending(winners[0])[0]


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed: no screen can vanish")
@forms(1, 15)
def test_vanished(row: Row, tmp_path: Path, n: int) -> None:
    """The X server dies under the window: the process ends, which is Qt's doing, and what was shown is kept."""
    home, kept, codes = tmp_path / "home", Kept(), Counter[int | None]()
    make_home(home)
    for name, numbers in row.rounds("screens that vanish", n):
        with subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server:
            assert server.stdout
            display = f":{server.stdout.readline().decode().strip()}"
            run = Driven(home, name, env={**os.environ, "QT_QPA_PLATFORM": "xcb", "DISPLAY": display})
            came = run.wait_until(lambda run=run: bool(run.told("ready")))  # type: ignore[misc]
            run.live_for(numbers.uniform(0.0, 3.0))
            server.kill()
        assert came, f"{name}: it did not start: {run.said()}"
        code = run.end(GIVE_UP_S)
        codes[code] += 1
        problems = kept.check(home, run, run.ended_at) if code is not None else ["it did not end"]
        assert not problems, f"{name}, exit code {code}: {problems}"
    row.say(f"screens that vanish: exit codes {dict(codes)}; most lost {1000 * max(kept.lost_s):.0f} ms")
