"""When numbers are written: often enough to be read, and never so often that decoding pays for it."""

from typing import Final

from PySide6.QtCore import QObject

from kvdesk.conversations.changes import BranchChanged
from kvdesk.protocol.cache import CacheView, SpeedSample
from kvdesk.protocol.chat import TurnEnded
from kvdesk.session import Changed, Store
from kvdesk.session.changed import Update
from kvdesk.ui.widgets.throttle import Throttle

TEXT_INTERVAL_MS: Final = 250  # numbers change at most 4 times a second
_SHARE: Final = 0.0012  # of one core that writing them may take: to paint them takes twice as much again


class Numbers(QObject):
    """Has the store count what need not follow every view (`Changed.NUMBERS`)."""

    def __init__(self, parent: QObject, store: Store) -> None:
        super().__init__(parent)
        self._store = store
        self._writing = Throttle(self, TEXT_INTERVAL_MS, store.count, share=_SHARE, busy=lambda: bool(store.running))
        self._ran = False  # an answer was being written when the last view came
        self.destroyed.connect(store.listen(self._on_changed, often=(SpeedSample, CacheView)))

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        match update:
            case CacheView():
                ran, self._ran = self._ran, bool(self._store.running)
                if ran and not self._ran:
                    self._writing.now()  # the last view of an answer
                else:
                    self._writing.request()
            case SpeedSample():
                self._writing.request()
            case TurnEnded() | BranchChanged():
                if self._store.view is not None:
                    self._writing.request()
            case _:
                if changed & Changed.CONVERSATIONS and self._store.view is not None:
                    self._writing.request()
