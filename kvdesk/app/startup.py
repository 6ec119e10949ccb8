"""Decisions at start: which model to open, and whether the last load came to an end. No widgets."""

from contextlib import suppress
from pathlib import Path

from kvdesk import paths
from kvdesk.translation import tr
from kvdesk.whole_file import write_whole

_LONGEST_PATH = 1 << 16


class LoadMarker:
    """A file that exists while a model is being loaded: a load that killed the process is not repeated unasked
    (gpt4all #1166)."""

    def __init__(self, file: Path, embedded: Path | None) -> None:
        self._file = file
        self.embedded = embedded

    def set(self, model: Path) -> None:
        """A load begins. The embedded model needs no mark."""
        if model != self.embedded:
            with suppress(OSError):  # a full disk must not keep a model from being opened
                write_whole(self._file, str(model).encode("utf-8", "surrogateescape"))

    def clear(self) -> None:
        """The load has ended, successfully or not, and the process has not crashed."""
        with suppress(OSError):  # a folder in its place, or a disk that became read-only
            self._file.unlink(missing_ok=True)

    def unfinished(self) -> str:
        """The model whose load did not end in an earlier run, empty when none."""
        try:
            with paths.open_regular(self._file) as file:
                return file.read(_LONGEST_PATH).decode("utf-8", "surrogateescape")
        except OSError:
            return ""


def choose_model(asked: str | None, remembered: str, marker: LoadMarker) -> tuple[Path | None, str]:
    """The model to open at start and a sentence to show (empty when there is nothing to say).

    What was asked for on the command line is opened whatever happened before; a remembered model whose load never
    ended is not.
    """
    unfinished = marker.unfinished()
    marker.clear()
    if asked:
        return Path(asked).absolute(), ""
    if remembered and remembered == unfinished:
        return marker.embedded, (
            tr(
                "Loading {name} did not finish last time, so it was not opened again. Open it by hand to try once more."
            ).format(name=Path(remembered).name)
        )
    if remembered and not _is_file(remembered):
        return marker.embedded, tr("{name} is no longer there; the embedded model was opened.").format(
            name=Path(remembered).name
        )
    if remembered:
        return Path(remembered), ""
    if marker.embedded is None:
        return None, tr("The embedded model is not installed: open a GGUF file to begin.")
    return marker.embedded, ""


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name that is too long, or none
        return False
