"""What every part of the window is given: its look, the state, the commands, and the actions."""

from __future__ import annotations

from collections.abc import Callable

from kvdesk.session import Commands, Store
from kvdesk.ui.widgets.actions import ActionSet
from kvdesk.ui.widgets.theme import Theme
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Kit:
    """A part reads `store`, listens to it, calls `commands`, and runs what other parts do as an action, by its id."""

    theme: Theme
    store: Store
    commands: Commands
    actions: ActionSet

    def act(self, name: str) -> Callable[[], None]:
        """Runs an action, or shows why it cannot be done: for a button or a line of a menu."""
        return lambda: self.actions.run(name)
