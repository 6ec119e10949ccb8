"""The application in a child process that uses it by random numbers, what it told, and what must be in its database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from kvdesk.settings import CachePolicy, ContextSettings, Sampling, Settings
from kvdesk.store.search import teach
from kvdesk.store.settings_file import save_settings
from kvdesk.store.store import Store
from tests.places import ROOT

START_S = 60.0
LOST_S = 0.25
"""So much of what was shown a kill may take."""
SETTINGS = Settings(
    context=ContextSettings(n_ctx=2048, n_seq_max=4, n_threads=1, n_threads_batch=1),
    sampling=Sampling(max_tokens=200),
    cache=CachePolicy(memory_mb=8, disk_mb=64, prefill_ahead=True),
)


def make_home(home: Path) -> None:
    home.mkdir(exist_ok=True)
    save_settings(SETTINGS, home / "settings.json")


RUNS: list[Driven] = []
"""Those of the current test: `conftest` ends what a failure leaves running."""


class Driven:
    """One run of the application on a home. `held_up_s`: how long this machine kept even a sleeping process waiting."""

    def __init__(self, home: Path, seed: str, *options: str, env: Mapping[str, str] = os.environ) -> None:
        self.told_file = home.parent / f"told-{time.monotonic_ns()}.jsonl"
        self.told_file.touch()
        self.err = self.told_file.with_suffix(".err")
        self.held_up_s = 0.0
        RUNS.append(self)
        self.started = self.ended_at = time.monotonic()
        with self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.stress.driver", str(self.told_file), seed, *options],
                cwd=ROOT, env={**env, "KVDESK_HOME": str(home)}, stdout=err, stderr=err,
            )  # fmt: skip

    def told(self, what: str = "") -> list[dict[str, Any]]:
        """What it told so far, of one kind or all."""
        whole = self.told_file.read_bytes().rpartition(b"\n")[0]
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if what in ("", line["what"])]

    def wait_until(self, so: Callable[[], bool], at_most_s: float = START_S) -> bool:
        """Whether it came to be so while the process lived."""
        deadline = time.monotonic() + at_most_s
        while not so():
            if time.monotonic() > deadline or self.process.poll() is not None:
                return so()
            time.sleep(0.02)
        return True

    def live_for(self, seconds: float) -> None:
        """Let it go on, and see meanwhile how late this process is woken."""
        end = time.monotonic() + seconds
        while (before := time.monotonic()) < end:
            time.sleep(0.01)
            if end - before < 1.0:
                self.held_up_s = max(self.held_up_s, time.monotonic() - before - 0.01)

    def said(self) -> str:
        """What it wrote to the terminal."""
        return self.err.read_text("utf-8", "replace").strip()

    def end(self, at_most_s: float) -> int | None:
        """Its exit code; None if it goes on, and is then killed."""
        try:
            code = self.process.wait(at_most_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self.ended_at = time.monotonic()
        return code

    def kill(self) -> float:
        """kill -9. Returns when (time.monotonic)."""
        self.ended_at = time.monotonic()
        self.process.kill()
        self.process.wait()
        return self.ended_at


@dataclass(slots=True)
class Kept:
    """What a home must hold, over all runs: of every message the last text that was acknowledged."""

    texts: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    asked_to_go: set[str] = field(default_factory=set)  # by the person; perhaps not yet acknowledged
    lost_s: list[float] = field(default_factory=list)
    n_streaming: int = 0  # ends in the middle of an answer

    def check(self, home: Path, run: Driven, ended_at: float | None = None) -> list[str]:
        """After a run: what is wrong with the database. `ended_at`: when it was killed, None if it was closed."""
        shown = self.heed(run)
        file = home / "kvdesk.sqlite3"
        if not file.exists():
            return ["the database is gone"] if self.texts else []
        if problems := _damage(file):
            return problems
        with closing(Store(file)) as store:
            found = {str(m.id): m for c in store.conversations() for m in store.all_messages(c.id)}
            names = {str(c.id) for c in store.conversations()}
        problems = _damage(file, _WORDS_ARE_WHOLE)  # the index is, once the store has ended what streamed
        problems += [f"{m.id} still streams" for m in found.values() if m.state == "streaming"]
        problems += [f"a deleted chat is back: {name}" for name in self.gone & names]
        for name, text in self.texts.items():
            if not text or self.where[name] in self.gone | self.asked_to_go:
                continue  # an answer that is stopped before its first token is taken back
            if name not in found:
                problems.append(f"an acknowledged message is not there: {name}")
            elif not found[name].text.startswith(text):
                problems.append(f"acknowledged text is not there: {text!r}, but {found[name].text!r}")
        texts = {name: message.text for name, message in found.items()}
        return problems + self._late(texts, shown, run, ended_at)

    def heed(self, run: Driven) -> list[dict[str, Any]]:
        """Take over what was acknowledged; what was shown and not deleted afterwards is returned."""
        deleted: dict[str, float] = {}
        for line in run.told():
            if line["what"] == "stored":
                for name, where, text in line["rows"]:
                    if not name:
                        self.gone.add(where)
                        continue
                    if name == where:  # the chat itself
                        self.gone.discard(where)
                    else:
                        self.texts[name], self.where[name] = text, where
            elif line["what"] == "delete":
                deleted[line["where"]] = line["at"]
                self.asked_to_go.add(line["where"])
        return [line for line in run.told("shown") if line["where"] not in deleted]

    def _late(
        self, found: dict[str, str], shown: list[dict[str, Any]], run: Driven, ended_at: float | None
    ) -> list[str]:
        """What had been shown longer ago than a kill may take, and is not there."""
        missing = [line for line in shown if not found.get(line["id"], "").startswith(line["text"])]
        if ended_at is None:
            return [f"shown before the end, and lost: {line['text'][-40:]!r}" for line in missing]
        self.n_streaming += any(ended_at - line["at"] < LOST_S for line in shown)
        self.lost_s.append(max((ended_at - line["at"] for line in missing), default=0.0))
        if self.lost_s[-1] > LOST_S + 2 * run.held_up_s:
            return [f"{1000 * self.lost_s[-1]:.0f} ms lost, while the machine held up {1000 * run.held_up_s:.0f} ms"]
        return []


_WORDS_ARE_WHOLE = "INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)"


def _damage(file: Path, *checks: str) -> list[str]:
    """What SQLite finds wrong with it. With an exclusive lock, since the index of a journal that was left (-shm) has no
    room on a full disk.
    """
    connection = apsw.Connection(str(file))
    teach(connection)
    try:
        connection.pragma("locking_mode", "exclusive")
        said = connection.pragma("integrity_check")
        for check in checks:
            connection.execute(check)
    except apsw.Error as error:
        return [f"the database: {error}"]
    finally:
        connection.close()
    return [] if said == "ok" else [f"integrity_check: {said}"]
