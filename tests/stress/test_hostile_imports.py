"""Files of chats that mean harm: a sentence and nothing imported, or whole conversations that kvdesk can hold."""

import copy
import io
import json
import random
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import export, formats, jan, json_file, json_stream, llama_webui
from kvdesk.conversations.porting.adding import chosen
from kvdesk.conversations.porting.summary import rows, summary_of
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError
from kvdesk.message import ConversationId, Message, MessageId, TurnStats
from kvdesk.store import Store
from kvdesk.values import replace
from tests.conversations.porting.samples import (
    chatgpt_conversation,
    dexie_dump,
    jan_lines,
    jsonl,
    llama_session,
    lm_studio_conversation,
    oldest_session,
    open_webui_chat,
)
from tests.stress.conftest import Row, forms
from tests.stress.test_strangers_files import check_sentence, for_all, put_somewhere

NASTY: Final = st.one_of(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
        max_leaves=6,
    ),
    st.sampled_from((
        *("\ud83d", "\udc00\ud800", "\0", "../../../evil", "C:\\evil", "<script>", "m1", "root", "second", ""),
        *("💥" * 100, 1e308, -1e308, 1 << 62, 1 << 70, -1, 0.1, True, 253_402_300_800_000, 10**400, float("nan")),
        *([], {}, [[[[[]]]]], {"content_type": "text", "parts": [None, 1, {}]}, {"parent": "second"}, ["root", "root"]),
    )),
)  # fmt: skip
WAYS: Final = ("value", "value", "value", "missing", "swap", "bytes", "cut", "deep", "twice", "long", "many")
CHANGES: Final = st.tuples(st.integers(0, 2**32 - 1), st.lists(st.tuples(st.sampled_from(WAYS), NASTY), max_size=5))


def own_file() -> Any:
    own = ConversationId("c" * 32)
    stats = TurnStats(10, 4, 6, 2, 120.0, 50.0, 20.0)
    messages = (
        Message(MessageId("m1"), own, None, "user", "Hi"),
        Message(MessageId("m2"), own, MessageId("m1"), "assistant", "Ho", tokens=(1, 2), stats=stats),
        Message(MessageId("m3"), own, MessageId("m1"), "assistant", "Hm"),
    )
    there = Conversation(own, "Title", 3, MessageId("m2"), "Be brief.", 1, 2, "slide", messages=messages)
    return json.loads("".join(json_file.lines([there], 5)))


def originals() -> list[Any]:
    """One value of each format; JSON lines as a list of their own."""
    session = llama_session()
    lines = [json.loads(line) for line in jsonl(session).splitlines()]
    values = [own_file(), [chatgpt_conversation()] * 2, lm_studio_conversation(), [session], dexie_dump(session)]
    return [*values, oldest_session(), {"lines": lines}, [open_webui_chat()] * 2, {"lines": jan_lines()}]


def damaged(seed: int, changes: list[tuple[str, Any]]) -> bytes:
    """One of the originals with some changes, in a ZIP now and then."""
    rng = random.Random(seed)
    value = copy.deepcopy(rng.choice(originals()))
    late: list[str] = []
    for way, nasty in changes:
        if way == "swap" and isinstance(value, dict | list):
            nasty = copy.deepcopy(value)
        nasty = {"long": "x" * 100_000, "many": [[0] * 7 for _ in range(3000)]}.get(way, nasty)
        if way in ("value", "missing", "swap", "long", "many"):
            put_somewhere(value, nasty, rng, remove=way == "missing")
        else:
            late.append(way)
    is_lines = isinstance(value, dict) and isinstance(value.get("lines"), list)
    data = ("\n".join(map(json.dumps, value["lines"])) if is_lines else json.dumps(value)).encode()
    data = zipped(data, rng) if rng.random() < 0.3 else data
    for way in late:
        data = spoilt(data, way, rng)
    return data


def zipped(data: bytes, rng: random.Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in rng.sample(("conversations.json", "../../evil.json", "/abs/conversations-000.json", "a.jsonl"), 2):
            archive.writestr(name, data)
    return file.getvalue()


def spoilt(data: bytes, way: str, rng: random.Random) -> bytes:
    if way == "bytes" and data:
        changed = bytearray(data)
        for _ in range(rng.choice((1, 5, 50))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    if way == "cut":
        return data[: rng.randrange(len(data) + 1)]
    if way == "deep":
        return data.replace(b'"', b'"' + b"[" * 20_000, 1) if rng.random() < 0.5 else b'{"a":' * 50_000 + data
    return data + data


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of the real limit takes seconds to be refused; small pieces are cut in more places."""
    monkeypatch.setattr(json_stream, "CHUNK", 1 << 12)
    for module in (json_stream, llama_webui, jan):
        monkeypatch.setattr(module, "LARGEST_VALUE", 1 << 20)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "kvdesk.sqlite3")) as store:
        yield store


@forms(200, 5000)
def test_imports(row: Row, store: Store, tmp_path: Path, n: int) -> None:
    folder = tmp_path / "files"
    path, out = folder / "in.json", folder / "out"
    out.mkdir(parents=True)

    def imported(example: tuple[int, list[tuple[str, Any]]]) -> None:
        path.write_bytes(damaged(*example))
        there = set(folder.rglob("*"))
        before = store.conversations()
        try:
            found = list(formats.read(path))
        except UserError as error:
            check_sentence(error)
            assert set(folder.rglob("*")) == there, "nothing is written"
            return
        assert all(name and value for name, value in rows(summary_of(found, [])))
        added = store.add(chosen([one.conversation for one in found], before, 8, copies=False))
        assert {one.id for one in store.conversations()} == {one.id for one in (*before, *added)}
        whole = [check_whole(store, one) for one in added]
        for form in export.EXPORT_FORMATS:
            export.write(out / f"x{form.ending}", form, whole)
        if whole:
            back = [one.conversation for one in formats.read(out / "x.json")]
            assert [(one, one.messages) for one in back] == [(one, one.messages) for one in whole]
        for written in out.iterdir():
            written.unlink()
        assert set(folder.rglob("*")) == there

    for_all(row, n, CHANGES, imported)


def check_whole(store: Store, known: Conversation) -> Conversation:
    """The conversation with its messages; every one of them leads to a first one."""
    [stored] = [one for one in store.conversations() if one.id == known.id]
    messages = store.all_messages(known.id)
    tree = Tree(messages)
    names = {message.id for message in messages}
    assert known.id.isalnum()
    assert stored.leaf in names or not messages
    for message in messages:
        branch = tree.branch(message.id)
        assert branch[0].parent is None
        assert branch[-1] == message
        assert tree.tip(message.id) in names
        assert message.note != "This message is damaged in the database; what could be read of it is shown."
    return replace(stored, messages=messages)
