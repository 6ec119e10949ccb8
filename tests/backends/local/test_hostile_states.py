"""Saved states that are damaged or forged: each costs a prefill and nothing else, and nothing outside is touched."""

import errno
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.cache_manager.forgotten_states import forget_saved
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId
from kvdesk.policies.swap import Limits, Resident, StateKind, place
from kvdesk.protocol.cache import CacheView, UsePolicy, Watch
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import Operate, SwapIn, SwapOut
from kvdesk.settings import CachePolicy, ContextSettings, Sampling
from kvdesk.values import replace
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.tiny_models import written
from tests.needs import needs_pipes

SHORT = Sampling(temperature=0.0, max_tokens=2)
SYSTEM = "Be brief."  # the template's own would be longer
ON_DISK = CachePolicy(memory_mb=0)
QUESTION = "Name the river that flows through Paris."


@pytest.fixture(scope="module")
def loaded(talking_file: Path) -> Iterator[HeadlessEngine]:
    """The model that the states are of, and no other."""
    yield from opened_with(talking_file, SMALL)


@pytest.fixture(scope="module")
def saved(talking_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HeadlessChat]:
    """A folder with the saved state of a conversation, and the conversation."""
    folder = tmp_path_factory.mktemp("saved")
    headless = HeadlessEngine()
    headless.do(UsePolicy(ON_DISK, folder))
    headless.do(LoadModel(LocalFile(talking_file), SMALL))
    chat = HeadlessChat(headless, SYSTEM)
    chat.answer(QUESTION, SHORT)
    headless.do(Operate(SwapOut(chat.id), measured=False))
    headless.close()
    return folder, chat


def test_a_state_on_disk_takes_no_memory(talking_file: Path, tmp_path: Path) -> None:
    headless = HeadlessEngine()
    headless.do(UsePolicy(CachePolicy(memory_mb=512), tmp_path))
    headless.do(LoadModel(LocalFile(talking_file), SMALL))
    chat = HeadlessChat(headless, SYSTEM)
    chat.answer(QUESTION, SHORT)
    headless.do(Operate(SwapOut(chat.id), measured=False))
    saved_states = headless.engine.session.runtime.cache_manager.swapper.saved_states
    ((_, n_bytes),) = saved_states.conversations()
    assert saved_states.memory_bytes == n_bytes > 0
    headless.close()
    assert saved_states.conversations() == ((chat.id, n_bytes),)
    assert saved_states.memory_bytes == 0


@pytest.fixture
def folder(saved: tuple[Path, HeadlessChat], tmp_path: Path) -> Path:
    """A copy that can be damaged."""
    return Path(shutil.copytree(saved[0], tmp_path / "states"))


@pytest.fixture
def back(headless: HeadlessEngine, saved: tuple[Path, HeadlessChat], folder: Path) -> Iterator[Callable[[], int]]:
    """Opens the folder and goes on with the conversation; returns how many tokens were there already."""
    chats: list[HeadlessChat] = []

    def go_on() -> int:
        headless.do(UsePolicy(ON_DISK, folder))
        chat = HeadlessChat(headless)
        chat.messages = list(saved[1].messages)
        chats.append(chat)
        stats = chat.answer("And?", SHORT).stats
        assert stats.generated_tokens > 0
        verification = headless.engine.session.runtime.context.auditor.audit(whole=True)
        assert verification.state == "verified", verification.detail
        return stats.reused_tokens

    yield go_on
    for chat in chats:
        headless.do(CloseConversation(chat.id))
    headless.do(UsePolicy(CachePolicy(), None))


def state_file(folder: Path) -> Path:
    return next(iter(folder.glob("*.kvstate")))


def index(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "index.json").read_bytes())
    return rows


def write_index(folder: Path, rows: object) -> None:
    (folder / "index.json").write_text(json.dumps(rows))


def forge(folder: Path, blob: bytes) -> None:
    """Another state in place of the saved one, with everything that vouches for it."""
    rows = index(folder)
    digest = hashlib.sha256(rows[0]["key"].encode() + blob).hexdigest()
    rows[0] |= {"digest": digest, "n_bytes": len(blob), "packed": False}
    state_file(folder).write_bytes(blob)
    write_index(folder, rows)


def state_of(folder: Path) -> bytes:
    data = state_file(folder).read_bytes()
    return zlib.decompress(data) if index(folder)[0]["packed"] else data


