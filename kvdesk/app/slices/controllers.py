"""The controllers of the window's slices: who does what a slice asks of the application."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from kvdesk.host.host import Host
from kvdesk.protocol.messages import Event
from kvdesk.ui.shell.main_window import MainWindow


class SliceController(Protocol):
    """Lives as long as the window."""

    def apply(self, event: Event) -> None:
        """An event of the engine."""

    def close(self) -> None:
        """The window closes."""


def _laboratory(window: MainWindow, _host: Host, embedded: Path | None) -> SliceController:
    from kvdesk.app.slices.laboratory import Laboratory

    return Laboratory(window, embedded)


def _serving(window: MainWindow, host: Host, _embedded: Path | None) -> SliceController:
    from kvdesk.app.slices.serving import Serving

    return Serving(window, host, window.store.settings)


_MAKE: Final[dict[str, Callable[[MainWindow, Host, Path | None], SliceController]]] = {
    "lab": _laboratory,
    "serve": _serving,
}


def controllers(window: MainWindow, host: Host, embedded: Path | None) -> dict[str, SliceController]:
    """Of the slices that the window has, by their names. `embedded`: the model that comes with kvdesk."""
    names = [one.name for one in window.kit.slices]
    return {name: make(window, host, embedded) for name, make in _MAKE.items() if name in names}
