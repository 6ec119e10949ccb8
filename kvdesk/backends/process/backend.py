"""The engine in a child process (safe mode): commands go down a pipe, events come up another.

An abort of llama.cpp, a kill or too little memory end the child alone. `step` then raises, and the host starts another
one in its place, as it does for every back end (`Host`): answers keep the text they had, what waited is carried out.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from kvdesk import translation
from kvdesk.backends.base import CLOSED, Emit
from kvdesk.backends.process.messages import Cancel, Close, Report, Request, Stop, Submit
from kvdesk.chat import MessageId, TurnStats
from kvdesk.errors import EngineError
from kvdesk.library.child import child_command, start_child
from kvdesk.protocol.cache import ContextReady, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import Generate, LoadModel, ModelLoaded, TextDelta, TurnEnded, TurnStarted, Working
from kvdesk.protocol.features import OF_ENGINE
from kvdesk.protocol.messages import Command, CommandFailed, Event, is_wish
from kvdesk.protocol.wire import WireError, frame, read_frame
from kvdesk.translation import tr

FLAG = "--engine"
CLOSE_S = 3.5
"""So long a child may take to end by itself."""
END_S = 0.5
"""So long one that has nothing more to say may take for it."""
LAST_WORDS = 4000
"""Bytes of what the child wrote last, for the folded part of a message."""


@dataclass(slots=True)
class _Answer:
    """An answer that was asked for and has not ended. `started`: None while it waits."""

    command: Generate
    started: TurnStarted | None = None
    n_tokens: int = 0


class ProcessBackend:
    """Starts the child at once: it imports llama.cpp while the window is drawn."""

    features = OF_ENGINE
    idle_work_due = False  # the child's own host looks after that

    def __init__(self, emit: Emit) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._emit = emit
        self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        self._busy = False
        self._n_handled = 0
        self._unhandled: deque[Command] = deque()
        self._answers: dict[MessageId, _Answer] = {}
        self._policy: UsePolicy | None = None
        self._watch: Watch | None = None
        self._loaded: LoadModel | None = None  # with the settings of the context as it is now
        self._before: LoadModel | None = None  # the same before a rebuild that may still fail
        self._works = False  # `Working` is shown
        self._child: subprocess.Popen[bytes] | None = None
        self._threads: tuple[threading.Thread, ...] = ()
        try:
            self._child = start_child(child_command(FLAG), subprocess.PIPE, self._errors)
        except OSError as error:
            self._errors.write(str(error).encode())
            self._reports.put(None)
            return
        self._threads = (
            threading.Thread(target=self._read, args=(self._child,), name="kvdesk-engine-in", daemon=True),
            threading.Thread(target=self._write, args=(self._child,), name="kvdesk-engine-out", daemon=True),
        )
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Of the child; 0 where it could not be started."""
        return 0 if self._child is None else self._child.pid

    # --- what the host asks -------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the child has something to do, or has said something that was not passed on."""
        return self._busy or bool(self._unhandled) or not self._reports.empty()

    @property
    def waits(self) -> bool:
        return self._reports.empty()

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Hand it down. Raises nothing: whether the child is there shows in `step`."""
        match command:
            case UsePolicy():
                self._policy = command
            case Watch():
                self._watch = command
            case Generate():
                self._answers[command.answer] = _Answer(command)
            case _:
                pass
        self._unhandled.append(command)
        age_s = 0.0 if at_s is None else time.perf_counter() - at_s
        self._requests.put(Submit(command, age_s, translation.installed()))

    def step(self) -> None:
        """Pass on what the child has said. Raises EngineError where it has ended."""
        while not self._reports.empty():
            report = self._reports.get()
            if report is None:
                self._reports.put(None)  # for whoever asks next
                raise EngineError(tr("The engine's process ended."), self._how())
            self._take(report)

    def idle(self) -> None:
        pass

    def request_stop(self, answer: MessageId) -> None:
        self._requests.put(Stop(answer))

    def request_cancel(self) -> None:
        self._requests.put(Cancel())

    def request_close(self) -> None:
        self._requests.put(Close())

    def close(self, note: str = "") -> None:
        """Let the child end by itself, which tells how its answers ended; end it where it does not."""
        self.request_close()
        deadline = time.monotonic() + CLOSE_S
        while (left := deadline - time.monotonic()) > 0:
            try:
                report = self._reports.get(timeout=left)
            except queue.Empty:
                break
            if report is None:
                break
            ends = (e for e in report.events if note and isinstance(e, TurnEnded) and e.state != "complete")
            told = {id(event): replace(event, note=note) for event in ends}
            self._take(replace(report, events=tuple(told.get(id(event), event) for event in report.events)))
        self._end()
        self._end_answers(note or tr(CLOSED))
        self._errors.close()

    def give_up(self, note: str) -> tuple[Command, ...]:
        """End the child, where that has not happened, and its answers; what it had not begun goes to the next one."""
        self._end()
        while not self._reports.empty():  # what it said before
            if (report := self._reports.get()) is not None:
                self._take(report)
        unhandled = list(self._unhandled)
        if unhandled and not isinstance(unhandled[0], Generate):
            killer = unhandled.pop(0)  # it was at work when the child ended: not again
            if not is_wish(killer):
                self._emit(CommandFailed(killer, _failed(killer), self._how()))
        if self._works:
            self._emit(Working("", 0, 0))
        first = [command for command in (self._policy, self._watch, self._loaded) if command is not None]
        waiting = [answer.command for answer in self._answers.values() if answer.started is None]
        self._end_answers(note)
        self._errors.close()
        rest = (c for c in unhandled if not isinstance(c, UsePolicy | Watch | Generate))
        return (*first, *rest, *waiting)

    # --- what the child says ------------------------------------------------------------------------------------------

    def _take(self, report: Report) -> None:
        """Pass its events on, and keep what another child would have to know."""
        for event in report.events:
            self._keep(event)
            self._emit(event)
        n_new = report.n_handled - self._n_handled
        for _ in range(n_new):
            self._unhandled.popleft()
        self._n_handled = report.n_handled
        self._busy = report.busy

    def _keep(self, event: Event) -> None:
        match event:
            case TextDelta():
                if (answer := self._answers.get(event.answer)) is not None:
                    answer.n_tokens += len(event.tokens)
            case TurnStarted():
                if (answer := self._answers.get(event.answer)) is not None:
                    answer.started = event
            case TurnEnded():
                self._answers.pop(event.answer, None)
            case Working():
                self._works = event.total > 0
            case _:
                self._keep_load(event)

    def _keep_load(self, event: Event) -> None:
        """How the model that is open can be opened again, with the context as it is."""
        match event:
            case ModelLoaded():
                loads = (c for c in self._unhandled if isinstance(c, LoadModel) and c.source == event.model.source)
                self._loaded = self._before = next(loads, self._loaded)
            case ContextReady(rebuilt=True):
                asked = next((c for c in self._unhandled if isinstance(c, RebuildContext)), None)
                if asked is not None and self._loaded is not None:
                    self._before, self._loaded = self._loaded, replace(self._loaded, context=asked.context)
            case CommandFailed(command=RebuildContext()):
                self._loaded = self._before
            case _:
                pass

    def _end_answers(self, note: str) -> None:
        """Those that were under way."""
        for answer in self._answers.values():
            if (started := answer.started) is not None:
                n_prefilled = started.prompt_tokens - started.reused_tokens
                stats = TurnStats(
                    started.prompt_tokens,
                    started.reused_tokens,
                    n_prefilled,
                    answer.n_tokens,
                    0.0,
                    0.0,
                    0.0,
                    vocab=started.vocab,
                    marks=started.marks,
                )
                self._emit(TurnEnded(started.conversation, started.answer, "interrupted", stats, note))
        self._answers.clear()

    # --- the child ----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """The child is dead, and its threads have ended. May be called again."""
        if self._child is None:
            return
        self._requests.put(None)
        try:
            self._child.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._child.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:  # what was not written before it ended
                pass

    def _read(self, child: subprocess.Popen[bytes]) -> None:
        """What comes, until the child ends or says what cannot be understood."""
        stream = child.stdout
        assert stream is not None

        def exactly(n_bytes: int) -> bytes:
            data = stream.read(n_bytes)
            if len(data) < n_bytes:
                raise EOFError
            return data

        try:
            while True:
                self._reports.put(read_frame(Report, exactly))
                self.wake()
        except (EOFError, OSError, ValueError) as error:
            if isinstance(error, WireError):
                child.kill()
                self._errors.write(f"\n{error}".encode())
        finally:
            self._reports.put(None)
            self.wake()

    def _write(self, child: subprocess.Popen[bytes]) -> None:
        """In a thread of its own: a child that reads nothing must not stop the window."""
        stream = child.stdin
        assert stream is not None
        try:
            while (request := self._requests.get()) is not None:
                stream.write(frame(Request, request))
                stream.flush()
        except (OSError, ValueError):  # it has ended: `step` says so
            pass

    def _code(self) -> int | None:
        """The exit code, which comes a moment after the last word; None where it still runs."""
        try:
            return None if self._child is None else self._child.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            return None

    def _how(self) -> str:
        """How the child ended, and its last words."""
        code = self._code()
        if self._child is None:
            how = "It could not be started."
        elif code is None:
            how = "It says nothing more."
        elif code < 0:
            how = f"Signal {-code} ({_signal_name(-code)}) ended it."
        else:
            how = f"Its exit code is {code}."
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - LAST_WORDS))
        return f"{how}\n{self._errors.read().decode('utf-8', 'replace')}".strip()


def _failed(command: Command) -> str:
    if isinstance(command, LoadModel):
        return tr("The engine stopped while it loaded {name}. What was open before is loaded again.").format(
            name=command.source.name
        )
    return tr("The engine stopped unexpectedly while it did this.")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
