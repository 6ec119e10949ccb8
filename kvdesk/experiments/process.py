"""Runs an experiment in a child process, which can be ended at any moment and may crash.

Owns the meaning of its messages. Knows nothing of what is measured.
"""

from collections.abc import Iterator
from datetime import datetime

from kvdesk.children.process import Child, child_command, crash_name
from kvdesk.codec import CodecError, encode
from kvdesk.experiments import experiment_by_id
from kvdesk.protocol.experiment import (
    ExperimentEvent,
    Failed,
    Finished,
    Record,
    Request,
    Sample,
    Started,
    event_from_json,
)
from kvdesk.translation import marked, tr

CANCELLED = marked("The experiment was cancelled.")


def experiment_command(request: Request) -> list[str]:
    """The command line of the child."""
    return child_command("--experiment", encode(request).decode())


class ExperimentProcess(Child):
    """A running experiment."""

    _cancelled = False

    def events(self) -> Iterator[ExperimentEvent]:
        """The child's events as they come; the last is Finished or Failed, however the child ends."""
        for message in self.messages():
            try:
                event = event_from_json(message)
            except CodecError as error:
                event = Failed(tr("The experiment's process sent what is no event."), str(error))
            yield event
            if isinstance(event, Finished | Failed):
                return
        yield Failed(tr(CANCELLED)) if self._cancelled else Failed(_how(self.wait()), self.last_words)

    def cancel(self) -> None:
        """End the child at once, whatever it does. May be called from any thread, and repeatedly."""
        self._cancelled = True
        self.kill()


class Recorder:
    """Collects the events of one run into its record."""

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


def _how(code: int | None) -> str:
    if code is not None and (name := crash_name(code)):
        return tr("The experiment's process crashed ({name}); nothing else was touched.").format(name=name)
    return tr("The experiment's process ended without a result (exit code {code}).").format(code=code)