def test_an_unharmed_one_is_used(back: Callable[[], int], saved: tuple[Path, HeadlessChat]) -> None:
    assert back() == len(index(saved[0])[0]["tokens"]) > 20


@pytest.mark.parametrize("keep", [0, 7, 1000, -1])
def test_cut_off(folder: Path, back: Callable[[], int], keep: int) -> None:
    path = state_file(folder)
    path.write_bytes(path.read_bytes()[:keep])
    assert back() == 0


@pytest.mark.parametrize("at", [0, 4, 1000, -1])
def test_a_changed_byte(folder: Path, back: Callable[[], int], at: int) -> None:
    data = bytearray(state_file(folder).read_bytes())
    data[at] ^= 0x40
    state_file(folder).write_bytes(data)
    assert back() == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"\xff" * 64,
        lambda blob: blob[:-1],
        lambda blob: blob + b"\0",
        lambda blob: bytes([blob[0] ^ 1]) + blob[1:],  # the magic
        lambda blob: blob[:8] + b"\xff" * 4 + blob[12:],  # the number of streams
        lambda blob: blob[:12] + b"\xff\xff\xff\x7f" + blob[16:],  # the number of cells
        lambda blob: blob[:16] + b"\xff\xff\xff\x7f" + blob[20:],  # the first position: none that can be removed
        lambda blob: blob[:16] + b"\xff\xff\xff\xff" + blob[20:],  # a negative one
        lambda blob: blob[:16] + b"\x00\x01\x00\x00" + blob[20:],  # one far behind
    ],
)
def test_a_forged_state(folder: Path, back: Callable[[], int], change: Callable[[bytes], bytes]) -> None:
    forge(folder, change(state_of(folder)))
    assert back() == 0


@pytest.mark.parametrize(
    "damage", [lambda folder: state_file(folder).write_bytes(b""), lambda folder: forge(folder, state_of(folder)[:-1])]
)
def test_swapped_in_by_hand(
    headless: HeadlessEngine, saved: tuple[Path, HeadlessChat], folder: Path, damage: Callable[[Path], object]
) -> None:
    """It is said what is wrong, and that nothing is lost; the window shows it as gone."""
    damage(folder)
    conversation = saved[1].id
    headless.do(UsePolicy(ON_DISK, folder))
    headless.do(Watch(snapshots=True))
    try:
        assert [name for name, _ in headless.engine.session.runtime.view().swapped] == [conversation]
        with pytest.raises(UserError, match=r"is damaged .* read again from its text"):
            headless.do(Operate(SwapIn(conversation), measured=False))
        assert [event.swapped for event in headless.events if isinstance(event, CacheView)] == [()]
        chat = HeadlessChat(headless, conversation=conversation)
        chat.messages = saved[1].messages
        assert chat.answer("And?", SHORT).stats.reused_tokens == 0
    finally:
        headless.do(Watch(snapshots=False))
        headless.do(CloseConversation(conversation))
        headless.do(UsePolicy(CachePolicy(), None))


def test_the_state_of_another_model(folder: Path, back: Callable[[], int], tiny_folder: Path) -> None:
    model = Model(written(tiny_folder, "smollm3"))
    context = Context(model, ContextSettings(n_ctx=256, n_threads=1, n_threads_batch=1))
    n = len(index(folder)[0]["tokens"])
    context.decode(Batch([5] * n, range(n), [(0,)] * n, [False] * n))
    blob = bytes(context.states.seq_get(0))
    context.close()
    model.close()
    forge(folder, blob)
    assert back() == 0


def test_a_state_that_unpacks_to_far_too_much(folder: Path, back: Callable[[], int]) -> None:
    bomb = zlib.compress(bytes(1 << 24), 9)
    forge(folder, bomb)
    rows = index(folder)
    rows[0] |= {"packed": True, "n_bytes": 1000}
    write_index(folder, rows)
    assert back() == 0


