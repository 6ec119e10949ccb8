"""The laboratory behind its page: runs one experiment at a time, tells what one would take, and finds past results.

Nothing here blocks the window's thread: files are read and experiments loaded beside it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QFile, QObject, QUrl
from PySide6.QtGui import QDesktopServices

from kvdesk import paths
from kvdesk.app.background import Background
from kvdesk.errors import KvdeskError
from kvdesk.library.estimate import check_fits
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.protocol.experiment import Failed, Finished, Request
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.session.changed import Tone
from kvdesk.session.features import LabCommands
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.lab import REPORT, RESULT, ModelChoice, Needs, PastResult, Question

if TYPE_CHECKING:
    from kvdesk.app.slices.experiment_run import ExperimentRun
    from kvdesk.ui.lab.page import LabPage

T = TypeVar("T")

MOST_RESULTS = 50
"""Of one experiment that are listed: the newest."""


class Laboratory(QObject, LabCommands):
    """`embedded`: the model that comes with kvdesk."""

    def __init__(self, window: MainWindow, embedded: Path | None) -> None:
        super().__init__(window)
        self._window, self._embedded = window, embedded
        self._page: LabPage | None = None
        self._open: Path | None = None
        self._run: ExperimentRun | None = None
        self._why = ""  # it is cancelled, for another reason than a click
        self._header: tuple[tuple[Path, float], GgufHeader] | None = None  # of the last file that was read
        self._speeds: dict[str, tuple[float, float] | None] = {}  # by model, from its last run
        self._background = Background("lab", self)
        self._experiments = Background("experiment", self)
        window.commands.lab = self
        self._window.rooms.when_made("lab", self._on_lab_made)

    def apply(self, event: Event) -> None:
        """Another model is open: the one an experiment runs on by default."""
        if isinstance(event, ModelLoaded):
            source = event.model.source
            self._open = source.path if isinstance(source, LocalFile) else None
            self._show_models()

    def cancel(self, why: str = "") -> None:
        """End the running experiment, if there is one. `why`: a sentence, if the user did not end it."""
        if self._run is not None:
            self._why = why
            self._run.cancel()

    def close(self) -> None:
        """The child is dead, and no thread is left."""
        self.cancel()
        self._run = None
        self._experiments.close()
        self._background.close()

    # --- intents of the page ------------------------------------------------------------------------------------------

    def _on_lab_made(self, page: LabPage) -> None:
        self._page = page
        self._show_models()
        self._in_background(_questions, page.show_questions)

    def ask_needs(self, request: Request) -> None:
        page = self._page
        if page is not None:
            self._in_background(lambda: self._needs(request), lambda needs: page.setup.show_needs(request, needs))

    def begin(self, request: Request) -> None:
        from kvdesk.app.slices.experiment_run import ExperimentRun

        if self._run is None and self._page is not None and not self._experiments.is_closing:
            self._why = ""
            self._run = run = ExperimentRun(request, partial(self._experiments.tell, self._on_told))
            self._experiments.run(run.work, failed=partial(self._on_broken, run))
            self._page.begin(request)

    def ask_results(self, experiment_id: str) -> None:
        self._show_results(experiment_id)

    def open_report(self, past: PastResult) -> None:
        file = past.folder / REPORT
        if not file.is_file():
            self._complain(tr("The report no longer exists: {file}").format(file=file))
        elif not QDesktopServices.openUrl(QUrl.fromLocalFile(str(file))):
            self._complain(tr("No program opens it; the report is {file}").format(file=file))

    def delete_results(self, results: tuple[PastResult, ...]) -> None:
        """To the trash of the system, where they can be taken out again."""
        for past in results:
            if past.folder.exists() and not move_to_trash(past.folder):
                self._complain(tr("It could not be moved to the trash: {folder}").format(folder=past.folder))
        self._show_results(results[0].record.request.experiment_id)

    # --- what the child tells -----------------------------------------------------------------------------------------

    def _on_told(self) -> None:
        run = self._run
        if run is None:
            return
        events = run.take()
        if self._page is not None:
            self._page.run.show_events(events)
        match events[-1] if events else None:
            case Finished() as finished:
                self._speeds.pop(run.request.model, None)
                self._end(run.unsaved)
                self._show_results(run.request.experiment_id, run.kept)
                self._tell_elsewhere(finished.result.verdict.short, "good")
            case Failed() as failed:
                self._end(self._why or failed.sentence, failed.detail)
                self._tell_elsewhere(self._why or failed.sentence, "warning")

    def _on_broken(self, run: ExperimentRun, error: KvdeskError) -> None:
        """Its work ended without a last word."""
        if run is self._run:
            self._end(self._why or str(error), error.detail)

    def _end(self, sentence: str, detail: str = "") -> None:
        self._run = None
        if self._page is not None:
            self._page.end(sentence, detail)

    def _tell_elsewhere(self, sentence: str, tone: Tone) -> None:
        """How it ended, when the page is not looked at."""
        if self._window.rooms.shown != "lab":
            self._window.store.notify(tr("Lab: {sentence}").format(sentence=sentence), tone)

    # --- on the other thread ------------------------------------------------------------------------------------------

    def _needs(self, request: Request) -> Needs:
        from kvdesk.experiments import experiment_by_id

        experiment, path = experiment_by_id(request.experiment_id), Path(request.model)
        try:
            needed = check_fits(self._read_header(path), experiment.context(request.values))
        except KvdeskError as error:
            return Needs(why_not=str(error))
        work = experiment.work(request.values)
        speed = self._speed_of(request.model)
        seconds = work.seconds(*speed) if speed is not None else None
        return Needs(needed.total, work.read, work.written, seconds=seconds)

    def _speed_of(self, model: str) -> tuple[float, float] | None:
        """Seconds for a token that is read and for one that is written, in the last run on this model."""
        if model not in self._speeds:
            started = (past.record.started for past in past_results("") if past.record.request.model == model)
            self._speeds[model] = next(
                ((s.read_s, s.written_s) for s in started if 0 < s.read_s + s.written_s < math.inf), None
            )
        return self._speeds[model]

    def _read_header(self, path: Path) -> GgufHeader:
        """Of a model, read again when the file has changed. Raises ModelFileError."""
        try:
            key = path, path.stat().st_mtime
        except OSError:
            return read_header(path)  # which says what is wrong with it
        if self._header is None or self._header[0] != key:
            self._header = key, read_header(path)
        return self._header[1]

    # --- to the page --------------------------------------------------------------------------------------------------

    def _show_models(self) -> None:
        """The open model first, then the one that comes with kvdesk."""
        models = [ModelChoice(self._open, tr("open now"))] if self._open is not None else []
        if self._embedded is not None and self._embedded != self._open:
            models.append(ModelChoice(self._embedded, tr("comes with kvdesk")))
        if self._page is not None:
            self._page.setup.show_models(models)

    def _show_results(self, experiment_id: str, new: PastResult | None = None) -> None:
        """`new`: of the run that has just ended; it is there even if it could not be written."""
        page = self._page
        if page is None:
            return

        def show(found: list[PastResult]) -> None:
            if new is not None and new.folder not in [past.folder for past in found]:
                found = [new, *found]
            page.show_results(experiment_id, found, new.folder if new is not None else None)

        self._in_background(lambda: past_results(experiment_id), show)

    def _complain(self, sentence: str) -> None:
        if self._page is not None:
            self._page.banner.show_error(sentence)

    def _in_background(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do `work` on the other thread, and `then` with what it gives on the window's, for the page there is now."""
        page = self._page

        def done(found: T) -> None:
            if page is self._page:
                then(found)

        self._background.run(work, done, lambda error: self._complain(str(error)))


