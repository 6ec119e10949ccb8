"""Finds the models that other applications have downloaded, and those of chosen folders.

Reads folders, no model; asks no network; changes nothing.

Owns where those applications keep their files. The walk is bounded in depth, entries and time, since a home folder may
be huge or on a slow network. Whether a file can be opened is for `gguf_header` to say.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kvdesk import paths
from kvdesk.loose_json import object_in
from kvdesk.values import dataclass

MAX_DEPTH = 8
MAX_ENTRIES = 50_000
MAX_BEHIND_LINK = 5_000
MAX_SECONDS = 3.0
MAX_MANIFEST = 1 << 20
LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
FIRST_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")
HUB_FOLDER = re.compile(r"^models--(.+?)--(.+)$")
DIGEST = re.compile(r"^sha256[:-]([0-9a-f]{64})$")
OLLAMA_MODEL = "application/vnd.ollama.image.model"
OLLAMA_SERVICES = (
    "usr/share/ollama/.ollama/models",
    "var/lib/ollama",
    "var/lib/ollama/models",
    "var/lib/ollama/.ollama/models",
    "var/snap/ollama/common/models",
)
"""Of the system's service: as its installer makes it, and as distributions and its snap do."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where an application keeps models."""

    application: str
    path: Path


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model file. `size_bytes` counts all parts of a split model, `path` is the first."""

    name: str
    path: Path
    size_bytes: int
    application: str


def known_folders(
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    platform: str = sys.platform,
    root: Path = Path("/"),
) -> tuple[Folder, ...]:
    """The folders of the known applications on this system, whether they exist or not."""
    home = home or paths.expanded("~")
    local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    share = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    if platform == "win32":
        gpt4all, jan, llama = local / "nomic.ai" / "GPT4All", roaming / "Jan" / "data", local / "llama.cpp"
    elif platform == "darwin":
        support = home / "Library" / "Application Support"
        gpt4all, jan = support / "nomic.ai" / "GPT4All", support / "Jan" / "data"
        llama = home / "Library" / "Caches" / "llama.cpp"
    else:
        gpt4all, jan, llama = share / "nomic.ai" / "GPT4All", share / "Jan" / "data", cache / "llama.cpp"
    hub = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    hub = hub or str(Path(environ.get("HF_HOME") or cache / "huggingface") / "hub")
    return (
        *(Folder("LM Studio", folder) for folder in _lm_studio(home)),
        Folder("Jan", jan / "llamacpp" / "models"),
        Folder("GPT4All", gpt4all),
        Folder("llama.cpp", Path(environ.get("LLAMA_CACHE") or llama)),
        Folder("Hugging Face", paths.expanded(hub)),
        *(Folder("Ollama", root / service) for service in (OLLAMA_SERVICES if platform == "linux" else ())),
        Folder("Ollama", Path(environ.get("OLLAMA_MODELS") or home / ".ollama" / "models")),
    )


def _lm_studio(home: Path) -> Iterator[Path]:
    """Its own folders, and the ones that its settings name instead."""
    homes = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    if pointer := _read_small(home / ".lmstudio-home-pointer").decode("utf-8", "replace").strip():
        homes.insert(0, Path(pointer))
    for folder in dict.fromkeys(homes):
        chosen = object_in(_read_small(folder / "settings.json")).get("downloadsFolder")
        if isinstance(chosen, str) and Path(chosen).is_absolute():
            yield Path(chosen)
        yield folder / "models"


def all_folders(chosen: Iterable[str]) -> tuple[Folder, ...]:
    """kvdesk's own folder, those that a person chose, and those of the known applications."""
    own = Folder("kvdesk", paths.models_dir())
    return own, *(Folder(short_name(Path(folder)), Path(folder)) for folder in chosen), *known_folders()


def short_name(folder: Path) -> str:
    """Its path, with "~" for the home."""
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(folder)


def find_models(folders: Iterable[Folder]) -> tuple[FoundModel, ...]:
    """The models in `folders`, sorted by name; a file that is linked twice appears once."""
    walk = _Walk()
    found: dict[tuple[int, int] | Path, FoundModel] = {}
    for model in (*_all_in(folders, walk), *_behind_links(walk)):
        try:
            status = model.path.stat()
        except (OSError, ValueError):
            continue
        found.setdefault(_identity(model.path, status), model)
    return tuple(sorted(found.values(), key=lambda model: (model.name.lower(), str(model.path))))


def _identity(path: Path, status: os.stat_result) -> tuple[int, int] | Path:
    """Equal for the same file or folder under another name. Some network drives of Windows number no files."""
    return (status.st_dev, status.st_ino) if status.st_ino else path


def _all_in(folders: Iterable[Folder], walk: _Walk) -> Iterator[FoundModel]:
    for folder in folders:
        walk.begin(folder)
        yield from _models(folder, walk.files(_top(folder)))


def _behind_links(walk: _Walk) -> Iterator[FoundModel]:
    """Links come last, and each has its own bound: one to a huge tree hides no other model."""
    while (link := walk.next_link()) is not None:
        yield from _models(link.folder, walk.files(link.path, link.depth))


