"""A conversation held with an engine that its host runs on this thread: for headless commands and measurements."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kvdesk.backends.base import Emit
from kvdesk.backends.local.engine import Engine
from kvdesk.backends.local.session import Session
from kvdesk.chat import (
    NONE_EVICTED,
    ConversationId,
    Message,
    MessageId,
    Role,
    TurnStats,
    new_conversation_id,
    new_message_id,
)
from kvdesk.errors import UserError
from kvdesk.host.host import Host
from kvdesk.protocol.chat import EngineDied, EngineRestarted, Generate, LoadModel, MessagesEvicted, TextDelta, TurnEnded
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.settings import Overflow, Sampling


@contextmanager
def uncollected() -> Iterator[None]:
    """As in the window no garbage is looked for between two tokens."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class HeadlessEngine:
    """An engine, the host that runs it, and the events it gave: kvdesk without a window. `on_event` sees every event
    as it comes.
    """

    engine: Engine

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self.host = Host(self._made)
        self.events: list[Event] = []
        self._on_event = on_event
        self._failed: Exception | None = None  # what `on_event` raised
        self._subscription = self.host.subscribe(self._take)

    def do(self, command: Command) -> list[Event]:
        """Carry out a command to its end. Returns its events; raises UserError when it failed, and what `on_event`
        raised: an answer is stopped then.
        """
        self.events = []
        self.host.submit(command)
        self.host.run_until_idle()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        for event in self.events:
            if isinstance(event, CommandFailed | EngineRestarted | EngineDied):
                raise UserError(event.sentence, event.detail)
        if isinstance(command, LoadModel):
            gc.collect()
            gc.freeze()  # what was loaded stays: collections between tokens need not look at it
        return self.events

    def close(self) -> None:
        self.host.shut_down()
        self.host.run()

    def _made(self, emit: Emit) -> Engine:
        self.engine = Engine(emit)
        return self.engine

    def _take(self) -> None:
        """Each event as it comes: there is no other thread."""
        for event in self._subscription.take():
            self.events.append(event)
            if self._on_event is None or self._failed is not None:
                continue
            try:
                self._on_event(event)
            except Exception as error:  # noqa: BLE001 - raised by `do`: the engine's loop goes on meanwhile
                self._failed = error
                if isinstance(event, TextDelta):
                    self.host.stop(event.answer)


class HeadlessChat:
    """One conversation with a headless engine. `overflow`: what happens when its context is full."""

    def __init__(self, headless: HeadlessEngine, system: str = "", overflow: Overflow = Overflow.STOP) -> None:
        self.id: ConversationId = new_conversation_id()
        self.messages: list[Message] = []
        self.overflow = overflow
        self.evicted = NONE_EVICTED
        self.desk = headless
        if system:
            self._add("system", system)

    def answer(self, prompt: str, sampling: Sampling) -> TurnEnded:
        """Ask and get the answer, which is then `messages[-1]`. Raises UserError when the turn failed."""
        self._add("user", prompt)
        answer = new_message_id()
        asked = Generate(self.id, answer, tuple(self.messages), sampling, self.overflow, evicted=self.evicted)
        events = self.desk.do(asked)
        self.evicted = next((e.evicted for e in reversed(events) if isinstance(e, MessagesEvicted)), self.evicted)
        ended = next(e for e in events if isinstance(e, TurnEnded))
        if ended.state == "failed":
            raise UserError(ended.note)
        deltas = [e for e in events if isinstance(e, TextDelta)]
        tokens = tuple(t for e in deltas for t in e.tokens)
        self._add("assistant", "".join(e.text for e in deltas), tokens, answer, ended.stats)
        return ended

    def _add(
        self,
        role: Role,
        text: str,
        tokens: tuple[int, ...] = (),
        message_id: MessageId | None = None,
        stats: TurnStats | None = None,
    ) -> None:
        parent = self.messages[-1].id if self.messages else None
        name = message_id or new_message_id()
        self.messages.append(Message(name, self.id, parent, role, text, tokens=tokens, stats=stats))


def session_of(headless: HeadlessEngine) -> Session:
    """The session of an engine that has a model."""
    session = headless.engine.session
    assert session is not None
    return session


def asked(text: str, sampling: Sampling) -> Generate:
    """The first turn of a new conversation."""
    conversation = new_conversation_id()
    message = Message(new_message_id(), conversation, None, "user", text)
    return Generate(conversation, new_message_id(), (message,), sampling)


def prompt_of(headless: HeadlessEngine, command: Generate) -> list[int]:
    """The tokens that are to be prefilled for a turn."""
    return session_of(headless).fit(command).whole.tokens
