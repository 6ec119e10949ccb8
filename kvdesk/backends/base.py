"""The interface of a back end: it answers commands with events, one small step at a time. `kvdesk.host` runs it."""

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from kvdesk.message import MessageId
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, Event
from kvdesk.translation import marked

CLOSED: Final = marked("kvdesk was closed.")
Emit = Callable[[Event], None]
"""Takes every event of a back end, on the thread that runs it."""


class Backend(Protocol):
    """Runs on one thread. Only the three `request_` methods may be called from others.

    A back end with `Feature.CHAT` alone uses `kvdesk.protocol.chat` only: it answers `LoadModel` with `ModelLoaded`,
    and `Generate` with `TurnStarted`, any number of `TextDelta` and `TurnEnded`.
    """

    @property
    def features(self) -> frozenset[Feature]:
        """Its features. It gets the commands of these features and no others."""

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""

    @property
    def idle_work_due(self) -> bool:
        """Whether `idle` may find something to do."""

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Carry out a command given at `at_s` (time.perf_counter; None: now). A failed command is answered with
        `CommandFailed`; an exception raised here ends this back end (`give_up`).
        """

    def step(self) -> None:
        """Do one small piece of work, of at most about 100 ms, because commands wait for its end."""

    def idle(self) -> None:
        """Called when nothing was requested for a second: do work that pays off later."""

    def request_stop(self, answer: MessageId) -> None:
        """Stop the answer, whether it is waiting or being written. Does nothing if it has ended or was not handed over
        yet; the host then asks again. May be called from other threads.
        """

    def request_cancel(self) -> None:
        """Cancel the work that `Working` reports. May be called from other threads."""

    def request_close(self) -> None:
        """Stop what is running now; `close` follows. May be called from other threads."""

    def close(self, note: str = "") -> None:
        """End all answers (`TurnEnded` with `note`; "" means that kvdesk was closed) and free everything."""

    def give_up(self, note: str) -> tuple[Command, ...]:
        """After an unexpected error: end running answers with their text and `note`, and free what can be freed.
        Returns the commands with which another back end of this kind continues. Never raises.
        """


@runtime_checkable
class Elsewhere(Protocol):
    """What a back end adds if another thread, process or machine does its work. Its `step` takes over results that have
    arrived, and never waits for them.
    """

    wake: Callable[[], None]
    """Set by the host: call it, from any thread, when `step` has something to do."""

    @property
    def waits(self) -> bool:
        """Whether `step` has nothing to do before `wake` is called."""
