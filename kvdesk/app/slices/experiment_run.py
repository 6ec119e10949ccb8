"""An experiment in its child process, for the window: started, read and its report kept beside the window's thread."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from kvdesk.errors import KvdeskError
from kvdesk.experiments import report
from kvdesk.experiments.process import ExperimentProcess, Recorder, experiment_command
from kvdesk.protocol.experiment import ExperimentEvent, Failed, Record, Request
from kvdesk.translation import tr
from kvdesk.viewmodel.lab import PastResult


class ExperimentRun:
    """`work` does it, on its own thread, which calls `told` when there is something to take, once until
    it is taken.

    kept     the result and its folder, once Finished was taken
    unsaved  "" or, in a sentence, why the folder could not be written
    """

    def __init__(self, request: Request, told: Callable[[], None]) -> None:
        self.request = request
        self.kept: PastResult | None = None
        self.unsaved = ""
        self._told = told
        self._lock = threading.Lock()
        self._events: list[ExperimentEvent] = []
        self._process: ExperimentProcess | None = None
        self._cancelled = False

    @property
    def pid(self) -> int | None:
        """Of the child, once there is one."""
        return self._process.pid if self._process is not None else None

    def take(self) -> list[ExperimentEvent]:
        """What was reported since the last call; the last of all is Finished or Failed."""
        with self._lock:
            events, self._events = self._events, []
        return events

    def cancel(self) -> None:
        """End the child at once."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                self._process.cancel()

    def work(self) -> None:
        """Until the child has ended."""
        try:
            with ExperimentProcess(experiment_command(self.request)) as process:
                with self._lock:
                    self._process = process
                    if self._cancelled:
                        process.cancel()
                self._read(process)
        except OSError as error:
            self._tell(
                Failed(
                    tr("The experiment's process cannot be started: {strerror}.").format(
                        strerror=error.strerror or error
                    )
                )
            )

    def _read(self, process: ExperimentProcess) -> None:
        recorder = Recorder(self.request)
        for event in process.events():
            at = datetime.now(UTC)
            if (record := recorder.add(event, at)) is not None:
                self._keep(record, at)
            self._tell(event)

    def _keep(self, record: Record, at: datetime) -> None:
        """Write the report; if that is impossible the result is shown all the same."""
        try:
            folder = report.folder_for(record.request.experiment_id, at)
            self.kept = PastResult(folder, record)
            report.write(record, folder)
        except (OSError, KvdeskError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            self.unsaved = tr("The report could not be written: {why}.").format(why=str(why).rstrip("."))

    def _tell(self, event: ExperimentEvent) -> None:
        with self._lock:
            self._events.append(event)
            first = len(self._events) == 1
        if first:
            self._told()
