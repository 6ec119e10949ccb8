"""What the window and its controllers share: the state of one run, and what a user can ask for. Knows no Qt."""

from kvdesk.session.changed import Changed
from kvdesk.session.commands import Commands
from kvdesk.session.settings_store import SettingsStore
from kvdesk.session.store import Store

__all__ = ["Changed", "Commands", "SettingsStore", "Store"]
