"""What a back end is: whatever answers commands with events, one small step at a time. `kvdesk.host` runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from kvdesk.chat import MessageId
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, Event
from kvdesk.translation import marked

CLOSED: Final = marked("kvdesk was closed.")
Emit = Callable[[Event], None]
"""Takes every event of a back end, on the thread that runs it."""


class Backend(Protocol):
    """Runs on one thread; only the three requests may be called from others.

    One that has no more than `Feature.CHAT` speaks `kvdesk.protocol.chat` alone: it answers `LoadModel` by
    `ModelLoaded` and `Generate` by `TurnStarted`, `TextDelta` after `TextDelta`, and `TurnEnded`.
    """

    @property
    def features(self) -> frozenset[Feature]:
        """What it has: it gets the commands of these, and of no other."""

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do."""

    @property
    def idle_work_due(self) -> bool:
        """Whether `idle` may find something to do."""

    def handle(self, command: Command, at_s: float | None = None) -> None:
        """Take a command that was given at `at_s` (time.perf_counter; None: now). One that fails is answered by
        `CommandFailed`; what is raised here ends this back end (`give_up`).
        """

    def step(self) -> None:
        """Do one small piece of work, of at most some 100 ms: commands wait for its end."""

    def idle(self) -> None:
        """Nobody has asked for anything for a second: do what pays back later."""

    def request_stop(self, answer: MessageId) -> None:
        """Stop the answer, whether it waits or is written; nothing where it has ended, or was not handed over yet (the
        host asks again then). May be called from other threads.
        """

    def request_cancel(self) -> None:
        """End the work that `Working` tells of. May be called from other threads."""

    def request_close(self) -> None:
        """End what runs now, as `close` follows. May be called from other threads."""

    def close(self, note: str = "") -> None:
        """End all answers (`TurnEnded`, which says `note`; "": that kvdesk was closed) and free everything."""

    def give_up(self, note: str) -> tuple[Command, ...]:
        """After an error nobody expected: end the answers under way with their text and `note`, free what can be
        freed. Returns the commands with which another back end of this kind goes on. Never raises.
        """


@runtime_checkable
class Elsewhere(Protocol):
    """What a back end has besides whose work is done elsewhere: by another thread, process or machine. Its `step` takes
    over what came from there, and never waits for it.
    """

    wake: Callable[[], None]
    """Set by the host: to be called, from any thread, when `step` has something to do."""

    @property
    def waits(self) -> bool:
        """Whether `step` has nothing to do before `wake` is called."""
