"""The keys of servers: in the system's keyring, and if there is none in a file that only its owner can read."""

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvdesk import paths
from kvdesk.loose_json import object_in
from kvdesk.translation import tr
from kvdesk.whole_file import replacing

SERVICE: Final = "kvdesk"
PATIENCE_S: Final = 20.0
"""So long a keyring may take: it may ask the user for its own password."""
_log = logging.getLogger(__name__)


class ServerKeys:
    """Safe for several threads. A keyring may take seconds: not to be asked on the window's thread."""

    def __init__(self, file: Path, patience_s: float = PATIENCE_S) -> None:
        self._file, self._patience_s = file, patience_s
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def use(self, url: str, key: str) -> None:
        """The key of a server from now on, in this run; `keep` keeps it. Returns at once."""
        with self._lock:
            self._known[url] = key

    def get(self, url: str) -> str:
        """The key of the server at an address, "" if none is known."""
        with self._lock:
            if url in self._known:
                return self._known[url]
        key = self._read().get(url) or self._of_keyring(lambda ring: ring.get_password(SERVICE, url)) or ""
        self.use(url, key)
        return key

    def keep(self, url: str, key: str) -> str:
        """Keep it beyond this run, or with "" forget it. Returns a sentence if it is in a file or was not deleted;
        "" else.
        """
        self.use(url, key)
        if not key:
            self._of_keyring(lambda ring: ring.delete_password(SERVICE, url))
            self._write(url, "")
            is_left = bool(self._of_keyring(lambda ring: ring.get_password(SERVICE, url)))
            return tr("The system's keyring did not delete the key.") if is_left else ""
        self._of_keyring(lambda ring: ring.set_password(SERVICE, url, key))
        if self._of_keyring(lambda ring: ring.get_password(SERVICE, url)) == key:
            self._write(url, "")
            return ""
        try:
            self._write(url, key)
        except OSError as error:
            return tr("The key could not be kept: {why}. It is used until kvdesk is closed.").format(
                why=error.strerror or error
            )
        return tr("This system has no keyring, so the key is kept in a file that only you can read: {file}.").format(
            file=self._file
        )

    def _of_keyring(self, ask: Callable[..., object]) -> str | None:
        """What the keyring says; None if there is none, it fails, or does not answer in time."""
        said: list[object] = []

        def work() -> None:
            try:
                import keyring

                said.append(ask(keyring.get_keyring()))
            except Exception as error:  # noqa: BLE001 - every keyring has its own errors; no key in their texts
                _log.info("the keyring: %s", type(error).__name__)

        thread = threading.Thread(target=work, name="kvdesk-keyring", daemon=True)
        thread.start()
        thread.join(self._patience_s)
        return said[0] if said and isinstance(said[0], str) else None

    def _read(self) -> dict[str, str]:
        with self._lock:
            try:
                with paths.open_regular(self._file) as file:
                    value = object_in(file.read(1 << 20))
            except OSError:
                return {}
        return {url: key for url, key in value.items() if isinstance(key, str)}

    def _write(self, url: str, key: str) -> None:
        """With the key of this server, or without it. Raises OSError."""
        keys = self._read()
        if keys.get(url, "") == key:
            return
        keys = {**keys, url: key} if key else {name: value for name, value in keys.items() if name != url}
        with self._lock:
            if not keys:
                self._file.unlink(missing_ok=True)
                return
            with replacing(self._file) as part:
                handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(keys, file)