@pytest.mark.parametrize(
    "text",
    [b"", b"nonsense", b"\xff\xfe\0", b"{}", b"7", b"null", b"[1, [], null, {}]", b"[" * 100_000, b'[{"key": 7}]'],
    ids=lambda text: repr(text[:12]),
)
def test_an_index_of_nonsense(folder: Path, back: Callable[[], int], text: bytes) -> None:
    (folder / "index.json").write_bytes(text)
    assert back() == 0


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": [1 << 40]},
        {"tokens": "abc"},
        {"tokens": None},
        {"tokens": [-1, -1]},
        {"n_bytes": -5},
        {"n_bytes": 1 << 62},
        {"n_bytes": "1e9"},
        {"used": float("nan")},
        {"used": -1},
        {"used": 1 << 70},
        {"used": None},
        {"prefill_ms": float("inf")},
        {"spans": [7]},
        {"spans": [{"char_ends": []}]},
        {"texts": 5},
        {"kind": None},
        {"kind": {"model_sha256": "0"}},
        {"conversation": None, "digest": "0"},
        {"first": 1 << 40},
        {"first": -1},
        {"spans": [{"message": "q", "p0": 0, "p1": 1 << 40, "text_p0": 0, "char_ends": []}]},
        {"chats": ["one"], "messages": []},
    ],
    ids=str,
)
def test_an_entry_of_nonsense(folder: Path, back: Callable[[], int], change: dict[str, object]) -> None:
    write_index(folder, [index(folder)[0] | change])
    assert back() == 0


@pytest.mark.parametrize("missing", ["key", "kind", "tokens", "digest", "spans", "n_bytes"])
def test_an_entry_that_lacks_something(folder: Path, back: Callable[[], int], missing: str) -> None:
    write_index(folder, [{name: value for name, value in index(folder)[0].items() if name != missing}])
    assert back() == 0


@pytest.mark.parametrize(
    "key", ["../../etc", "../outside", "..\\outside", "/etc/passwd", "a" * 63 + "/", "\u0663" * 64]
)
def test_a_key_that_leads_elsewhere(folder: Path, back: Callable[[], int], key: str) -> None:
    outside = folder.parent / "outside.kvstate"
    outside.write_bytes(b"mine")
    write_index(folder, [index(folder)[0] | {"key": key}])
    assert back() == 0
    assert outside.read_bytes() == b"mine"


