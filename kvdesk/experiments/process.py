"""Runs an experiment in a child process, which can be ended at any moment and may die of anything.

Owns the child and the reading of its lines. Knows nothing of what is measured.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import datetime
from types import TracebackType
from typing import Self

from kvdesk.experiments import experiment_by_id
from kvdesk.library.child import child_command, start_child
from kvdesk.protocol.experiment import (
    ExperimentEvent,
    Failed,
    Finished,
    Record,
    Request,
    Sample,
    Started,
    event_from_json,
    request_to_json,
)
from kvdesk.translation import tr

DETAIL = 4000  # bytes of the child's last words that are kept
CANCELLED = "The experiment was cancelled."


def experiment_command(request: Request) -> list[str]:
    """The command line of the child."""
    return child_command("--experiment", request_to_json(request))


class ExperimentProcess:
    """A running experiment. Use it as a context manager: the child is dead at its end.

    Raises OSError when the child cannot be started.
    """

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._cancelled = False
        try:
            self._child = start_child(command, subprocess.PIPE, self._errors)
        except OSError:
            self._errors.close()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def events(self) -> Iterator[ExperimentEvent]:
        """What the child tells, as it comes; the last is Finished or Failed, however the child ends."""
        stdout = self._child.stdout
        assert stdout is not None
        for line in stdout:
            try:
                event = event_from_json(line)
            except ValueError:
                continue  # somebody's print
            yield event
            if isinstance(event, Finished | Failed):
                return
        code = self._child.wait()
        yield Failed(CANCELLED) if self._cancelled else Failed(_how(code), self._last_words())

    def cancel(self) -> None:
        """End the child at once, whatever it does. May be called from any thread, and again."""
        self._cancelled = True
        self._child.kill()

    def close(self) -> None:
        """The child is dead and everything about it is freed."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        self._child.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _last_words(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - DETAIL))
        return self._errors.read().decode("utf-8", "replace")


class Recorder:
    """The events of one run, put together as its record."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._started: Started | None = None
        self._samples: list[Sample] = []

    def add(self, event: ExperimentEvent, at: datetime) -> Record | None:
        """The record once the run has finished, None before. at: the time it is known by (UTC)."""
        match event:
            case Started():
                self._started = event
            case Sample():
                self._samples.append(event)
            case Finished() if self._started is not None:
                experiment, when = experiment_by_id(self._request.experiment_id), at.isoformat(timespec="seconds")
                told = tr(experiment.title), tr(experiment.question), when
                return Record(self._request, *told, self._started, tuple(self._samples), event)
            case _:
                pass
        return None


def _how(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = tr("signal {number}").format(number=-code)
        return tr("The experiment's process crashed ({name}); nothing else was touched.").format(name=name)
    return tr("The experiment's process ended without a result (exit code {code}).").format(code=code)
