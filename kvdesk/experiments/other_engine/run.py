"""Plays the audit's cases over another libllama, in a child that may die of it, and shortens what it finds.

The child with llama-cpp-python's own library plays each finding too: what differs there as well is kvdesk's fault.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kvdesk.backends.local.llama.other_library import Library, Loaded, check_defaults
from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.errors import UserError
from kvdesk.experiments.benchmarks.random_operations import Operation
from kvdesk.experiments.other_engine.messages import Answer, Case, Outcome
from kvdesk.experiments.other_engine.shrink import shrunk
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

STARTS_S: Final = 60.0
STEP_S: Final = 120.0
"""So long an operation may take."""
SHRINK_S: Final = 60.0
"""So long a finding is shortened."""
PLAYS: Final = "kvdesk.experiments.other_engine.child:play_cases"
DIED: Final = "the library ended its process"
_SMALL: Final = ContextSettings(n_ctx=256, n_seq_max=4, n_batch=96, n_ubatch=32, n_threads=1, n_threads_batch=1)
_LAYOUTS: Final = {
    "unified": {},
    "streams": {"kv_unified": False, "n_ctx": 1024},
    "unified, small window": {"swa_full": False, "n_ctx": 512},
    "streams, small window": {"kv_unified": False, "swa_full": False, "n_ctx": 2048},
    "unified, earlier states": {"n_rs_seq": 6},
    "streams, earlier states": {"kv_unified": False, "n_ctx": 1024, "n_rs_seq": 6},
}
"""Few cells, so that they fill up soon, but more than a window cache has."""
_TRACE: Final = "Fatal Python error"
"""After it comes a trace of Python, which says nothing of the library."""
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Played:
    """A case with its end. operations: all of them, the last is the one that showed the difference."""

    case: Case
    layout: str
    outcome: Outcome
    operations: tuple[Operation, ...] = ()
    last_words: str = ""

    @property
    def model(self) -> str:
        return Path(self.case.model).name


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference. shortest: its case with as few operations as show it; own: the end of that case over
    llama-cpp-python's own library; others: cases in which the same differed.
    """

    first: Played
    shortest: Played
    own: Outcome
    others: tuple[Played, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found. `played` has one value for each model and layout."""

    folder: Path
    library: Library
    own: Library
    played: tuple[Played, ...]
    findings: tuple[Finding, ...]
    n_ops: int
    seed: int


def verify(
    folder: Path, models: Sequence[Path], n_ops: int, seed: int, on_played: Callable[[Played], None] = lambda _: None
) -> Verified:
    """Audit the libllama in `folder` over `models`. Raises UserError if it cannot be loaded, has another ABI, or can
    play nothing of them.
    """
    with ExitStack() as stack:
        other, own = (stack.enter_context(_Engine(at)) for at in (str(folder), ""))
        library, known = other.library, own.library
        check_defaults(known.defaults, library.defaults)
        played = []
        for case, layout in _cases(models, n_ops, seed):
            played.append(other.play(case, layout))
            on_played(played[-1])
        if all(one.outcome.not_played for one in played):
            why = played[0].outcome.not_played
            raise UserError(tr("No model can be played: {why}.").format(why=why.rstrip(".")))
        alike: dict[str, list[Played]] = {}
        for one in played:
            if one.outcome.difference:
                alike.setdefault(_kind(one), []).append(one)
        findings = [_finding(other, own, group) for group in alike.values()]
        return Verified(folder, library, known, tuple(played), tuple(findings), n_ops, seed)


# --- inside -----------------------------------------------------------------------------------------------------------


def _cases(models: Sequence[Path], n_ops: int, seed: int) -> Iterator[tuple[Case, str]]:
    for model in models:
        for layout, changes in _LAYOUTS.items():
            settings = _SMALL.model_copy(update=changes).model_dump(mode="json")
            yield Case(str(model.absolute()), settings, seed, n_ops), layout


def _kind(played: Played) -> str:
    """What differs, without its place, numbers and values; of a process that died its last words."""
    what = played.last_words or played.outcome.difference.partition(": mirror says")[0].partition(" (")[0]
    return _NUMBER.sub("#", what)


def _finding(other: _Engine, own: _Engine, group: Sequence[Played]) -> Finding:
    first = min(group, key=lambda played: len(played.operations))
    died, end_s = first.outcome.difference == DIED, time.monotonic() + SHRINK_S
    shortest = first

    def fails(operations: Sequence[Operation]) -> bool:
        nonlocal shortest
        if time.monotonic() > end_s:
            return False
        played = other.play(replace(first.case, operations=tuple(operations)), first.layout)
        found = played.outcome.difference
        if not found or (found == DIED) != died:
            return False
        if len(played.operations) < len(operations):
            return False  # the rest would be left out for nothing: it is asked without it
        shortest = played
        return True

    if first.operations and fails(first.operations):
        shrunk(first.operations, fails)
    case = replace(shortest.case, operations=shortest.operations)
    control = own.play(case, first.layout).outcome if case.operations else Outcome(not_played="no operation")
    return Finding(first, shortest, control, tuple(one for one in group if one is not first))


class _Engine:
    """A child with the library of a folder ("": llama-cpp-python's own), started again after it has died."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._child: Child | None = None

    def __enter__(self) -> _Engine:
        self.library = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def play(self, case: Case, layout: str) -> Played:
        """Play a case, to its end or that of the process."""
        if self._child is None:
            self._start()
        assert self._child is not None
        operations: deque[Operation] = deque()
        self._child.send_value(case)
        try:
            while True:
                answer: Answer = self._child.receive_value(STEP_S, kind=Answer)
                if answer.outcome is not None:
                    return Played(case, layout, answer.outcome, tuple(operations))
                if answer.operation is not None:
                    operations.append(answer.operation)
        except ChildStopped as stopped:
            self._end()
            words = (
                stopped.detail.partition(_TRACE)[0].strip()
                if stopped.reason == "ended"
                else f"It did not answer for {STEP_S:.0f} s."
            )
            outcome = Outcome(n_ops=len(operations), difference=DIED)
            return Played(case, layout, outcome, tuple(operations), words)

    def _start(self) -> Library:
        """Raises UserError."""
        self._child = Child(child_command("--on-library", self._folder, PLAYS))
        try:
            loaded: Loaded = self._child.receive_value(STARTS_S, kind=Loaded)
        except ChildStopped as stopped:
            self._end()
            sentence = tr("The library ended the process that loaded it; it cannot be verified.")
            raise UserError(sentence, stopped.detail) from stopped
        if loaded.library is None:
            self._end()
            raise UserError(loaded.refused)
        return loaded.library

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