KIND = StateKind("model", "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0))


def saved_in(
    folder: Path, kind: StateKind, conversation: str, limit: int = 1_000_000, memory: int = 0
) -> SavedStateStore:
    """A state of 4,000 bytes of this conversation; the folder is closed."""
    saved_states = SavedStateStore(folder, kind, Limits(memory, limit))
    state = Resident(0, 100, 100, 4000, 1.0, 1e5, 1.0)
    where = place(state, saved_states.values(), saved_states.limits)
    text = (f"text of {conversation}",)
    saved_states.put(where, ConversationId(conversation), list(range(100)), os.urandom(4000), 1e5, texts=text)
    saved_states.close()
    return saved_states


def test_a_deleted_conversation_leaves_nothing_whatever_model_is_open(tmp_path: Path) -> None:
    other = replace(KIND, engine_version="another")
    saved_in(tmp_path, KIND, "secret")
    saved_in(tmp_path, other, "kept")
    saved_states = SavedStateStore(tmp_path, other, Limits(0, 1_000_000))
    saved_states.drop_of(ConversationId("secret"))
    saved_states.close()
    assert "secret" not in (tmp_path / "index.json").read_text()
    assert len(list(tmp_path.glob("*.kvstate"))) == 1
    forget_saved(tmp_path, ConversationId("kept"))
    assert not list(tmp_path.glob("*.kvstate"))


def test_states_of_other_models_count_in_the_limit(tmp_path: Path) -> None:
    for n in range(5):
        saved_in(tmp_path, replace(KIND, model_sha256=str(n)), f"chat {n}", limit=9000)
        assert sum(file.stat().st_size for file in tmp_path.glob("*.kvstate")) <= 9000
    rest = (tmp_path / "index.json").read_text()
    assert "chat 4" in rest, "the newest stays"
    assert "chat 0" not in rest


def test_the_newest_are_on_disk_after_a_close_though_it_was_full(tmp_path: Path) -> None:
    """A state in memory was lost at the end where older ones on disk had left no place."""
    for n in range(5):
        saved_in(tmp_path, KIND, f"chat {n}", limit=9000, memory=1_000_000)
    again = SavedStateStore(tmp_path, KIND, Limits(0, 9000))
    assert {conversation for conversation, _ in again.conversations()} == {"chat 3", "chat 4"}


def test_two_conversations_with_the_same_tokens_have_a_state_each(tmp_path: Path) -> None:
    saved_in(tmp_path, KIND, "one")
    saved_in(tmp_path, KIND, "two")
    saved_states = SavedStateStore(tmp_path, KIND, Limits(0, 1_000_000))
    saved_states.drop_of(ConversationId("one"))
    two = saved_states.of(ConversationId("two"))
    assert two is not None
    assert saved_states.take(two) is not None
    saved_states.close()


def test_strange_things_in_the_folder_of_states(tmp_path: Path) -> None:
    saved_in(tmp_path, KIND, "one")
    (tmp_path / "old.kvstate").mkdir()
    index = tmp_path / "index.json"
    rows = json.loads(index.read_text())
    strange = [{"n_bytes": 10**400}, {"exact": -5}, {"tokens": []}]
    index.write_text(json.dumps([rows[0] | change for change in strange]))
    assert SavedStateStore(tmp_path, KIND, Limits(0, 1_000_000)).values() == []


def test_two_states_that_were_swapped_with_their_digests(tmp_path: Path) -> None:
    for name in ("one", "two"):
        saved_in(tmp_path, KIND, name)
    one, two = rows = index(tmp_path)
    first, second = (tmp_path / f"{row['key']}.kvstate" for row in rows)
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    one["digest"], two["digest"] = two["digest"], one["digest"]
    write_index(tmp_path, rows)
    saved_states = SavedStateStore(tmp_path, KIND, Limits(0, 1_000_000))
    states = [saved_states.of(ConversationId(name)) for name in ("one", "two")]
    assert [saved_states.take(state) for state in states if state is not None] == [None, None]
    saved_states.close()


def test_a_state_that_was_asked_for_before_its_writer_finished(tmp_path: Path) -> None:
    saved_states = saved_in(tmp_path, KIND, "one")
    saved = saved_states.of(ConversationId("one"))
    assert saved is not None
    assert saved.digest
    assert saved_states.take(replace(saved, digest="", packed=False)) is not None


@needs_pipes
def test_a_pipe_in_place_of_the_index(folder: Path, back: Callable[[], int]) -> None:
    (folder / "index.json").unlink()
    os.mkfifo(folder / "index.json")
    assert back() == 0


@needs_pipes
def test_a_pipe_in_place_of_a_state(tmp_path: Path) -> None:
    """It took the place of the file after the folder was opened."""
    saved_in(tmp_path, KIND, "one")
    saved_states = SavedStateStore(tmp_path, KIND, Limits(0, 1_000_000))
    state_file(tmp_path).unlink()
    os.mkfifo(tmp_path / f"{saved_states.values()[0].key}.kvstate")
    saved = saved_states.of(ConversationId("one"))
    assert saved is not None
    assert saved_states.take(saved) is None
    saved_states.close()


@pytest.mark.parametrize("name", ["index.json", "*.kvstate"])
def test_a_file_of_four_terabytes(tmp_path: Path, name: str) -> None:
    """Without a byte on the disk. Reading it would take more memory than there is."""
    saved_in(tmp_path, KIND, "one")
    with next(tmp_path.glob(name)).open("rb+") as file:
        try:
            file.truncate(1 << 42)
        except OSError:
            pytest.skip("this file system has no such files")
    saved_states = SavedStateStore(tmp_path, KIND, Limits(0, 1_000_000))
    saved = saved_states.of(ConversationId("one"))
    assert (saved is None) == (name == "index.json")
    assert saved is None or saved_states.take(saved) is None
    saved_states.close()
    assert json.loads((tmp_path / "index.json").read_bytes()) == []


@pytest.mark.parametrize("fails", ["the state", "its place", "the index"])
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    sync, replaced, calls = os.fsync, Path.replace, []

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) == {"the state": 1, "the index": 2}.get(fails):
            raise OSError(errno.ENOSPC, "no space left on device")
        sync(file)

    def no_place(path: Path, target: Path) -> Path:
        if fails == "its place":
            raise OSError(errno.EACCES, "not allowed")
        return replaced(path, target)

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(Path, "replace", no_place)
    saved_states = saved_in(tmp_path, KIND, "one")
    assert list(tmp_path.iterdir()) == []
    assert saved_states.values() == []