def _top(folder: Folder) -> Path:
    return folder.path / "manifests" if folder.application == "Ollama" else folder.path


def _models(folder: Folder, files: Iterator[Path]) -> Iterator[FoundModel]:
    return _ollama(folder, files) if folder.application == "Ollama" else _files(folder, files)


class _Link(NamedTuple):
    """A link to a folder, below a `folder` that is searched; `depth`: that many levels may still be entered."""

    folder: Folder
    path: Path
    depth: int


class _Walk:
    """Files below folders, until the bounds shared by all folders are reached.

    Links to folders are kept for later. Behind links a folder is entered once, so that loops end.
    """

    def __init__(self) -> None:
        self._entries = 0
        self._most = MAX_ENTRIES
        self._deadline_s = time.monotonic() + MAX_SECONDS
        self._folder = Folder("", Path())
        self._links: deque[_Link] = deque()
        self._seen: set[tuple[int, int] | Path] = set()
        self._behind = False

    def begin(self, folder: Folder) -> None:
        self._folder = folder

    def next_link(self) -> _Link | None:
        """From now on the files are those after it; None: there is no other."""
        if not self._links:
            return None
        link = self._links.popleft()
        self.begin(link.folder)
        self._behind = True
        self._most = min(MAX_ENTRIES, self._entries + MAX_BEHIND_LINK)
        return link

    def files(self, folder: Path, depth: int = MAX_DEPTH) -> Iterator[Path]:
        try:
            identity = _identity(folder, folder.stat())
            known = identity in self._seen
            self._seen.add(identity)
            if self._behind and known:
                return
            with os.scandir(folder) as entries:
                inside = sorted(self._bounded(entries), key=lambda entry: entry.name)
        except (OSError, ValueError):
            return
        for entry in inside:
            try:
                if entry.is_dir():
                    if depth > 0 and entry.is_symlink():
                        self._links.append(_Link(self._folder, Path(entry.path), depth - 1))
                    elif depth > 0:
                        yield from self.files(Path(entry.path), depth - 1)
                elif entry.is_file():
                    yield Path(entry.path)
            except OSError:
                continue

    def _bounded(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self._entries += 1
            if self._entries > self._most or time.monotonic() > self._deadline_s:
                return
            yield entry


def _files(folder: Folder, files: Iterator[Path]) -> Iterator[FoundModel]:
    for path in files:
        name = path.name
        if not name.lower().endswith(".gguf") or LATER_PART.search(name) or "mmproj" in name.lower():
            continue
        size = sum(paths.size_of(part) for part in _parts(path))
        if size > 0:
            yield FoundModel(_name(path, folder.path), path, size, folder.application)


def files_of(path: Path) -> tuple[Path, ...]:
    """All files of a model: of a split one, given by its first, every part that is there."""
    return tuple(part for part in _parts(path) if part.exists())


def stored_in(path: Path) -> tuple[Path, ...]:
    """What takes the room of a model on the disk: its files, and in Hugging Face's cache what these are links to."""
    files = files_of(path)
    blobs = (file.resolve() for file in files if file.is_symlink())
    of_hub = (blob for blob in blobs if blob.parent.name == "blobs" and HUB_FOLDER.match(blob.parents[1].name))
    return (*files, *of_hub)


def _parts(path: Path) -> list[Path]:
    match = FIRST_PART.search(path.name)
    if match is None:
        return [path]
    n = min(int(match[1]), 1000)
    return [path.with_name(f"{path.name[: match.start()]}-{i:05d}-of-{match[1]}.gguf") for i in range(1, n + 1)]


def _name(path: Path, top: Path) -> str:
    """The file's name; with the repository in Hugging Face's cache; the folder's where all files are "model.gguf"."""
    stem = FIRST_PART.sub("", path.name).removesuffix(".gguf").removesuffix(".GGUF")
    folders = path.relative_to(top).parts[:-1]
    for folder in folders:
        if match := HUB_FOLDER.match(folder):
            return f"{match[1]}/{match[2]}: {stem}"
    return folders[-1] if stem == "model" and folders else stem


def _ollama(folder: Folder, files: Iterator[Path]) -> Iterator[FoundModel]:
    """Manifests name the blobs: manifests/<registry>/<owner>/<model>/<tag>, blobs/sha256-<digest>."""
    top = _top(folder)
    for path in files:
        parts = path.relative_to(top).parts
        digest = _model_digest(path)
        if len(parts) != 4 or digest is None:
            continue
        _, owner, model, tag = parts
        blob = folder.path / "blobs" / f"sha256-{digest}"
        if size := paths.size_of(blob):
            name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
            yield FoundModel(name, blob, size, folder.application)


def _read_small(path: Path) -> bytes:
    """A file of another application; nothing if it is too large, or cannot be read."""
    try:
        return paths.read_regular(path, MAX_MANIFEST)
    except (OSError, ValueError):
        return b""


def _model_digest(manifest: Path) -> str | None:
    layers = object_in(_read_small(manifest)).get("layers")
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == OLLAMA_MODEL:
            match = DIGEST.match(str(layer.get("digest")))
            return match[1] if match else None
    return None
