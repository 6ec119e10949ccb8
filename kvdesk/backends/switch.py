"""Runs the back end that the open model needs, and replaces it when another model needs another one.

A local file needs the engine in this process or in a child process, a server needs a connection. The open model stays
until the new one is loaded, just as with two files in one engine. Owns the current back end; knows each only through
`base`.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from kvdesk.backends.base import Backend, Elsewhere, Emit
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.cache import UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation, DropMessages, Generate, LoadModel, ModelLoaded, deleted_of
from kvdesk.protocol.features import OF_ENGINE, Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event, feature_of
from kvdesk.protocol.model import ModelSource
from kvdesk.translation import tr
from kvdesk.values import dataclass

Maker = Callable[[Emit], Backend]
ForgetSaved = Callable[[Path, ConversationId, tuple[MessageId, ...] | None], None]
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Part:
    """A back end. `load`: the command that opens its first model; None once that has happened."""

    maker: Maker
    load: LoadModel | None
    backend: Backend | None = None
    over: bool = False

    @property
    def made(self) -> Backend:
        assert self.backend is not None
        return self.backend


class Switch:
    """`maker_of` returns the maker of the back end that a model needs; equal makers mean the same back end. `forget`
    removes a conversation's saved states from a folder that no back end has open, or those of some messages.
    """

    def __init__(self, emit: Emit, maker_of: Callable[[ModelSource | None], Maker], forget: ForgetSaved) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._emit, self._maker_of, self._forget = emit, maker_of, forget
        self._current: _Part | None = None
        self._next: _Part | None = None  # opens its first model
        self._policy: UsePolicy | None = None
        self._watch: dict[str, Watch] = {}

    @property
    def features(self) -> frozenset[Feature]:
        """Features of the back end that takes commands; all of the engine's before there is one."""
        part = self._current or self._next
        return OF_ENGINE if part is None else part.made.features

    @property
    def busy(self) -> bool:
        return any(part.made.busy for part in self._parts())

    @property
    def waits(self) -> bool:
        return all(not b.busy or (isinstance(b, Elsewhere) and b.waits) for b in (p.made for p in self._parts()))

    @property
    def idle_work_due(self) -> bool:
        return self._current is not None and self._current.made.idle_work_due

    def handle(self, command: Command, at_s: float | None = None) -> None:
        match command:
            case LoadModel():
                self._load(command, at_s)
                return
            case CloseConversation() | DropMessages():
                self._deleted(command, at_s)
                return
            case UsePolicy():
                self._policy = command
            case Watch():
                self._watch[getattr(command, "watcher", "")] = command
            case _:
                pass
        if self._current is None and self._next is not None:
            self._with_next(lambda backend: backend.handle(command, at_s))
            return
        if self._current is None:
            if isinstance(command, UsePolicy | Watch):
                return  # reported once a back end exists
            self._current = self._make(self._maker_of(None), None)
        self._current.made.handle(command, at_s)

    def step(self) -> None:
        """A step of each."""
        self._with_next(lambda backend: backend.step())
        if self._current is not None:
            self._current.made.step()

    def idle(self) -> None:
        if self._current is not None:
            self._current.made.idle()

    def request_stop(self, answer: MessageId) -> None:
        for part in self._parts():
            part.made.request_stop(answer)

    def request_cancel(self) -> None:
        for part in self._parts():
            part.made.request_cancel()

    def request_close(self) -> None:
        for part in self._parts():
            part.made.request_close()

    def close(self, note: str = "") -> None:
        for part in self._parts():
            part.made.close(note)

    def give_up(self, note: str) -> tuple[Command, ...]:
        """Returns the commands of the back end that had a model, and of the one that was to open one."""
        again: list[Command] = [c for c in (self._policy, *self._watch.values()) if c is not None]
        for part in self._parts():
            again += (c for c in part.made.give_up(note) if not isinstance(c, UsePolicy | Watch))
        return tuple(again)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _parts(self) -> list[_Part]:
        """The existing back ends, in the order of their creation."""
        parts = (self._current, self._next)
        return [part for part in parts if part is not None and part.backend is not None and not part.over]

    def _make(self, maker: Maker, load: LoadModel | None) -> _Part:
        part = _Part(maker, load)
        part.backend = maker(lambda event: self._say(part, event))
        if isinstance(part.backend, Elsewhere):
            part.backend.wake = self._woken
        for command in (self._policy, *self._watch.values()):
            if command is not None and feature_of(command) in part.made.features:
                part.made.handle(command)
        return part

    def _deleted(self, command: CloseConversation | DropMessages, at_s: float | None) -> None:
        """Every back end hears of it, also the one that opens its first model. Where none has saved states, they are
        removed here.
        """
        if self._current is not None:
            self._current.made.handle(command, at_s)
        self._with_next(lambda backend: backend.handle(command, at_s))
        has_states = any(Feature.CACHE_POLICY in part.made.features for part in self._parts())
        if not has_states and self._policy is not None and self._policy.folder is not None:
            self._forget(self._policy.folder, command.conversation, deleted_of(command))

    def _woken(self) -> None:
        """The host may set `wake` after this was made."""
        self.wake()

    def _load(self, command: LoadModel, at_s: float | None) -> None:
        maker = self._maker_of(command.source)
        if (waiting := self._next) is not None:
            self._failed(waiting, tr("Another model was opened."), "")
            self._drop_failed()
        if self._current is not None and self._current.maker == maker:
            self._current.made.handle(command, at_s)
            return
        self._next = self._make(maker, command)
        self._with_next(lambda backend: backend.handle(command, at_s))

    def _with_next(self, do: Callable[[Backend], None]) -> None:
        """With the back end that opens its first model. If it fails, only that model and what waits for it are lost."""
        if (part := self._next) is None:
            return
        try:
            do(part.made)
        except Exception as error:
            if part is self._current:
                raise  # it has opened its model just now
            _log.exception("a back end failed while it opened its first model")
            waiting = part.made.give_up("")
            self._failed(part, str(error), getattr(error, "detail", ""))
            for command in waiting:
                if isinstance(command, Generate):
                    self._emit(CommandFailed(command, str(error)))
            self._next = None
        self._drop_failed()

    def _say(self, part: _Part, event: Event) -> None:
        """Pass on an event of a back end; its first model makes it the open one."""
        if part.load is not None:
            if isinstance(event, ModelLoaded):
                self._take_over(part)
            elif isinstance(event, CommandFailed) and event.command == part.load:
                self._failed(part, event.sentence, event.detail, stopped=event.stopped)
                return
        self._emit(event)

    def _take_over(self, part: _Part) -> None:
        """It has a model, so the previous one is closed. Its last events come before the features change."""
        part.load, before = None, self._current
        if before is not None:
            before.made.close(tr("Another model was opened."))
            before.over = True
        self._current, self._next = part, None

    def _failed(self, part: _Part, sentence: str, detail: str, *, stopped: bool = False) -> None:
        """Its first model cannot be opened. Reported once."""
        load, part.load, part.over = part.load, None, True
        if load is not None:
            self._emit(CommandFailed(load, sentence, detail, stopped))

    def _drop_failed(self) -> None:
        if self._next is not None and self._next.over:
            part, self._next = self._next, None
            part.made.close(tr("The model could not be opened."))
