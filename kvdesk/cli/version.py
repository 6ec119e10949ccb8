"""`kvdesk --version`: kvdesk and the parts that decide how it behaves."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from kvdesk import __version__


def main() -> int:
    """Print one line a part. A core install has the first alone."""
    print(f"kvdesk {__version__}")
    with suppress(ModuleNotFoundError):
        from kvdesk.backends.local.llama.binding import engine_version

        engine = engine_version()
        print(f"llama-cpp-python {engine.binding}")
        print(f"llama.cpp {engine.commit}")
    with suppress(PackageNotFoundError):
        print(f"PySide6 {version('PySide6-Essentials')}")
    return 0
