"""A host with a back end, on a thread of its own, and all that it has said; and a question to it."""

import threading
from collections.abc import Callable
from typing import TypeVar

from kvdesk.backends.base import Backend, Emit
from kvdesk.host.host import Host
from kvdesk.message import ConversationId, Message, new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, TextDelta, TurnEnded
from kvdesk.protocol.messages import Command, Event
from kvdesk.settings import Sampling

E = TypeVar("E", bound=Event)
WAIT_S = 60.0


def ask(
    text: str = "Where do puffins live?", sampling: Sampling | None = None, conversation: ConversationId | None = None
) -> Generate:
    """The first question of a conversation, a new one if none is given."""
    conversation = conversation or new_conversation_id()
    question = Message(new_message_id(), conversation, None, "user", text)
    return Generate(conversation, new_message_id(), (question,), sampling or Sampling(max_tokens=50))


class Heard:
    """Runs until it is closed."""

    wait_s = WAIT_S

    def __init__(self, make: Callable[[Emit], Backend]) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()
        self.host = Host(make)
        self._subscription = self.host.subscribe(self._take)
        self._thread = threading.Thread(target=self.host.run)
        self._thread.start()

    def _take(self) -> None:
        with self._changed:
            self.events += self._subscription.take()
            self._changed.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def send(self, *commands: Command) -> None:
        for command in commands:
            self.host.submit(command)

    def wait(self, so: Callable[[], object]) -> None:
        """Until it is so after an event."""
        with self._changed:
            assert self._changed.wait_for(so, timeout=self.wait_s), self.events[-5:]

    def ended(self, command: Generate) -> TurnEnded:
        """The end of its answer, which is waited for."""
        self.wait(lambda: any(e.answer == command.answer for e in self.of(TurnEnded)))
        return next(e for e in self.of(TurnEnded) if e.answer == command.answer)

    def answered(self, command: Generate | None = None) -> tuple[Generate, TurnEnded]:
        """Ask and wait for the end of the answer."""
        command = command or ask()
        self.send(command)
        return command, self.ended(command)

    def text(self, command: Generate) -> str:
        """What its answer has until now."""
        return "".join(e.text for e in self.of(TextDelta) if e.answer == command.answer)

    def close(self) -> None:
        self.host.shut_down()
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()
