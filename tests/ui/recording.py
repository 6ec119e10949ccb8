"""Commands that are recorded, not carried out."""

from collections.abc import Callable
from typing import Any

from PySide6.QtWidgets import QWidget

from kvdesk.session import Commands, Store
from kvdesk.ui.shell.slices import SLICES
from kvdesk.ui.widgets.actions import ActionSet
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme

Record = Callable[[object], list[tuple[object, ...]]]
"""The fixture `record`, which is the function below."""


class Recorded:
    """One command: who is connected hears the values it is called with, those with names last."""

    def __init__(self) -> None:
        self._heard: list[Callable[..., object]] = []

    def connect(self, hear: Callable[..., object]) -> None:
        self._heard.append(hear)

    def __call__(self, *values: object, **named: object) -> None:
        for hear in tuple(self._heard):
            hear(*values, *named.values())


class Recorder(Commands):
    """`record(window.commands.conversations.send)` gives the list of what is sent.

    of  has the commands; another one raises AttributeError
    """

    def __init__(self, of: object = None) -> None:
        self._of = Commands() if of is None else of
        self._recorded: dict[str, Any] = {}

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattribute__(name)
        known = getattr(self._of, name)
        return self._recorded.setdefault(name, Recorded() if callable(known) else Recorder(known))


def hear(signal: object, listener: Callable[..., object]) -> None:
    """`listener` is called with what a signal, or a recorded command, sends from now on."""
    signal.connect(listener)  # type: ignore[attr-defined]


def record(signal: object) -> list[tuple[object, ...]]:
    """What a signal, or a recorded command, sends from now on."""
    sent: list[tuple[object, ...]] = []
    hear(signal, lambda *values: sent.append(values))
    return sent


class RecordedActions(ActionSet):
    """Actions of a window that is not there: `ran` has the ids of those that were asked for."""

    def __init__(self, store: Store) -> None:
        super().__init__(QWidget(), store.notify)
        self.ran: list[str] = []

    def run(self, name: str, _checked: bool = False, *, at: QWidget | None = None) -> None:  # noqa: ARG002
        self.ran.append(name)


def kit_of(theme: Theme, store: Store) -> Kit:
    """Of a page without a window; what it asks for is recorded."""
    return Kit(theme, store, Recorder(), RecordedActions(store), SLICES)
