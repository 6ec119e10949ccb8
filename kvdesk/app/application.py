"""Builds the application: paths, log files, Qt, store, worker, window, controller; and takes it down in order."""

import gc
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import cycle
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, QtMsgType, Signal, qInstallMessageHandler
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QMessageBox

from kvdesk import __version__, paths
from kvdesk.app.commands import AppCommands
from kvdesk.app.controller import Controller
from kvdesk.app.display import WITHOUT_DISPLAY, has_display, why_no_window
from kvdesk.app.engines import Engines, forget_deleted
from kvdesk.app.language import install_language
from kvdesk.app.log_files import log_files
from kvdesk.app.single_instance import ANSWER_S, SecondStarts, hand_over
from kvdesk.app.startup import LoadMarker, choose_model
from kvdesk.app.worker import Worker
from kvdesk.backends.base import Backend, Emit
from kvdesk.errors import KvdeskError, StoreInUseError, UserError
from kvdesk.session import Store
from kvdesk.store.server_keys import ServerKeys
from kvdesk.store.settings_file import load_settings, save_changes
from kvdesk.store.writer import StoreWriter, Unsaved
from kvdesk.translation import tr
from kvdesk.ui.markdown.parser import markdown_parser
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.painted import when_painted
from kvdesk.values import dataclass

GC_INTERVAL_MS = 5_000
_GENERATIONS = (1,) * 11 + (2,)  # old objects, 15 ms to look at, once a minute: two decoding threads wait for it
WAKE_MS = 250


class Application(QApplication):
    """Qt's, which also hears which file macOS wants it to open: there it comes as an event, not as an argument."""

    file_opened = Signal(str)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            self.file_opened.emit(event.file())
            return True
        return super().event(event)


class _ErrorRelay(QObject):
    """Brings errors of other threads to the window."""

    said = Signal(str, str)
    unsaved = Signal(Unsaved)

    def say(self, error: KvdeskError) -> None:
        self.said.emit(str(error), error.detail)


@dataclass(slots=True)
class Parts:
    """An application that is built and started."""

    qt: QApplication
    window: MainWindow
    controller: Controller


def run(file: str | None) -> int:
    """Open the window and stay until it is closed. Returns the exit code.

    Raises UserError if there is no display, StoreError if the database cannot be used.
    """
    if not has_display():
        raise UserError(
            tr("There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). {without_display}").format(
                without_display=tr(WITHOUT_DISPLAY)
            )
        )
    paths.make_private()
    folder = paths.data_dir()
    if _is_open(folder, file):
        return 0
    with owned_process() as complaints:
        parts = _build_or_hand_over(folder, file)
        if parts is None:
            return 0
        starts = SecondStarts(folder, parts.window)
        starts.happened.connect(lambda other: _show_again(parts.window, other))
        for complaint in complaints:
            parts.window.store.complain(complaint)
        # By the event loop: a signal comes in the middle of anything, such as a message that is about to be stored.
        closer = _Closer(parts.window)
        signal.signal(signal.SIGTERM, lambda _number, _frame: closer.asked.emit())
        waker = QTimer(parts.window, interval=WAKE_MS)  # Python looks at signals only when it runs
        waker.timeout.connect(lambda: None)
        waker.start()
        parts.window.show()
        code = parts.qt.exec()
        starts.close()
        parts.controller.shut_down()
    if lost := parts.controller.lost:
        sys.stderr.write(lost.at_the_end)
        code = 1
    if not parts.controller.engine_ended:
        sys.stderr.write(tr("The engine stopped responding; kvdesk ended without it.\n"))
        sys.stderr.flush()
        os._exit(code)
    return int(code)


class _Closer(QObject):
    """Closes the window when the system ends the session, without a question: it could not be answered."""

    asked = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.asked.connect(self._close, Qt.ConnectionType.QueuedConnection)

    def _close(self) -> None:
        self._window.asks_before_closing = False
        self._window.close()


def _build_or_hand_over(folder: Path, file: str | None) -> Parts | None:
    """Build the application; None if another one was faster, and has shown its window instead.

    One that was started at the same moment has the database before it hears of further starts, and one that is ending
    still has it when it hears of none any more: both get `ANSWER_S`. Raises UserError.
    """
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            return build(file)
        except UserError as error:
            if _is_open(folder, file):
                return None
            if not isinstance(error, StoreInUseError) or time.monotonic() > deadline:
                _say_before_there_is_a_window(error)
                raise
        time.sleep(0.1)


