"""The log and the file for crashes, for as long as kvdesk runs. Neither is worth a start that fails: what cannot be
written is left out and named.
"""

import faulthandler
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from kvdesk import paths
from kvdesk.translation import tr

LOG_BYTES = 1 << 20


@contextmanager
def log_files(folder: Path) -> Iterator[tuple[str, ...]]:
    """Write kvdesk's log and crashes of the process into `folder`. Gives a sentence for each file that cannot be."""
    complaints: list[str] = []
    with ExitStack() as stack:
        for name, begin in (("kvdesk.log", _log), ("crash.log", _crashes)):
            try:
                with suppress(FileNotFoundError):
                    paths.refuse_other_than_a_file(folder / name)
                stack.enter_context(begin(folder / name))
            except OSError as error:
                complaints.append(
                    tr("{folder} cannot be written ({strerror}); kvdesk continues without it.").format(
                        folder=folder / name, strerror=error.strerror
                    )
                )
        yield tuple(complaints)


class _LogFile(RotatingFileHandler):
    """A line that the disk keeps out is lost, and nothing else: neither a traceback is printed nor an end disturbed."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()


@contextmanager
def _log(path: Path) -> Iterator[None]:
    handler = _LogFile(path, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("kvdesk")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


@contextmanager
def _crashes(path: Path) -> Iterator[None]:
    with path.open("a", encoding="utf-8") as crash_log:
        faulthandler.enable(crash_log)
        try:
            yield
        finally:
            faulthandler.disable()
