"""find_models: the layouts of other applications, and what a hostile or huge folder cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvdesk.library import find
from kvdesk.library.find import Folder, FoundModel, find_models, known_folders

DIGEST = "ab" * 32


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def manifest(top: Path, where: str, content: object) -> None:
    put(top / "manifests" / where, content if isinstance(content, bytes) else json.dumps(content).encode())


def test_the_folders_of_each_system(tmp_path: Path) -> None:
    def paths(platform: str, **environ: str) -> dict[str, Path]:
        return {folder.application: folder.path for folder in known_folders(environ, tmp_path, platform)}

    linux, mac = paths("linux"), paths("darwin")
    windows = paths("win32", LOCALAPPDATA=str(tmp_path / "L"), APPDATA=str(tmp_path / "R"))
    assert linux["llama.cpp"] == tmp_path / ".cache" / "llama.cpp"
    assert mac["llama.cpp"] == tmp_path / "Library" / "Caches" / "llama.cpp"
    assert windows["llama.cpp"] == tmp_path / "L" / "llama.cpp"
    assert windows["Jan"] == tmp_path / "R" / "Jan" / "data" / "llamacpp" / "models"
    assert linux["Hugging Face"] == tmp_path / ".cache" / "huggingface" / "hub"
    moved = paths("linux", LLAMA_CACHE="/a", HF_HOME="/b", OLLAMA_MODELS="/c")
    assert (moved["llama.cpp"], moved["Hugging Face"], moved["Ollama"]) == (Path("/a"), Path("/b/hub"), Path("/c"))
    assert paths("linux", HF_HOME="/b", HF_HUB_CACHE="/d")["Hugging Face"] == Path("/d")


def test_plain_files(tmp_path: Path) -> None:
    path = put(tmp_path / "maker" / "repo" / "Some-Model.Q4.gguf", b"12345")
    put(tmp_path / "maker" / "repo" / "mmproj-Some.gguf")
    put(tmp_path / "maker" / "repo" / "empty.gguf", b"")
    put(tmp_path / "notes.txt")
    jan = put(tmp_path / "janhq" / "small" / "model.gguf")
    assert find_models([Folder("LM Studio", tmp_path)]) == (
        FoundModel("small", jan, 4, "LM Studio"),
        FoundModel("Some-Model.Q4", path, 5, "LM Studio"),
    )


def test_a_split_model_is_one(tmp_path: Path) -> None:
    first = put(tmp_path / "big-00001-of-00002.gguf", b"123")
    put(tmp_path / "big-00002-of-00002.gguf", b"4567")
    assert find_models([Folder("llama.cpp", tmp_path)]) == (FoundModel("big", first, 7, "llama.cpp"),)


def test_hugging_faces_links_to_blobs(tmp_path: Path) -> None:
    repository = tmp_path / "models--maker--Repo-GGUF"
    blob = put(repository / "blobs" / DIGEST, b"123")
    for snapshot in ("aaa", "bbb"):
        link = repository / "snapshots" / snapshot / "m.Q8_0.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
    (repository / "snapshots" / "aaa" / "gone.gguf").symlink_to(tmp_path / "nothing")
    (found,) = find_models([Folder("Hugging Face", tmp_path)])
    assert found.name == "maker/Repo-GGUF: m.Q8_0"
    assert found.size_bytes == 3


def test_ollama(tmp_path: Path) -> None:
    blob = put(tmp_path / "blobs" / f"sha256-{DIGEST}", b"123")
    layers = [{"mediaType": "text/plain"}, {"mediaType": find.OLLAMA_MODEL, "digest": f"sha256:{DIGEST}", "size": 3}]
    manifest(tmp_path, "registry.ollama.ai/library/tiny/latest", {"layers": layers})
    assert find_models([Folder("Ollama", tmp_path)]) == (FoundModel("tiny:latest", blob, 3, "Ollama"),)


@pytest.mark.parametrize(
    "content",
    [
        b"no JSON",
        b"[" * 100_000,
        [],
        {"layers": 3},
        {"layers": [3, {"mediaType": find.OLLAMA_MODEL, "digest": "sha256:../../../etc/passwd"}]},
        {"layers": [{"mediaType": find.OLLAMA_MODEL, "digest": f"sha256:{'cd' * 32}"}]},
    ],
)
def test_broken_manifests(tmp_path: Path, content: object) -> None:
    manifest(tmp_path, "registry.ollama.ai/library/tiny/latest", content)
    assert find_models([Folder("Ollama", tmp_path)]) == ()


def test_nothing_there(tmp_path: Path) -> None:
    assert find_models([Folder("LM Studio", tmp_path / "none"), Folder("Ollama", tmp_path)]) == ()


def test_the_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    put(tmp_path.joinpath(*"abcdefghijkl", "deep.gguf"))
    assert find_models([Folder("LM Studio", tmp_path)]) == ()
    for i in range(20):
        put(tmp_path / f"{i:02d}.gguf", str(i).encode())
    assert len(find_models([Folder("LM Studio", tmp_path)])) == 20
    monkeypatch.setattr(find, "MAX_ENTRIES", 5)
    assert len(find_models([Folder("LM Studio", tmp_path)])) <= 5
    monkeypatch.setattr(find, "MAX_SECONDS", -1.0)
    assert find_models([Folder("LM Studio", tmp_path)]) == ()
