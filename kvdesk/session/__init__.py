"""What the window and its controllers share: state that has one owner, and tells who listens what has changed.

Knows no Qt. Today it holds the settings.
"""

from kvdesk.session.settings_store import SettingsStore
from kvdesk.session.store import Store

__all__ = ["SettingsStore", "Store"]
