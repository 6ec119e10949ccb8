"""Files are written whole, or stay as they were: the one way in which kvdesk writes a file that others read."""

import errno
import glob
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from kvdesk.translation import tr

PATIENCE_S: Final = 0.5 if sys.platform == "win32" else 0.0
_MOST_PID: Final = (1 << 31) - 1
"""That the systems can be asked for: psutil raises OverflowError above it."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to make a file at. That file is flushed to the disk and takes the place of `path` when
    the block ends; where the block raises, it is removed.

    A link is followed. Names differ between processes, so that two that write one file each write a whole one. What a
    killed process left of the same file is removed. Raises OSError, also if `path` is a device: root would put a file
    in the place of /dev/null.
    """
    target = Path(os.path.realpath(path))
    if target.is_char_device() or target.is_block_device():
        raise OSError(errno.EINVAL, tr("it is not a file"), str(path))
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    _remove_left(target)
    try:
        part.unlink(missing_ok=True)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        _put(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, data: bytes | bytearray | memoryview, mode: int = 0o666) -> None:
    """`replacing` with these bytes. mode: its permissions, before the umask. Raises OSError."""
    with replacing(path) as part, open(part, "xb", opener=partial(os.open, mode=mode)) as file:
        file.write(data)


def _put(part: Path, target: Path) -> None:
    """In its place. On Windows a program that looks at every new file, such as a virus scanner, may have just opened
    one of the two, and the system then refuses for a moment; pip tries it again too (utils/filesystem.py).

    Raises OSError.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            part.replace(target)
            return
        except PermissionError:
            if time.monotonic() >= until:
                raise
        time.sleep(0.01)


def _remove_left(target: Path) -> None:
    """Remove the unfinished files of processes that are no more."""
    for left in target.parent.glob(f"{glob.escape(target.name)}.*.part"):
        pid = left.name.removeprefix(f"{target.name}.").removesuffix(".part")
        if pid.isdecimal() and not _may_run(int(pid)):
            with suppress(OSError):
                left.unlink()


def _may_run(pid: int) -> bool:
    """Whether there is such a process; a core install cannot tell. A file's name may hold any number."""
    if pid > _MOST_PID:
        return False
    try:
        import psutil
    except ModuleNotFoundError:
        return True
    return psutil.pid_exists(pid)
