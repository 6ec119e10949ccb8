"""Says that the engine has been in one step of its work for long, and that it goes on again.

A step that takes so long is a hang, or a model far too large for this machine: nobody can tell them apart from outside.
"""

from typing import Final

from PySide6.QtCore import QObject

from kvdesk.host.host import Host
from kvdesk.session import Store
from kvdesk.translation import tr
from kvdesk.ui.widgets.timers import every

LOOK_MS: Final = 1_000
SILENT_S: Final = 15.0
"""After so long without a word it is said, and after twice as long as a silence that ended. Prompts are read in pieces
of less on most computers, and a load tells how far it is.
"""
MOST_S: Final = 120.0
"""It is said after so long in any case."""


class Silence(QObject):
    """Looks at the host every `LOOK_MS`."""

    def __init__(self, parent: QObject, session: Store, host: Host) -> None:
        super().__init__(parent)
        self._session, self._host = session, host
        self._said = ""  # what is said now
        self._longest = self._before = 0.0  # of the silences that ended, and what it was at the last look
        self._clock = every(self, LOOK_MS, self.look)
        self._clock.start()

    def close(self) -> None:
        """Look no longer."""
        self._clock.stop()

    def look(self) -> None:
        """Say what has changed since the last look."""
        now, patience = self._host.silent_s, min(max(SILENT_S, 2 * self._longest), MOST_S)
        if now < self._before:
            self._longest = max(self._longest, self._before)  # it was computing: a step takes that long here
        self._before = now
        if now >= patience and not self._said:
            self._said = tr(
                "The engine has not responded for {silent_s:.0f} seconds: it is computing, or it hangs. Everything "
                "shown is saved; you can close and restart kvdesk."
            ).format(silent_s=patience)
            self._session.notify(self._said, "warning")
        elif self._said and now < patience:
            self._session.notify(tr("The engine is responding again."), "good", ends=self._said)
            self._said = ""
