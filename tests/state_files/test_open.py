"""`kvdesk open`: each kind of file, in a child process, as text and as JSON; a diff; and files that are none."""

import builtins
import json
import os
import pickle
import random
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvdesk import paths
from kvdesk.__main__ import main
from kvdesk.app import display
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.llama.model import vocabulary
from kvdesk.cache.state.blob import SEQ_MAGIC, BlobError
from kvdesk.cache.state.sequence_file import sequence_file
from kvdesk.library.fingerprint import fingerprint
from kvdesk.message import ConversationId
from kvdesk.policies.swap import Limits, Placement, StateKind
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.state_files.child import Asked, answer_of
from kvdesk.state_files.difference import compare
from kvdesk.state_files.found import StateFile
from kvdesk.state_files.pickled import PickleError, read_llama_state
from kvdesk.state_files.reading import open_file
from tests.cache.models import KINDS
from tests.state_files.conftest import MORE
from tests.state_files.files import TOKENS, context, context_state, pickled, read, write_session, write_slot

SAVED = ContextSettings(n_ctx=256, n_seq_max=2, n_batch=32, n_ubatch=32)
LAST = len(TOKENS) - 1


def opened(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What `kvdesk open --json` writes."""
    assert main(["open", "--text", "--json", *map(str, arguments)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_each_memory_class(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    """Its caches, positions, layers and states, in a slot and in a session of two sequences."""
    with context(models[kind], SAVED) as made:
        read(made)
        slot = open_file(write_slot(made, tmp_path / "slot")).file
        read(made, TOKENS[:5], seq_id=1)
        session = open_file(write_session(made, tmp_path / "session")).file
    assert (slot.format, slot.version, slot.tokens, slot.problem) == ("slot", 3, TOKENS, "")
    assert (session.format, session.version, session.tokens, session.problem) == ("session", 10, TOKENS, "")
    n_caches = {"mamba": 0, "rwkv": 0, "iswa": 2, "chunked": 2, "hybrid_iswa": 2}.get(kind, 1)
    n_states = int("hybrid" in kind or kind in ("mamba", "rwkv", "parallel"))
    for file, n in ((slot, n_states), (session, 2 * n_states)):
        assert (len(file.caches), len(file.states), file.extended) == (n_caches, n, kind == "mrope")
        tensors = [one for streams in file.caches for stream in streams for one in stream.tensors]
        assert all(one.norm_mean and one.n_bad == 0 for one in tensors)
        assert {one.kind for one in file.state_tensors} == ({"r", "s"} if n_states else set())
    if n_caches:
        (stream,) = slot.caches[0]
        assert (stream.n_cells, stream.runs, stream.sequences) == (len(TOKENS), ((0, LAST),), (0,))
        assert {one.type for one in stream.tensors} == (set() if kind == "hybrid_iswa" else {"f16"})  # windows alone
        assert session.caches[0][0].n_cells == len(TOKENS) + 5
        assert session.caches[0][0].sequences == (0, 1)
    if kind in ("iswa", "hybrid_iswa"):  # windows of 32
        assert slot.caches[1][0].runs == ((LAST - 31, LAST),)
    if n_states:
        assert slot.states[0].position == LAST
        assert [state.sequences for state in session.states] == [(0,), (1,)]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_each_protocol(
    protocol: int, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with context(models["attention"], SAVED) as made:
        read(made)
        blob = context_state(made)
    path = tmp_path / "state.pkl"
    path.write_bytes(pickled(blob, protocol))
    one = open_file(path).file
    assert (one.format, one.tokens, one.architecture, one.n_context) == ("pickle", TOKENS, "llama", 256)
    assert one.caches[0][0].n_cells == len(TOKENS)
    if protocol == pickle.HIGHEST_PROTOCOL:
        found = opened(capsys, path, "--model", models["attention"], "--n-ctx", 512)
        assert found["fit"]["fits"] is True
        assert "n_ctx should equal that" in " ".join(found["fit"]["notes"])


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


def test_no_pickle_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that is something else, nor one inside of a saved state."""
    monkeypatch.chdir(tmp_path)
    states = [
        pickle.dumps(_Evil()),
        pickle.dumps([1, 2]),
        pickle.dumps({"a": np.ones(3)}),
        pickle.dumps(_Evil(), 0),
        b"\x80\x04.",
        b"\x80\x04" + b"(" * 1000 + b"t" * 1000,
        b"\x80\x04" + b"]" * 200_000 + b".",
        b"\x80\x04" + b"\x8e" + struct.pack("<Q", 1 << 60),
        b"\x80\x04h\x05.",
        b"\x80\x04Ra.",
        b"cos\nsystem\n(S'touch ran'\ntR.",
    ]
    for data in states:
        with pytest.raises(PickleError):
            read_llama_state(memoryview(data))
        (tmp_path / "evil.pkl").write_bytes(data.ljust(16))
        with pytest.raises(BlobError, match=r"not a saved state|kvdesk never runs a pickle"):
            open_file(tmp_path / "evil.pkl")
    (tmp_path / "evil.pkl").write_bytes(pickled(np.zeros((3, 4), order="F"), pickle.HIGHEST_PROTOCOL))
    with pytest.raises(BlobError, match="kvdesk never runs a pickle"):
        open_file(tmp_path / "evil.pkl")
    assert [path.name for path in tmp_path.iterdir()] == ["evil.pkl"]


@pytest.mark.usefixtures("read_here")
def test_a_saved_state_of_kvdesk(models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its index: tokens, and what it would be restored into. Without: the cells. Changed: kvdesk forgets it."""
    model = models["hybrid"]
    with context(model, SAVED) as made:
        read(made)
        blob = bytearray(struct.pack("<Ii", SEQ_MAGIC, 0) + write_slot(made, tmp_path / "s", ()).read_bytes()[12:])
    kind = StateKind(fingerprint(model), "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))
    store = SavedStateStore(tmp_path / "states", kind, Limits(1 << 30, 1 << 30))
    store.put(Placement("disk", (), (), ""), ConversationId("chat"), TOKENS, bytes(blob), 10.0)
    store.close()
    (path,) = (tmp_path / "states").glob("*.kvstate")
    found = opened(capsys, path, "--model", model)
    assert (found["file"]["format"], tuple(found["file"]["tokens"])) == ("kvdesk", TOKENS)
    assert (found["fit"]["fits"], found["file"]["made_by"]["engine_version"]) == (True, "engine")
    for changes, reason in ((["--model", models["attention"]], "has attention"), (["--type-k", "q8_0"], "type_k was")):
        assert main(["open", "--text", str(path), "--model", str(model), *map(str, changes)]) == 1
        assert reason in capsys.readouterr().out
    path.write_bytes(bytes(path.read_bytes()[:-1]) + b"?")
    assert "does not match its index" in open_file(path).file.problem
    alone = tmp_path / path.name
    alone.write_bytes(bytes(blob))
    assert (open_file(alone).file.tokens, open_file(alone).file.caches[0][0].n_cells) == (None, len(TOKENS))


def test_text_of_tokens_and_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the embedded model: the text, every token, the numbers of each layer, and the answer. Nothing moves the
    terminal's cursor."""
    model = paths.embedded_model()
    assert model is not None
    with vocabulary(model) as vocab:
        tokens = vocab.tokenize("A sailor\x1b[2J has dogs.\n", add_special=False, parse_special=False)
    path = tmp_path / "slot.bin"
    with context(model, ContextSettings(n_ctx=256, n_batch=32, n_ubatch=32)) as made:
        read(made, tokens)
        write_slot(made, path, [-1, 1, len(tokens), *tokens, 0])  # as llama-server packs them
    assert main(["open", "--text", str(path), "--model", str(model), "--tokens", "--n-ctx", "256"]) == 0
    text = capsys.readouterr().out
    assert f"{len(tokens)} tokens" in text
    assert r"A sailor\x1b[2J has dogs.\n" in text
    assert "\x1b" not in text
    assert "would restore: yes (256 cells, 1 stream, K f16, V f16, flash attention on)" in text
    assert sum(line.split()[:1] == ["29"] for line in text.splitlines()) == 1
    assert f"positions 0–{len(tokens) - 1}" in text


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModuleNotFoundError("No module", name="PySide6"), "PySide6 is missing): pip install 'kvdesk[app]'."),
        (ImportError("libEGL.so.1: cannot open shared object file"), "libEGL.so.1"),
        (None, "There is no display"),
    ],
)
def test_without_a_window_it_is_text(
    error: ImportError | None,
    why: str,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a sentence that says why."""
    imported = builtins.__import__

    def without_qt(name: str, *rest: Any) -> Any:
        if error is not None and name.startswith("PySide6"):
            raise error
        return imported(name, *rest)

    with context(models["attention"], SAVED) as made:
        read(made)
        path = write_slot(made, tmp_path / "slot.bin")
    monkeypatch.setattr(display, "has_display", lambda: error is not None)
    monkeypatch.delitem(sys.modules, "kvdesk.app.windows.saved_state", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_qt)
    assert main(["open", str(path)]) == 0
    said = capsys.readouterr()
    assert why in said.err
    assert said.err.endswith("as with --text.\n")
    assert f"{len(TOKENS)} tokens" in said.out


@pytest.mark.usefixtures("read_here")
def test_a_difference(models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two slots of a hybrid model whose prompts part at a token; of one and its copy; of types."""
    other = (*TOKENS[:50], *(token ^ 1 for token in TOKENS[50:]), 3)
    q8_0 = SAVED.model_copy(update={"type_k": CacheType.Q8_0})
    files = []
    for name, settings, tokens in (
        ("a", SAVED, TOKENS),
        ("b", SAVED, other),
        ("c", q8_0, TOKENS),
        ("d", SAVED, TOKENS),
    ):
        with context(models["hybrid"], settings) as made:
            read(made, tokens)
            files.append(write_slot(made, tmp_path / name, tokens))
    found = opened(capsys, files[0], files[1])["difference"]
    assert (found["common"], found["cells"]) == (50, [[len(TOKENS), 0, 1]])
    assert [(one["kind"], one["n_cells"], one["n_equal"]) for one in found["tensors"]] == [
        ("k", len(TOKENS), 50),
        ("v", len(TOKENS), 50),
    ]
    first, quantized, copy = (open_file(files[i]) for i in (0, 2, 3))
    same = compare(first, copy)
    assert {(one.n_cells - one.n_equal, one.most, one.relative) for one in same.tensors} == {(0, 0.0, 0.0)}
    assert {one.kind for one in same.tensors} == {"k", "v", "r"}
    k = compare(first, quantized).tensors[0]
    assert k.relative is not None
    assert k.relative > 0  # K is rotated before it is quantized
    assert main(["open", "--text", str(files[0]), str(files[1])]) == 0
    text = capsys.readouterr().out
    assert "50 in common" in text
    assert f"cache: {len(TOKENS)} cells in both, 0 only in the first, 1 only in the second" in text
    assert main(["open", "--text", str(files[0]), str(files[3])]) == 0
    assert "K, V and states are equal in the cells of both" in capsys.readouterr().out


@pytest.mark.usefixtures("read_here")
def test_what_is_no_saved_state_is_a_sentence(
    models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback."""
    tiny = tmp_path / "tiny"
    tiny.write_bytes(b"x")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for path, sentence in (
        (tmp_path / "none", "cannot be read"),
        (tmp_path, "folder"),
        (tiny, "too short"),
        (empty, "empty"),
        (models["iswa"], "is a model"),
        (Path(__file__), "not a saved state"),
    ):
        assert main(["open", "--text", str(path)]) == 2
        error = capsys.readouterr().err
        assert sentence in error, error
        assert error.count("\n") == 1


def test_another_version_shows_its_tokens(tmp_path: Path) -> None:
    for magic, version in ((0x67677371, 2), (0x6767736E, 9)):
        path = tmp_path / "old"
        path.write_bytes(struct.pack("<III3i", magic, version, 3, 4, 5, 6) + bytes(100))
        found = open_file(path).file
        assert (found.tokens, found.version, found.caches) == ((4, 5, 6), version, ())
        assert f"version {version}" in found.problem


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Cut, with bytes of another value, with a part taken out or put in twice, or with a large number somewhere."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(min(len(changed), 2000) if rng.random() < 0.7 else len(changed))
        match rng.randrange(5):
            case 0:
                del changed[at + 13 :]
            case 1:
                changed[at] = rng.randrange(256)
            case 2:
                del changed[at : at + rng.randint(1, 64)]
            case 3:
                changed[at:at] = changed[at : at + rng.randint(1, 64)]
            case _:
                changed[at : at + 4] = struct.pack("<I", rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 20)))
        if len(changed) < 16:
            break
    return bytes(changed)


def test_a_thousand_damaged_files(models: dict[str, Path], tmp_path: Path) -> None:
    """Each is described as far as it goes, or costs a sentence: nothing else is raised. In this process, as the child
    does it, and some in the child."""
    originals = []
    for kind in ("attention", "iswa", "hybrid", "mamba", "mrope"):
        with context(models[kind], SAVED) as made:
            read(made)
            originals.append((kind, write_slot(made, tmp_path / f"{kind}.slot").read_bytes()))
            originals.append((kind, write_session(made, tmp_path / f"{kind}.session").read_bytes()))
            originals.append((kind, pickled(context_state(made), pickle.HIGHEST_PROTOCOL)))
    rng = random.Random(7)
    path, whole = tmp_path / "damaged", tmp_path / "attention.slot"
    outcomes: dict[str, int] = {}
    for i in range(1000):
        kind, data = originals[i % len(originals)]
        path.write_bytes(mutated(data, rng))
        settings = SAVED.model_dump_json()
        sentence = ""
        try:
            answer = answer_of(Asked(str(path), "" if i % 10 else str(whole), str(models[kind]), settings))
        except BlobError as error:
            outcome, sentence = "sentence", str(error)
        else:
            outcome, sentence = "restored" if answer.fit.fits else "refused", " ".join(answer.fit.reasons)
        assert sentence.endswith(".") == (outcome != "restored")
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if i % 250 == 0:
            assert main(["open", "--text", str(path)]) in (0, 2)
    assert sum(outcomes.values()) == 1000
    assert set(outcomes) == {"restored", "refused", "sentence"}, outcomes


def test_a_file_with_pictures_is_shown_without_tokens(tmp_path: Path) -> None:
    path = tmp_path / "pictures"
    path.write_bytes(sequence_file((1, 2), struct.pack("<Ii", SEQ_MAGIC, 0))[:-4] + struct.pack("<i", 1))
    found: StateFile = open_file(path).file
    assert found.tokens is None
    assert "pictures" in found.problem
