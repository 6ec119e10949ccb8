"""The state of one run of the application, each part with one owner."""

from __future__ import annotations

from collections.abc import Callable

from kvdesk.errors import KvdeskError
from kvdesk.session.settings_store import Save, SettingsStore
from kvdesk.settings import Settings


class Store:
    """Given to the window and to its controllers. Without `save` nothing outlives the run."""

    def __init__(
        self,
        settings: Settings | None = None,
        save: Save = lambda _before, _now: None,
        complain: Callable[[KvdeskError], None] = lambda _error: None,
    ) -> None:
        self.settings = SettingsStore(settings or Settings(), save, complain)
