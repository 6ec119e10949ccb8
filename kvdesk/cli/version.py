"""`kvdesk --version`: kvdesk and the parts that decide how it behaves."""

from __future__ import annotations

from importlib.metadata import version

from kvdesk import __version__
from kvdesk.engine.binding import engine_version


def version_text() -> str:
    """One line a part."""
    engine = engine_version()
    return "\n".join(
        (
            f"kvdesk {__version__}",
            f"llama-cpp-python {engine.binding}",
            f"llama.cpp {engine.commit}",
            f"PySide6 {version('PySide6-Essentials')}",
        )
    )
