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
"""After so long without a word it is said. Prompts are read in pieces of far less, and a load tells how far it is."""


class Silence(QObject):
    """Looks at the host every `LOOK_MS`."""

    def __init__(self, parent: QObject, session: Store, host: Host) -> None:
        super().__init__(parent)
        self._session, self._host = session, host
        self._said = False
        self._clock = every(self, LOOK_MS, self.look)
        self._clock.start()

    def close(self) -> None:
        """Look no longer."""
        self._clock.stop()

    def look(self) -> None:
        """Say what has changed since the last look."""
        silent = self._host.silent_s >= SILENT_S
        sentence = tr(
            "The engine has not responded for {silent_s:.0f} seconds: it is computing, or it hangs. Everything shown "
            "is saved; you can close and restart kvdesk."
        ).format(silent_s=SILENT_S)
        if silent and not self._said:
            self._session.notify(sentence, "warning")
        elif self._said and not silent:
            self._session.notify(tr("The engine answers again."), "good", ends=sentence)
        self._said = silent
