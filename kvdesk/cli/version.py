"""`kvdesk --version`: kvdesk and the parts that decide how it behaves."""

from __future__ import annotations

from importlib.metadata import version

from kvdesk import __version__
from kvdesk.backends.local.llama.binding import engine_version


def main() -> int:
    """Print one line a part."""
    engine = engine_version()
    print(f"kvdesk {__version__}")
    print(f"llama-cpp-python {engine.binding}")
    print(f"llama.cpp {engine.commit}")
    print(f"PySide6 {version('PySide6-Essentials')}")
    return 0
