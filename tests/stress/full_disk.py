"""Inside a mount namespace (`unshare -rm`): the real application on a disk of a few MB that becomes full.

    full_disk FOLDER NAME SEED    one case; what is wrong goes to the terminal, a line each

The file system holds nothing but the home, or nothing but its states; a second one, also small, holds the rest.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from kvdesk.store.writer import INTERVAL_S, RETRY_S
from tests.stress.driven import Driven, Kept, make_home

WHICH: Final = ("database", "states", "both")
WHEN: Final = ("start", "streaming", "deleting")
SMALL, LARGE = 6 << 20, 64 << 20  # bytes
PATIENCE_S: Final = 1.0
"""On top of the store's own times and of how long the machine was seen to hold things up: until something is said."""
END_S: Final = 30.0


def mount(folder: Path, n_bytes: int) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)], check=True)


class Filler:
    """A file that takes all room of its file system but `left` bytes."""

    def __init__(self, folder: Path, left: int) -> None:
        self._path, self._left = folder / "another program's file", left

    def take(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.truncate(0)
            free = os.statvfs(self._path).f_bavail * os.statvfs(self._path).f_bsize - self._left
            try:
                while free > 0:
                    free -= file.write(bytes(min(free, 1 << 16)))
            except OSError:
                pass  # others were quicker

    def give_back(self) -> None:
        self._path.unlink()


class Case:
    """One case, by its number: which file systems become full, when, and whether there is room again before the end."""

    def __init__(self, folder: Path, name: str, rng: random.Random, which: str, when: str, gives_back: bool) -> None:
        self.home, self.name, self.rng = folder / "home", name, rng
        self.which, self.when, self.gives_back = which, when, gives_back
        self.kept = Kept()
        self.problems: list[str] = []
        mount(self.home, LARGE if which == "states" else SMALL)
        make_home(self.home)
        if which != "both":
            mount(self.home / "states", SMALL if which == "states" else LARGE)
        full = self.home / "states" if which == "states" else self.home
        self.filler = Filler(full, rng.choice((0, 0, 4096, 20_000, 100_000)))

    def play(self) -> None:
        """A session before, so that there is something to lose, then the one on the full disk."""
        first = self._start()
        first.live_for(0.5)
        self._close(first)
        if self.when == "start":
            self.filler.take()
        run = self._start()
        if self.when != "start":
            what = "shown" if self.when == "streaming" else "delete"
            run.wait_until(lambda: bool(run.told(what)), 20)
            self.filler.take()
        run.live_for(self.rng.uniform(1.3, 2.3))
        self._look_at(run, full=True)
        if self.gives_back:
            self.filler.give_back()
            if not run.wait_until(lambda: not _unsaved(run), RETRY_S + 3 * PATIENCE_S):
                self.problems.append(f"still not saved with room: {_unsaved(run)}")
            self._look_at(run, full=False)
            self._close(run)
        else:
            self._end(run)
            again = self._start_without_room()
            self.filler.give_back()
            self.kept.heed(again)
            self._check(run)

    def _start(self) -> Driven:
        run = Driven(self.home, f"{self.name}, {self.rng.random()}")
        if not run.wait_until(lambda: bool(run.told("ready"))):
            self.problems.append(f"it does not start: {run.said()}")
        return run

    def _look_at(self, run: Driven, *, full: bool) -> None:
        """What was shown long enough ago is stored, or the strip says that something is not."""
        old = time.monotonic() - INTERVAL_S - PATIENCE_S - 2 * run.held_up_s
        known = self.kept.texts | stored(run)  # of the sessions before, and of this one
        missing = [name for name, text in shown(run, until=old).items() if not known.get(name, "").startswith(text)]
        if missing and not _unsaved(run):
            self.problems.append(
                f"{len(missing)} messages not saved {'on a full disk' if full else 'with room'}, and unsaid"
            )
        parts = set(self.home.rglob("*.part"))
        run.live_for(0.5)
        if left := [path.name for path in parts if path.exists()]:
            self.problems.append(f"{left} left")

    def _start_without_room(self) -> Driven:
        """It starts, or says in a sentence why not."""
        run = Driven(self.home, f"{self.name}, again")
        if run.wait_until(lambda: bool(run.told("ready"))):
            self._end(run)
        elif run.process.returncode != 2 or run.said().count("\n") or not run.said().endswith("."):
            self.problems.append(f"it does not start on a full disk: {run.process.returncode}, {run.said()[-1500:]}")
        return run

    def _close(self, run: Driven) -> None:
        self._end(run)
        self._check(run)

    def _end(self, run: Driven) -> None:
        """Close the window; what it could not save it says at the end."""
        run.process.send_signal(signal.SIGTERM)
        code, said = run.end(END_S), run.said()
        if code not in (0, 1) or "Traceback" in said or (code == 1) != ("could not be saved" in said):
            self.problems.append(f"exit code {code}: {said[-1500:]}")
        if left := [path.name for path in self.home.rglob("*.part")]:
            self.problems.append(f"{left} left at the end")

    def _check(self, run: Driven) -> None:
        """Nothing was lost, unless its end said so."""
        for problem in self.kept.check(self.home, run):
            if run.process.returncode == 0 or not problem.startswith("shown before the end, and lost"):
                self.problems.append(f"after exit code {run.process.returncode}: {problem}")


def shown(run: Driven, until: float) -> dict[str, str]:
    """The text of each message as it was last shown; without what was deleted afterwards."""
    gone = {line["where"] for line in run.told("delete")}
    return {line["id"]: line["text"] for line in run.told("shown") if line["at"] < until and line["where"] not in gone}


def stored(run: Driven) -> dict[str, str]:
    return {name: text for line in run.told("stored") for name, _, text in line["rows"]}


def _unsaved(run: Driven) -> str:
    """What the strip says now."""
    told: list[dict[str, Any]] = run.told("unsaved")
    return str(told[-1]["sentence"]) if told else ""


def cases() -> list[tuple[str, str, bool]]:
    """Eighteen kinds."""
    return [(which, when, back) for back in (True, False) for when in WHEN for which in WHICH]


def main(folder: Path, name: str, number: int) -> int:
    kinds = cases()
    which, when, gives_back = kinds[number % len(kinds)]
    case = Case(folder, name, random.Random(name), which, when, gives_back)
    case.play()
    what = f"{which} full while {when}, {'then room' if gives_back else 'to the end'}"
    for problem in case.problems:
        print(f"{name} ({what}): {problem}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