def build(file: str | None, make_backend: Callable[[Emit], Backend] | None = None) -> Parts:
    """Everything but the event loop. `make_backend`: in the place of what each model needs (`Engines`).

    Raises StoreError when the database cannot be used.
    """
    qt = _qt()
    qt.setApplicationName("kvdesk")
    qt.setApplicationDisplayName("kvdesk")
    qt.setApplicationVersion(__version__)
    qt.setDesktopFileName("kvdesk")
    errors = _ErrorRelay()
    settings, complaint = load_settings(paths.settings_file())
    session = Store(settings, partial(save_changes, path=paths.settings_file()), errors.say)
    install_language(qt, settings.language)
    store = StoreWriter(paths.database_file(), errors.say, errors.unsaved.emit)
    store.opened.result()
    commands = AppCommands()
    window = MainWindow(qt, session, commands)
    errors.said.connect(session.complain)
    marker = LoadMarker(paths.data_dir() / "loading.txt", paths.embedded_model())
    model, remark = choose_model(file, settings.model, marker)
    server = None if file else next((known for known in settings.servers if known.url == settings.server), None)
    keys = ServerKeys(paths.keys_file())
    engines = Engines(lambda: session.settings.current.safe_mode, keys.get)
    worker = Worker(window, make_backend or engines.make, partial(forget_deleted, store))
    controller = Controller(window, worker, store, marker, keys)
    commands.begin(controller)
    errors.unsaved.connect(controller.show_unsaved)
    if not gc.isenabled():
        gc.freeze()  # what start-up made stays; a collection looks at what came after it
        collector = QTimer(window, interval=GC_INTERVAL_MS)
        generations = cycle(_GENERATIONS)
        collector.timeout.connect(lambda: gc.collect(next(generations)))
        collector.start()
        _show_exceptions(errors.said.emit)
    if isinstance(qt, Application):
        qt.file_opened.connect(lambda file: commands.open_model(Path(file)))
    controller.start(model, server)
    when_painted(window, lambda: _load_the_rest(worker, controller))
    for sentence in (complaint, remark):
        if sentence:
            session.complain(sentence)
    return Parts(qt, window, controller)


def _qt() -> QApplication:
    qt = QApplication.instance() or Application(sys.argv[:1])
    assert isinstance(qt, QApplication)
    return qt


def _is_open(folder: Path, file: str | None) -> bool:
    """Whether another kvdesk has shown its window instead. Raises UserError when there is one that does not answer."""
    try:
        found = hand_over(folder, file)
    except UserError as error:
        _say_before_there_is_a_window(error)
        raise
    if found:
        sys.stderr.write(tr("kvdesk is open already; its window was brought to the front.\n"))
    return found


def _show_again(window: MainWindow, file: str) -> None:
    """Bring the window to the front, and open a model in it when one is named."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.raise_()
    window.activateWindow()
    if file:
        window.commands.open_model(Path(file))


def _say_before_there_is_a_window(error: UserError) -> None:
    """Started by a click there is no terminal: show a box, except on a platform without a screen."""
    if _qt().platformName() not in ("offscreen", "minimal"):
        box = QMessageBox(QMessageBox.Icon.Critical, "kvdesk", str(error))
        box.setInformativeText(tr("kvdesk was not started. Nothing was changed."))
        box.setDetailedText(error.detail)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.exec()


def _load_the_rest(worker: Worker, controller: Controller) -> None:
    """Start what the first frame of the window does not need: the engine, the laboratory, what is about models, and the
    modules that draw answers.
    """
    worker.start()
    controller.furnish()
    import_module("kvdesk.ui.markdown.highlight")
    import_module("numpy.ma")  # which `numpy.unique` would load in the middle of an answer
    markdown_parser()


@contextmanager
def owned_process() -> Iterator[tuple[str, ...]]:
    """Set up the process, which must be kvdesk's alone: log files, a file for crashes, garbage collection.

    Cyclic garbage that holds QObjects must be collected on the window's thread (PySide6 crashes otherwise), so the
    automatic collection is off and a timer does it. Gives a sentence for each of those files that cannot be written.
    """
    qInstallMessageHandler(_on_qt_message)
    gc.disable()
    try:
        with log_files(paths.log_dir()) as complaints:
            yield complaints
    finally:
        gc.enable()
        qInstallMessageHandler(None)
        sys.excepthook = sys.__excepthook__


def _on_qt_message(kind: QtMsgType, _context: object, text: str) -> None:
    """Messages of Qt go to the log. Before it aborts the process, since no window can be opened, say so."""
    logging.getLogger("kvdesk.qt").warning(text)
    if kind == QtMsgType.QtFatalMsg:
        sys.stderr.write(f"{why_no_window(os.environ)}\n")
        sys.stderr.flush()
        os._exit(2)


def _show_exceptions(show: Callable[[str, str], None]) -> None:
    """An exception in a slot does not end the process: write it down and say so."""

    def on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
            return
        detail = "".join(traceback.format_exception(kind, error, trace))
        logging.getLogger("kvdesk").error("unexpected error\n%s", detail)
        show(tr("Something unexpected went wrong: {error}").format(error=error), detail)

    sys.excepthook = on_exception
