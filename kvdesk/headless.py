"""kvdesk without a window: an engine that its host runs on this thread, and a conversation with it."""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kvdesk.backends.base import Backend, Emit
from kvdesk.backends.local.engine import Engine
from kvdesk.backends.local.session import Session
from kvdesk.chat import Conversation, EvictedMessages, typed
from kvdesk.conversations.requests import shown_to_model
from kvdesk.conversations.service import ConversationService
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError
from kvdesk.host.host import Host
from kvdesk.message import ConversationId, Message, MessageId, new_conversation_id, new_message_id
from kvdesk.protocol.chat import EngineDied, EngineRestarted, LoadModel, MessagesEvicted, TextDelta, TurnEnded
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Overflow, Sampling, Settings
from kvdesk.translation import tr
from kvdesk.values import replace


class HeadlessEngine:
    """An engine, the host that runs it, and the events it gave. `on_event` sees every event as it comes.

    make_backend  what runs in its place; None: the engine in this process, which is then `engine`
    """

    engine: Engine

    def __init__(
        self, on_event: Callable[[Event], None] | None = None, make_backend: Callable[[Emit], Backend] | None = None
    ) -> None:
        self.host = Host(make_backend or self._made)
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

    def stop_listening(self) -> None:
        """From now on `events` stays as it is, and `on_event` sees nothing."""
        self._subscription.close()

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


@contextmanager
def running(model: Path, settings: ContextSettings) -> Iterator[Host]:
    """The host of an engine that has this model, on its own thread. Raises UserError."""
    headless = HeadlessEngine()
    try:
        headless.do(LoadModel(LocalFile(model), settings))
    except UserError:
        headless.close()
        raise
    headless.stop_listening()
    thread = threading.Thread(target=headless.host.run, name="kvdesk-engine")
    thread.start()
    try:
        yield headless.host
    finally:
        headless.host.shut_down()
        thread.join()


class HeadlessChat:
    """One conversation with a headless engine, held by the service that the window's conversations are held by.

    overflow      what happens when its context is full
    conversation  its name, where one that was held before goes on
    probabilities how likely its tokens were is kept with each answer
    """

    def __init__(
        self,
        headless: HeadlessEngine,
        system: str = "",
        overflow: Overflow = Overflow.STOP,
        conversation: ConversationId | None = None,
        *,
        probabilities: bool = False,
    ) -> None:
        self.id = conversation or new_conversation_id()
        self.headless = headless
        self._settings = Settings(token_probabilities=probabilities)
        self._asked: list[Command] = []
        self._begin(Conversation(self.id, "", 0, system_prompt=system, overflow=overflow.value), Tree())

    @property
    def messages(self) -> list[Message]:
        """What the model is shown: the system prompt, if there is one, and the messages that count, oldest first. To
        set them is to go on after these, whoever said them.
        """
        return list(shown_to_model(self._known, self.service.branch(self.id)))

    @messages.setter
    def messages(self, messages: Sequence[Message]) -> None:
        system = "".join(message.text for message in messages if message.role == "system")
        said: list[Message] = []
        for message in messages:
            if message.role != "system":
                said.append(replace(message, conversation=self.id, parent=said[-1].id if said else None))
        self._begin(replace(self._known, system_prompt=system, leaf=said[-1].id if said else None), Tree(said))

    @property
    def last(self) -> Message:
        """The last message, with all that is kept with it."""
        return self.service.branch(self.id)[-1]

    @property
    def overflow(self) -> Overflow:
        return self.service.overflow_of(self.id)

    @overflow.setter
    def overflow(self, overflow: Overflow) -> None:
        self.service.choose_overflow(self.id, overflow)

    @property
    def evicted(self) -> EvictedMessages:
        """What was evicted from its context."""
        return self._known.evicted

    @evicted.setter
    def evicted(self, evicted: EvictedMessages) -> None:
        self.service.apply(MessagesEvicted(self.id, evicted))

    def answer(self, prompt: str, sampling: Sampling) -> TurnEnded:
        """Ask and get the answer, which is then `messages[-1]`. Raises UserError when the turn failed: then question
        and answer do not count.
        """
        self._settings = self._settings.model_copy(update={"sampling": sampling})
        answer = self.service.send(self.id, prompt)
        if answer is None:
            raise UserError(tr("A prompt must have some text."))
        try:
            events = self.headless.do(self._asked.pop())
        finally:
            self.service.take(self.headless.events)
            self.service.turns.interrupt(tr("The engine did not end this answer."))  # nothing, as a rule: it has ended
        ended = next(event for event in events if isinstance(event, TurnEnded) and event.answer == answer)
        if ended.state == "failed":
            raise UserError(ended.note)
        return ended

    def add_question(self, text: str) -> None:
        """A message of the user that nobody is asked to answer yet."""
        self.messages = [*self.messages, Message(new_message_id(), self.id, None, "user", typed(text).text)]

    def _stop(self, answer: MessageId) -> None:
        self.headless.host.stop(answer)

    @property
    def _known(self) -> Conversation:
        known = self.service.get(self.id)
        assert known is not None
        return known

    def _begin(self, conversation: Conversation, tree: Tree) -> None:
        self.service = ConversationService(self._asked.append, self._stop, lambda: self._settings)
        self.service.load([conversation])
        self.service.tree_read(self.id, tree)


def session_of(headless: HeadlessEngine) -> Session:
    """The session of an engine that has a model."""
    session = headless.engine.session
    assert session is not None
    return session
