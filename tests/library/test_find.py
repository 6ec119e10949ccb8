"""find_models: the layouts of other applications, and what a hostile or huge folder cannot do."""

import json
import os
from pathlib import Path

import pytest

from kvdesk.library import find
from kvdesk.library.find import Folder, FoundModel, find_models, known_folders, stored_in

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
    assert paths("linux", HUGGINGFACE_HUB_CACHE="/e")["Hugging Face"] == Path("/e")
    assert paths("linux", HF_HOME="~/f")["Hugging Face"] == Path.home() / "f" / "hub"  # as huggingface_hub reads it


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


def test_what_is_deleted_of_a_model(tmp_path: Path) -> None:
    """In Hugging Face's cache the link alone would free nothing."""
    repository = tmp_path / "models--maker--Repo-GGUF"
    links, blobs = [], []
    for n in (1, 2):
        blobs.append(put(repository / "blobs" / f"{n:064x}"))
        links.append(repository / "snapshots" / "aaa" / f"m-0000{n}-of-00002.gguf")
        links[-1].parent.mkdir(parents=True, exist_ok=True)
        links[-1].symlink_to(f"../../blobs/{n:064x}")
    assert stored_in(links[0]) == (*links, *blobs)
    own = put(tmp_path / "elsewhere" / "blobs" / "m.gguf")
    link = tmp_path / "m.gguf"
    link.symlink_to(own)
    assert stored_in(link) == (link,)
    assert stored_in(own) == (own,)


def test_files_without_a_number_are_different_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some network drives of Windows."""
    put(tmp_path / "a.gguf")
    put(tmp_path / "b.gguf")
    put(tmp_path / "folder" / "c.gguf")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    stat = Path.stat

    def without_number(path: Path, **how: bool) -> os.stat_result:
        mode, _, *rest = stat(path, **how)
        return os.stat_result((mode, 0, *rest))

    monkeypatch.setattr(Path, "stat", without_number)
    assert {model.name for model in find_models([Folder("LM Studio", tmp_path)])} == {"a", "b", "c"}


def test_a_home_that_nobody_knows_hides_no_other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    put(tmp_path / "a.gguf")
    assert [model.name for model in find_models((*known_folders({}, root=tmp_path), Folder("own", tmp_path)))] == ["a"]


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


def test_the_service_of_ollama_is_searched_on_linux(tmp_path: Path) -> None:
    places = ("usr/share/ollama/.ollama/models", "var/lib/ollama", "var/lib/ollama/models")
    for n, place in enumerate(places):
        digest = f"{n:x}" * 64
        put(tmp_path / place / "blobs" / f"sha256-{digest}", b"12345"[: n + 1])
        layers = [{"mediaType": find.OLLAMA_MODEL, "digest": f"sha256:{digest}"}]
        manifest(tmp_path / place, f"registry.ollama.ai/library/m{n}/latest", {"layers": layers})
    found = find_models(known_folders({}, tmp_path / "home", "linux", tmp_path))
    assert [(model.name, model.size_bytes) for model in found] == [("m0:latest", 1), ("m1:latest", 2), ("m2:latest", 3)]
    assert find_models(known_folders({}, tmp_path / "home", "darwin", tmp_path)) == ()


@pytest.mark.parametrize("place", [".lmstudio", ".cache/lm-studio", "elsewhere"])
def test_the_folder_that_lm_studio_was_told_to_use(tmp_path: Path, place: str) -> None:
    chosen = tmp_path / "big disk" / "my models"
    put(chosen / "maker" / "repo" / "Chosen.gguf")
    put(tmp_path / place / "models" / "maker" / "repo" / "Own.gguf")
    put(tmp_path / place / "settings.json", json.dumps({"downloadsFolder": str(chosen), "language": "en"}).encode())
    if place == "elsewhere":
        put(tmp_path / ".lmstudio-home-pointer", str(tmp_path / place).encode())
    found = find_models(known_folders({}, tmp_path, "linux", tmp_path))
    assert [(model.name, model.application) for model in found] == [("Chosen", "LM Studio"), ("Own", "LM Studio")]


@pytest.mark.parametrize(
    "content", [b"no JSON", b"[]", b"[" * 100_000, b'{"downloadsFolder": 7}', b'{"downloadsFolder": "a\\u0000b"}',
                b'{"downloadsFolder": "/a\\u0000b"}', b" " * (find.MAX_MANIFEST + 1)],
    ids=lambda content: repr(content[:30]),
)  # fmt: skip
def test_broken_settings_of_lm_studio(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / ".lmstudio" / "models" / "Own.gguf")
    put(tmp_path / ".lmstudio" / "settings.json", content)
    put(tmp_path / ".lmstudio-home-pointer", b"a\0b")
    assert [model.name for model in find_models(known_folders({}, tmp_path, "linux", tmp_path))] == ["Own"]


def test_folders_behind_links_are_searched(tmp_path: Path) -> None:
    top, disk = tmp_path / "models", tmp_path / "another disk"
    put(top / "here.gguf", b"1")
    put(disk / "maker" / "there.gguf", b"22")
    put(tmp_path / "third" / "far.gguf", b"333")
    (top / "more").symlink_to(disk)
    (disk / "and more").symlink_to(tmp_path / "third")
    (tmp_path / "link").symlink_to(top)
    found = find_models([Folder("LM Studio", tmp_path / "link")])
    assert [model.name for model in found] == ["far", "here", "there"]


def test_loops_of_links_end(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    put(one / "a.gguf", b"1")
    put(two / "b.gguf", b"22")
    for name in ("x", "y", "z"):
        (one / name).symlink_to(two)
        (two / name).symlink_to(one)
        (two / f"{name} itself").symlink_to(two / f"{name} itself")
    found = find_models([Folder("LM Studio", one)])
    assert [(model.name, model.path) for model in found] == [("a", one / "a.gguf"), ("b", one / "x" / "b.gguf")]


def test_a_link_to_a_huge_tree_hides_no_other_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_BEHIND_LINK", 30)
    top, huge, small = tmp_path / "a models", tmp_path / "huge", tmp_path / "small"
    for i in range(100):
        put(huge / f"{i:03d}" / "notes.txt")
    put(top / "here.gguf", b"1")
    put(small / "there.gguf", b"22")
    put(tmp_path / "b models" / "other.gguf", b"333")
    (top / "huge").symlink_to(huge)
    (tmp_path / "b models" / "small").symlink_to(small)
    found = find_models([Folder("LM Studio", top), Folder("Jan", tmp_path / "b models")])
    assert [(model.name, model.application) for model in found] == [
        ("here", "LM Studio"),
        ("other", "Jan"),
        ("there", "Jan"),
    ]
