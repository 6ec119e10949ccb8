"""The one owner of the settings. Everybody else reads `current` and asks for changes."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kvdesk.errors import KvdeskError, guarded, unexpected
from kvdesk.settings import Settings

Save: TypeAlias = Callable[[Settings, Settings], None]
"""Keeps what differs between the settings before and now. Raises KvdeskError."""
Listener: TypeAlias = Callable[[frozenset[str]], None]
"""Called with the names of the fields that have changed; it reads their values from the store."""


class SettingsStore:
    """`save` stores each change at once; `complain` is called if that failed, and the next change is saved with it.
    Both run on the caller's thread.
    """

    def __init__(
        self,
        settings: Settings,
        save: Save = lambda _before, _now: None,
        complain: Callable[[KvdeskError], None] = lambda _error: None,
    ) -> None:
        self._current = self._saved = settings
        self._save, self._complain = save, complain
        self._listeners: list[Listener] = []

    @property
    def current(self) -> Settings:
        """The settings now."""
        return self._current

    def listen(self, listener: Listener) -> Callable[[], None]:
        """`listener` is called after each change, until what is returned is called."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def change(self, **fields: object) -> None:
        """Give these fields other values; all others stay. Saves, then calls the listeners, if anything differs."""
        if unknown := fields.keys() - Settings.model_fields.keys():
            raise TypeError(f"no such settings: {', '.join(sorted(unknown))}")
        before = self._current
        changed = {name: value for name, value in fields.items() if value != getattr(before, name)}
        if not changed:
            return
        self._current = now = before.model_copy(update=changed)
        try:
            self._save(self._saved, now)
            self._saved = now
        except KvdeskError as error:
            self._complain(error)
        except Exception as error:  # noqa: BLE001 - whatever it is: the listeners must not pay for it
            self._complain(KvdeskError(unexpected(error), repr(error)))
        for listener in tuple(self._listeners):
            guarded(partial(listener, frozenset(changed)))
