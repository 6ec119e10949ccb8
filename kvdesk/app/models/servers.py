"""Servers for the window: their section of the settings, tests of what is there, keys, and the list of known ones.

Keys and tests do not hold the window up: a keyring may ask the user for a password, and a server may be slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from kvdesk.app.background import CLOSE_S, Background, Task
from kvdesk.errors import KvdeskError
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import Endpoint
from kvdesk.protocol.servers import ServerFound
from kvdesk.session import SettingsStore
from kvdesk.session.features import ServerCommands
from kvdesk.settings import KnownServer
from kvdesk.store.server_keys import ServerKeys
from kvdesk.ui.shell.main_window import MainWindow

if TYPE_CHECKING:
    from kvdesk.ui.server.connect_section import ConnectSection
    from kvdesk.ui.settings.page import SettingsPage

MOST_SERVERS: Final = 50
AT_ONCE: Final = 16
"""Tests and questions to the keyring: one that never answers keeps nothing from the next."""


def find(url: str, key: str) -> ServerFound:
    """What is at this address? Takes as long as the server does. Raises UserError."""
    import asyncio

    from kvdesk.backends.openai.client import client_of
    from kvdesk.backends.openai.kinds import ask
    from kvdesk.backends.openai.problems import problem_of

    async def asked() -> ServerFound:
        async with client_of(url, key) as client:
            return (await ask(client)).found

    try:
        return asyncio.run(asked())
    except Exception as error:
        raise problem_of(error, 15.0) from error


class Servers(QObject, ServerCommands):
    """settings: where servers are remembered; open_server: connects one."""

    def __init__(
        self, window: MainWindow, keys: ServerKeys, settings: SettingsStore, open_server: Callable[[KnownServer], None]
    ) -> None:
        super().__init__(window)
        self._window, self._keys, self._settings, self._open = window, keys, settings, open_server
        self._background = Background("server", self, AT_ONCE)
        self._keeping = Background("keys", self)
        self._test: Task | None = None  # the last one: what an older one found is not shown
        self._section: ConnectSection | None = None
        self.destroyed.connect(settings.listen(self._on_settings_changed))
        window.commands.servers = self
        self._window.rooms.when_made("settings", self._on_page_made)

    def close(self) -> None:
        """Wait for the keys that are being kept or deleted; drop everything else."""
        self._background.close(wait_s=0.0)
        self._keeping.wait(CLOSE_S)
        self._keeping.close(wait_s=0.0)

    def apply(self, event: Event) -> None:
        """A server that answered is remembered, with the model that was opened there."""
        if isinstance(event, ModelLoaded) and isinstance(event.model.source, Endpoint):
            source = event.model.source
            self._remember(KnownServer(url=source.url, name=source.server, model=source.model))

    def _on_page_made(self, page: SettingsPage) -> None:
        self._section = page.connecting
        self._section.show_servers(self._settings.current.servers)

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "servers" in changed and self._section is not None:
            self._section.show_servers(self._settings.current.servers)

    def test(self, url: str, key: str | None) -> None:
        self._forget_test()
        self._test = self._background.run(
            lambda: find(url, self._keys.get(url) if key is None else key), self._on_found, self._on_not_found
        )

    def _forget_test(self) -> None:
        if self._test is not None:
            self._test.cancel()

    def _on_found(self, found: ServerFound) -> None:
        if self._section is not None:
            self._section.show_found(found)

    def _on_not_found(self, error: KvdeskError) -> None:
        if self._section is not None:
            self._section.show_problem(str(error), error.detail)

    def connect_to(self, server: KnownServer, key: str | None) -> None:
        """The key counts at once; keeping it may take longer than connecting. None: the one that is kept."""
        self._forget_test()
        self._window.rooms.show_chats()
        if key is not None:
            self._keys.use(server.url, key)
        self._remember(server)
        self._open(server)
        if key is not None:
            self._keep(server.url, key)

    def reconnect(self) -> None:
        """Connect the server that was connected last."""
        if servers := self._settings.current.servers:
            self._open(servers[0])

    def forget(self, url: str) -> None:
        self._settings.change(servers=tuple(one for one in self._settings.current.servers if one.url != url))
        self._keep(url, "")

    def read_key(self, url: str) -> None:
        self._background.run(lambda: self._keys.get(url), partial(self._on_key_read, url))

    def _on_key_read(self, url: str, key: str) -> None:
        if self._section is not None:
            self._section.show_key(url, key)

    def _keep(self, url: str, key: str) -> None:
        self._keeping.run(
            partial(self._keys.keep, url, key), self._on_key_kept, lambda error: self._on_key_kept(str(error))
        )

    def _on_key_kept(self, sentence: str) -> None:
        if sentence:
            self._window.store.notify(sentence, "warning")

    def _remember(self, server: KnownServer) -> None:
        """As the last one that was connected."""
        others = tuple(known for known in self._settings.current.servers if known.url != server.url)
        self._settings.change(servers=(server, *others)[:MOST_SERVERS])
