"""The engine in a child process (safe mode): commands go down one pipe, events come up another.

If llama.cpp aborts, is killed or runs out of memory, only the child ends. `step` then raises, and the host starts a new
back end as for any other (`Host`): answers keep their text so far, and waiting commands are carried out.
"""

import io
import math
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from kvdesk import translation
from kvdesk.backends.base import CLOSED, Emit
from kvdesk.backends.process.messages import Cancel, Close, Report, Request, Stop, Submit
from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.errors import EngineError
from kvdesk.message import MessageId, TurnStats
from kvdesk.protocol.cache import ContextReady, RebuildContext, UsePolicy, Watch
from kvdesk.protocol.chat import Generate, LoadModel, ModelLoaded, TextDelta, TurnEnded, TurnStarted, Working
from kvdesk.protocol.features import OF_ENGINE
from kvdesk.protocol.messages import Command, CommandFailed, Event, is_wish
from kvdesk.protocol.wire import frame, read_frame
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

FLAG = "--engine"
CLOSE_S = 3.5
"""Seconds a child may take to end on request."""
END_S = 0.5
"""Seconds for a child that has nothing more to send."""


@dataclass(slots=True)
class _Answer:
    """An answer that was requested and has not ended. `started`: None while it waits."""

    command: Generate
    started: TurnStarted | None = None
    n_tokens: int = 0


class ProcessBackend:
    """Starts the child at once, so that it imports llama.cpp while the window is drawn."""

    features = OF_ENGINE
    idle_work_due = False  # the child's own host handles that

    def __init__(self, emit: Emit) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._emit = emit
        self._busy = False
        self._n_handled = 0
        self._unhandled: deque[Command] = deque()
        self._answers: dict[MessageId, _Answer] = {}
        self._policy: UsePolicy | None = None
        self._watch: Watch | None = None
        self._loaded: LoadModel | None = None  # with the settings of the current context
        self._before: LoadModel | None = None  # the same before a rebuild that may still fail
        self._works = False  # `Working` is shown
        self._child: Child | None = None
        self._why_not = ""
        try:
            self._child = Child(child_command(FLAG), on_message=self._on_message)
        except OSError as error:
            self._why_not = f"It could not be started.\n{error}"

    @property
    def pid(self) -> int:
        """Process id of the child; 0 if it could not be started."""
        return 0 if self._child is None else self._child.pid

    # --- what the host asks -------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the child has work, or has sent something that was not passed on."""
        return self._busy or bool(self._unhandled) or self._has_message

    @property
    def waits(self) -> bool:
        return not self._has_message

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Send it to the child. Raises nothing; `step` notices if the child is gone."""
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
        self._request(Submit(command, age_s, translation.installed()))

    def step(self) -> None:
        """Pass on what the child has sent. Raises EngineError if it has ended."""
        while self._has_message:
            try:
                self._take(self._report())
            except ChildStopped as stopped:
                raise EngineError(tr("The engine's process ended."), stopped.detail) from stopped

    def idle(self) -> None:
        pass

    def request_stop(self, answer: MessageId) -> None:
        self._request(Stop(answer))

    def request_cancel(self) -> None:
        self._request(Cancel())

    def request_close(self) -> None:
        self._request(Close())

    def close(self, note: str = "") -> None:
        """Let the child end and report how its answers ended; kill it if it does not."""
        self.request_close()
        deadline = time.monotonic() + CLOSE_S
        while (left := deadline - time.monotonic()) > 0:
            try:
                report = self._report(left)
            except ChildStopped:
                break
            ends = (e for e in report.events if note and isinstance(e, TurnEnded) and e.state != "complete")
            told = {id(event): replace(event, note=note) for event in ends}
            self._take(replace(report, events=tuple(told.get(id(event), event) for event in report.events)))
        self._end()
        self._end_answers(note or tr(CLOSED))

    def give_up(self, note: str) -> tuple[Command, ...]:
        """End the child, if it still runs, and its answers. Commands it had not begun go to the next child."""
        if self._child is not None and self._child.wait(END_S) is None:
            self._child.kill()
        with suppress(ChildStopped):  # what it had already sent
            while True:
                self._take(self._report())
        how = self._how()
        self._end()
        unhandled = list(self._unhandled)
        if unhandled and not isinstance(unhandled[0], Generate):
            killer = unhandled.pop(0)  # the command it was carrying out is not repeated
            if not is_wish(killer):
                self._emit(CommandFailed(killer, self._failed(killer), how))
        if self._works:
            self._emit(Working("", 0, 0))
        first = [command for command in (self._policy, self._watch, self._loaded) if command is not None]
        waiting = [answer.command for answer in self._answers.values() if answer.started is None]
        self._end_answers(note)
        rest = (c for c in unhandled if not isinstance(c, UsePolicy | Watch | Generate))
        return (*first, *rest, *waiting)

    # --- what the child says ------------------------------------------------------------------------------------------

    def _take(self, report: Report) -> None:
        """Pass its events on, and keep what another child needs to know."""
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
        """Keep how to open the current model again, with the current context."""
        match event:
            case ModelLoaded():
                loads = (c for c in self._unhandled if isinstance(c, LoadModel) and c.source == event.model.source)
                self._loaded = self._before = next(loads, self._loaded)
            case ContextReady(rebuilt=True):
                asked = next((c.context for c in self._unhandled if isinstance(c, RebuildContext)), event.back_to)
                if asked is not None and self._loaded is not None:
                    self._before, self._loaded = self._loaded, replace(self._loaded, context=asked)
            case CommandFailed(command=RebuildContext()):
                self._loaded = self._before
            case _:
                pass

    def _end_answers(self, note: str) -> None:
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
        """The child is dead. May be called repeatedly."""
        if self._child is not None:
            self._child.close(END_S)

    @property
    def _has_message(self) -> bool:
        return self._child is None or self._child.has_message

    def _on_message(self) -> None:
        self.wake()

    def _request(self, request: Request) -> None:
        if self._child is not None:
            self._child.send(frame(Request, request))

    def _report(self, seconds: float = math.inf) -> Report:
        """The next report. Raises ChildStopped if there will be none."""
        if self._child is None:
            raise ChildStopped("ended", self._why_not)
        message = self._child.receive(seconds)
        try:
            report: Report = read_frame(Report, io.BytesIO(message).read)
        except (ValueError, struct.error) as error:
            self._child.kill()
            raise ChildStopped("ended", f"{error}\n{self._child.ending()}") from error
        return report

    def _failed(self, command: Command) -> str:
        if not isinstance(command, LoadModel):
            return tr("The engine stopped unexpectedly while it did this.")
        if self._loaded is None:
            said = tr("The engine stopped while it loaded {name}. Open it to try again.")
        else:
            said = tr("The engine stopped while it loaded {name}. What was open before is loaded again.")
        return said.format(name=command.source.name)

    def _how(self) -> str:
        return self._why_not if self._child is None else self._child.ending()
