"""The keys of servers: in the system's keyring, and if there is none in a file that only its owner can read."""

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvdesk import paths
from kvdesk.loose_json import json_value, obj
from kvdesk.translation import tr
from kvdesk.whole_file import write_whole

SERVICE: Final = "kvdesk"
PATIENCE_S: Final = 20.0
"""So long a keyring may take: it may ask the user for its own password."""
_MOST_BYTES: Final = 1 << 20
_log = logging.getLogger(__name__)


class ServerKeys:
    """Safe for several threads. A keyring may take seconds: not to be asked on the window's thread."""

    def __init__(self, file: Path, patience_s: float = PATIENCE_S) -> None:
        self._file, self._patience_s = file, patience_s
        self._lock, self._writing = threading.Lock(), threading.Lock()  # of the keys in memory; of the file
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
        key = self._in_file(url) or self._of_keyring(lambda ring: ring.get_password(SERVICE, url)) or ""
        self.use(url, key)
        return key

    def keep(self, url: str, key: str) -> str:
        """Keep it beyond this run, or with "" forget it. Returns a sentence if it is in a file or was not deleted;
        "" else.
        """
        self.use(url, key)
        if not key:
            self._of_keyring(lambda ring: ring.delete_password(SERVICE, url))
            problem = self._remove(url)
            is_left = bool(self._of_keyring(lambda ring: ring.get_password(SERVICE, url)))
            return tr("The system's keyring did not delete the key.") if is_left else problem
        self._of_keyring(lambda ring: ring.set_password(SERVICE, url, key))
        if self._of_keyring(lambda ring: ring.get_password(SERVICE, url)) == key:
            return self._remove(url)
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

    def _in_file(self, url: str) -> str:
        try:
            key = obj(self._read()).get(url)
        except OSError:
            return ""
        return key if isinstance(key, str) else ""

    def _read(self) -> object:
        """What the file holds, None if it is no JSON. Raises OSError; a file that is missing holds nothing."""
        try:
            with paths.open_regular(self._file) as file:
                return json_value(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return {}

    def _remove(self, url: str) -> str:
        """Delete the key of this server in the file; a sentence if that failed."""
        try:
            self._write(url, "")
        except OSError as error:
            return tr("The key could not be deleted from {file}: {why}.").format(
                file=self._file, why=error.strerror or error
            )
        return ""

    def _write(self, url: str, key: str) -> None:
        """With the key of this server, or without it. What else the file holds stays; a damaged one is kept beside.

        Raises OSError.
        """
        with self._writing:
            value = self._read()
            keys = obj(value)
            if keys.get(url, "") == key:
                return
            if not isinstance(value, dict):
                self._file.replace(self._file.with_name(f"{self._file.name}.broken"))
            keys = {**keys, url: key} if key else {name: kept for name, kept in keys.items() if name != url}
            if keys:
                write_whole(self._file, json.dumps(keys).encode(), mode=0o600)
            else:
                self._file.unlink(missing_ok=True)
