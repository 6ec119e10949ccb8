"""What outlives a run: conversations in SQLite, settings in JSON. Knows values; never Qt, never the engine."""

from kvdesk.store.search import SearchHit
from kvdesk.store.settings_file import load_settings, save_changes, save_settings
from kvdesk.store.store import Store
from kvdesk.store.writer import StoreWriter

__all__ = ["SearchHit", "Store", "StoreWriter", "load_settings", "save_changes", "save_settings"]
