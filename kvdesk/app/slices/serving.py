"""The server behind the window's switch: started beside the window's thread, on the window's engine."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from kvdesk.app.background import Background
from kvdesk.errors import KvdeskError
from kvdesk.host.host import Host
from kvdesk.protocol.messages import Event
from kvdesk.session import SettingsStore
from kvdesk.session.features import ServeCommands
from kvdesk.settings import ServeSettings
from kvdesk.store.server_key import key_file, read_key
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.requests import RequestLog

if TYPE_CHECKING:
    from kvdesk.server.server import Server
    from kvdesk.ui.server.serve_section import ServeSection
    from kvdesk.ui.settings.page import SettingsPage

_SHOW_MS: Final = 250
"""Rows change so often at most while answers are written."""


class Serving(QObject, ServeCommands):
    """`host`: of the engine; `settings`: where programs are served, and what they may."""

    def __init__(self, window: MainWindow, host: Host, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._host, self._settings = window, host, settings
        self.log = RequestLog()
        self._section: ServeSection | None = None
        self._server: Server | None = None
        self._background = Background("serve", self)
        self._starting = self._closed = False
        self._show = once(self, _SHOW_MS, self._show_requests)
        window.commands.serving = self
        self._window.rooms.when_made("settings", self._on_page_made)
        self._show_requests()

    @property
    def _n_ctx(self) -> int:
        return self._settings.current.context.n_ctx

    def apply(self, event: Event) -> None:
        """An event of the engine."""
        is_shown = self._section is not None or self._server is not None
        if self.log.apply(event) and is_shown and not self._show.isActive():
            self._show.start()

    def close(self) -> None:
        """The window closes."""
        self._closed = True
        self._background.wait()
        self._stop()

    # --- intents ------------------------------------------------------------------------------------------------------

    def _on_page_made(self, page: SettingsPage) -> None:
        self._section = section = page.serving
        section.show_key(self._key())
        if self._server is not None:
            section.show_serving(self._server.url, self._n_ctx)
        elif self._starting:
            section.show_starting()
        self._show_requests()

    def begin(self) -> None:
        """Importing what serves takes a quarter of a second: not on this thread."""
        if self._server is not None or self._starting:
            return
        if self._section is not None:
            self._section.show_starting()
        self._starting = True
        chosen = self._settings.current.serve
        self._background.run(partial(self._start, chosen, self._key()), self._on_started, self._on_not_started)

    def _start(self, chosen: ServeSettings, key: str) -> Server:
        """On its own thread."""
        from kvdesk.server.config import Key, ServerConfig
        from kvdesk.server.server import Server

        host = "0.0.0.0" if chosen.others else "127.0.0.1"
        keys = (Key(key, inspect=chosen.inspect),)
        share = chosen.client_share / 100
        config = ServerConfig(host, chosen.port, keys, share_prefixes=chosen.share_prefixes, client_share=share)
        server = Server(self._host, config, self._settings.current.sampling)
        server.start()
        return server

    def _on_started(self, server: Server) -> None:
        self._starting, self._server = False, server
        if self._section is not None:
            self._section.show_serving(server.url, self._n_ctx)
        if not self._closed:
            self._show_requests()

    def _on_not_started(self, error: KvdeskError) -> None:
        self._starting = False
        if self._section is not None:
            self._section.show_stopped(str(error))

    def end(self) -> None:
        self._stop()
        if self._section is not None:
            self._section.show_stopped()

    def renew_key(self) -> None:
        with contextlib.suppress(OSError):
            key_file().unlink(missing_ok=True)
        if self._section is not None:
            self._section.show_key(self._key())

    # --- private ------------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if not self._closed:
            self._show_requests()

    def _key(self) -> str:
        """The key of this home, made when it is first asked for."""
        try:
            return read_key(key_file())
        except OSError as error:
            self._window.store.complain(tr("The API key cannot be kept: {why}.").format(why=error.strerror or error))
            from kvdesk.server.config import new_key

            return new_key()

    def _show_requests(self) -> None:
        """On the page, and in the window how many are answered now."""
        url = self._server.url if self._server is not None else ""
        self._window.store.show_served(url, self.log.n_running)
        if self._section is not None:
            self._section.show_requests(self.log.rows, self._kept(), self.log.score.sentence)

    def _kept(self) -> str:
        """What is kept for programs: by the engine, and by the server itself."""
        kept = [self.log.kept]
        if self._server is not None and (rows := [row for row in self._server.memory if row.measured]):
            n, most = sum(row.measured or 0 for row in rows), sum(row.most or 0 for row in rows)
            told = tr("Answers that the server remembers: {mb} of {most} MB.")
            kept.append(told.format(mb=f"{n / 1e6:,.1f}", most=f"{most / 1e6:,.0f}"))
        return "\n".join(filter(None, kept))
