"""Finds the models that other applications have downloaded. Reads folders, no model; asks no network; changes nothing.

Owns where those applications keep their files. The walk is bounded in depth, entries and time, since a home folder may
be huge or on a slow network. Whether a file can be opened is for `gguf_header` to say.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvdesk import paths

MAX_DEPTH = 8
MAX_ENTRIES = 50_000
MAX_SECONDS = 3.0
MAX_MANIFEST = 1 << 20
LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
FIRST_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")
HUB_FOLDER = re.compile(r"^models--(.+?)--(.+)$")
DIGEST = re.compile(r"^sha256[:-]([0-9a-f]{64})$")
OLLAMA_MODEL = "application/vnd.ollama.image.model"


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
    environ: Mapping[str, str] = os.environ, home: Path | None = None, platform: str = sys.platform
) -> tuple[Folder, ...]:
    """The folders of the known applications on this system, whether they exist or not."""
    home = home or Path.home()
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
    hub = environ.get("HF_HUB_CACHE") or (Path(environ.get("HF_HOME") or cache / "huggingface") / "hub")
    return (
        Folder("LM Studio", home / ".lmstudio" / "models"),
        Folder("LM Studio", home / ".cache" / "lm-studio" / "models"),
        Folder("Jan", jan / "llamacpp" / "models"),
        Folder("GPT4All", gpt4all),
        Folder("llama.cpp", Path(environ.get("LLAMA_CACHE") or llama)),
        Folder("Hugging Face", Path(hub)),
        Folder("Ollama", Path(environ.get("OLLAMA_MODELS") or home / ".ollama" / "models")),
    )


def find_models(folders: Iterable[Folder] | None = None) -> tuple[FoundModel, ...]:
    """The models in `folders` (by default kvdesk's own and those of the known applications), sorted by name; a file
    that is linked twice appears once.
    """
    if folders is None:
        folders = (Folder("kvdesk", paths.models_dir()), *known_folders())
    walk = _Walk()
    found: dict[tuple[int, int], FoundModel] = {}
    for folder in folders:
        models = _ollama(folder, walk) if folder.application == "Ollama" else _files(folder, walk)
        for model in models:
            try:
                status = model.path.stat()
            except OSError:
                continue
            found.setdefault((status.st_dev, status.st_ino), model)
    return tuple(sorted(found.values(), key=lambda model: (model.name.lower(), str(model.path))))


class _Walk:
    """Files below folders, until the bounds shared by all folders are reached. Folders behind links are not entered."""

    def __init__(self) -> None:
        self._entries = 0
        self._deadline_s = time.monotonic() + MAX_SECONDS

    def files(self, folder: Path, depth: int = MAX_DEPTH) -> Iterator[Path]:
        try:
            with os.scandir(folder) as entries:
                inside = list(self._bounded(entries))
        except OSError:
            return
        for entry in inside:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if depth > 0:
                        yield from self.files(Path(entry.path), depth - 1)
                elif entry.is_file():
                    yield Path(entry.path)
            except OSError:
                continue

    def _bounded(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES or time.monotonic() > self._deadline_s:
                return
            yield entry


def _files(folder: Folder, walk: _Walk) -> Iterator[FoundModel]:
    for path in walk.files(folder.path):
        name = path.name
        if not name.lower().endswith(".gguf") or LATER_PART.search(name) or "mmproj" in name.lower():
            continue
        size = sum(_size(part) for part in _parts(path))
        if size > 0:
            yield FoundModel(_name(path, folder.path), path, size, folder.application)


def files_of(path: Path) -> tuple[Path, ...]:
    """All files of a model: of a split one, given by its first, every part that is there."""
    return tuple(part for part in _parts(path) if part.exists())


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


def _ollama(folder: Folder, walk: _Walk) -> Iterator[FoundModel]:
    """Manifests name the blobs: manifests/<registry>/<owner>/<model>/<tag>, blobs/sha256-<digest>."""
    top = folder.path / "manifests"
    for path in walk.files(top):
        parts = path.relative_to(top).parts
        digest = _model_digest(path)
        if len(parts) != 4 or digest is None:
            continue
        _, owner, model, tag = parts
        blob = folder.path / "blobs" / f"sha256-{digest}"
        if size := _size(blob):
            name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
            yield FoundModel(name, blob, size, folder.application)


def _model_digest(manifest: Path) -> str | None:
    try:
        if manifest.stat().st_size > MAX_MANIFEST:
            return None
        content: Any = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    layers = content.get("layers") if isinstance(content, dict) else None
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == OLLAMA_MODEL:
            match = DIGEST.match(str(layer.get("digest")))
            return match[1] if match else None
    return None


def _size(path: Path) -> int:
    """Bytes; 0 for what is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