def _questions() -> list[Question]:
    from kvdesk.experiments import EXPERIMENTS

    return [
        Question(
            e.id,
            tr(e.title),
            tr(e.question),
            tr(e.supposed),
            e.parameters,
            takes_text=e.takes_text,
            takes_journal=e.takes_journal,
            stages=tuple(map(tr, e.stages)),
        )
        for e in EXPERIMENTS
    ]


def move_to_trash(folder: Path) -> bool:
    """Whether it is there now."""
    return bool(QFile(str(folder)).moveToTrash())


def past_results(experiment_id: str) -> list[PastResult]:
    """Results of an experiment ("": of all) that are kept in the data folder, the newest first. What cannot be read is
    left out, and logged.
    """
    from kvdesk.experiments import report

    found = []
    folder = paths.data_dir() / "lab"
    runs = folder.glob(f"{experiment_id}-*" if experiment_id else "*-*")
    for run in sorted(runs, key=lambda path: path.name[-len("20260101-000000") :], reverse=True):
        try:
            record = report.read(run / RESULT)
        except (OSError, ValueError) as error:
            logging.getLogger(__name__).warning("the result in %s cannot be read: %s", run, error)
            continue
        if experiment_id in ("", record.request.experiment_id):
            found.append(PastResult(run, record))
        if len(found) == MOST_RESULTS:
            break
    return found
