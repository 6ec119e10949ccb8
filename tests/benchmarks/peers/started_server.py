"""A server that is started here, in a process of its own, and ended by `close`."""

import time
from collections.abc import Sequence
from pathlib import Path

from kvdesk.children.process import Child, child_command
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.peer import PeerFailed, wrote_with
from tests.benchmarks.peers.server import ServerPeer
from tests.benchmarks.peers.table import PRIMARY
from tests.places import free_port

READY_S = 120.0
LLAMA_SERVER = "llama-server"


class StartedServer(ServerPeer):
    """See `Peer`. command: what listens at `port` of this computer. Raises PeerFailed."""

    no_restart = ""

    def __init__(self, name: str, about: str, command: Sequence[str], port: int, how: str = "") -> None:
        super().__init__(f"http://127.0.0.1:{port}", name=name)
        self.how = how
        self._command = list(command)
        self._child: Child | None = None
        self._start()
        self.about = about

    def restart(self) -> None:
        self._end()
        self._start()

    def close(self) -> None:
        super().close()
        self._end()

    def _start(self) -> None:
        try:
            self._child = Child(self._command, stdout="ignored")
        except OSError as error:
            raise PeerFailed(f"{self.name} cannot be started: {error.strerror or error}.", gone=True) from error
        began = time.monotonic()
        while True:
            try:
                self.check()
                return
            except PeerFailed as error:
                if (code := self._child.wait(0.0)) is not None:
                    said = self._child.last_words
                    self._end()
                    raise PeerFailed(f"{self.name} ended at once (exit code {code}).", said, gone=True) from error
                if time.monotonic() - began > READY_S:
                    self._end()
                    raise PeerFailed(f"{self.name} was not ready after {READY_S:.0f} s.", gone=True) from error
            time.sleep(0.1)

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def llama_server(program: Path, model: Path, settings: ContextSettings, more: Sequence[str] = ()) -> StartedServer:
    """A llama-server with the settings of kvdesk's context, as far as it has them; `more`: further options. Raises
    PeerFailed.
    """
    port = free_port()
    options = {
        "--model": model,
        "--port": port,
        "--ctx-size": settings.n_ctx,
        "--parallel": settings.n_seq_max,
        "--batch-size": settings.n_batch,
        "--ubatch-size": settings.graph_tokens,
        "--threads": settings.decode_threads,
        "--threads-batch": settings.n_threads_batch,
        "--flash-attn": "on" if settings.flash_attn else "off",
        "--cache-type-k": settings.type_k.value,
        "--cache-type-v": settings.type_v.value,
    }
    parts = [part for name, value in options.items() for part in (name, str(value))]
    unified = "--kv-unified" if settings.kv_unified else "--no-kv-unified"
    about, how = f"{program}, {model.name}", wrote_with(settings.decode_threads)
    return StartedServer(LLAMA_SERVER, about, [str(program), *parts, unified, *more], port, how)


def kvdesk_serve(model: Path, settings: ContextSettings) -> StartedServer:
    """`kvdesk serve` of this kvdesk. Raises PeerFailed."""
    port = free_port()
    options = ("--model", model, "--port", port, "--n-ctx", settings.n_ctx, "--n-seq-max", settings.n_seq_max)
    return StartedServer(PRIMARY, f"kvdesk serve, {model.name}", child_command("serve", *map(str, options)), port)
