"""Files as such: ZIPs, sizes, progress, and what is no export; a large file is read in pieces."""

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import formats, json_file, json_stream
from kvdesk.conversations.porting.json_stream import json_values
from kvdesk.conversations.porting.signs import looks_like_chats
from kvdesk.conversations.porting.summary import rows, summary_of
from kvdesk.conversations.porting.values import time_ms
from kvdesk.errors import UserError
from kvdesk.message import ConversationId
from tests.conversations.porting.samples import (
    chatgpt_conversation,
    llama_session,
    lm_studio_conversation,
    open_webui_chat,
    written,
)
from tests.places import SHARED_CASES


def zipped(path: Path, members: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def said(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        list(formats.read(path))
    return str(caught.value)


def test_the_zip_that_chatgpt_sends(tmp_path: Path) -> None:
    members = {
        "user.json": {"email": "nobody@example.org"},
        "export/conversations-001.json": [chatgpt_conversation() | {"conversation_id": "2"}],
        "export/conversations-000.json": [chatgpt_conversation()],
        "__MACOSX/export/._conversations-000.json": b"\0",
        "message_feedback.json": [],
        "chat.html": "<html>",
    }
    found = list(formats.read(zipped(tmp_path / "x.zip", members)))
    assert [one.format for one in found] == ["ChatGPT", "ChatGPT"]


def test_a_folder_of_lm_studio_as_a_zip(tmp_path: Path) -> None:
    members = {f"conversations/{n}.conversation.json": lm_studio_conversation() for n in (1, 2)}
    assert len({one.conversation.id for one in formats.read(zipped(tmp_path / "x.zip", members))}) == 2


def test_names_in_a_zip_lead_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    chats = [chatgpt_conversation()]
    members = {"../../evil/conversations.json": chats, "/etc/conversations.json": chats}
    before = set(tmp_path.rglob("*"))
    path = zipped(folder / "x.zip", members)
    assert len(list(formats.read(path))) == 2
    assert set(tmp_path.rglob("*")) == before | {path}


def test_zips_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    assert said(zipped(path, {"a.txt": "x"})) == "This ZIP has no file of chats, such as conversations.json."
    packed = zipped(path, {"conversations.json": [chatgpt_conversation()]}, zipfile.ZIP_LZMA)
    assert said(packed) == "This ZIP is packed in a way that kvdesk does not read."
    whole = zipped(path, {"conversations.json": [chatgpt_conversation()]}).read_bytes()
    for data in (whole[:-30], whole[:200], whole[:60] + bytes(200) + whole[260:], b"PK\3\4"):
        path.write_bytes(data)
        assert said(path) in (
            "This ZIP is damaged.",
            "The ZIP x.zip is damaged.",
            "This file is damaged, or is not JSON.",
        )
    many = bytearray(whole)
    at = many.rfind(b"PK\5\6")
    many[at + 12 : at + 16] = struct.pack("<I", 1 << 31)
    path.write_bytes(many)
    assert said(path) == "This ZIP has too many files."
    locked = bytearray(whole)
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        locked[locked.find(signature) + offset] |= 1
    path.write_bytes(locked)
    assert said(path) == "This ZIP is locked with a password."


def test_a_zip_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LARGEST_FILE", 1 << 20)
    sentence = "This file has more than 1 MB of chats; kvdesk imports no more at once."
    assert said(zipped(tmp_path / "x.zip", {"conversations.json": b"[" + b" " * (2 << 20)})) == sentence
    plain = tmp_path / "x.json"
    plain.write_bytes(b" " * (2 << 20))
    assert said(plain) == sentence


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "x.json has no chats."),
        (b"[]", "x.json has no chats."),
        (b"hello", "This file is not JSON."),
        (b"[1, 2]", "This file is no export that kvdesk knows"),
        (b'{"a": 1}', "This file is no export that kvdesk knows"),
        (b'[{"mapping": {', "This file is damaged, or is not JSON."),
        (b'[{"mapping": {}} {"mapping": {}}]', "This file is damaged, or is not JSON."),
        (b'[{"mapping": {}, "create_time": NaN}]', "This file is damaged, or is not JSON."),
        (b'[{"mapping": {}, "create_time": ' + b"9" * 5000 + b"}]", "This file is damaged, or is not JSON."),
        (b'[{"mapping": ' + b"[" * 100_000, "This file is not readable: its JSON is nested too deeply."),
        (b'["\xff"]', "This file is not text in UTF-8, UTF-16 or UTF-32."),
        (b'\xff\xfe[\0', "This file is damaged, or is not JSON."),
        (b'{"conversations": [' + b'{"mapping": {}},' * 3, "This file is damaged, or is not JSON."),
    ],
)  # fmt: skip
def test_what_is_no_export_gets_a_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    assert said(path).startswith(sentence)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_every_encoding_of_json_is_read(
    tmp_path: Path, encoding: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    value = chatgpt_conversation() | {"title": "潮汐 \U0001f30a"}
    path = tmp_path / "x.json"
    path.write_bytes(json.dumps([value], ensure_ascii=False).encode(encoding))
    [found] = formats.read(path)
    assert found.conversation.title == "潮汐 \U0001f30a"
    assert len(found.conversation.messages) == 3
    assert looks_like_chats(path)


def damaged_and_others() -> list[tuple[str, list[Any]]]:
    """Files of every format with two whole chats and damaged ones."""
    circle = chatgpt_conversation()
    circle["mapping"]["root"]["parent"] = "second"
    whole = [chatgpt_conversation() | {"conversation_id": name} for name in "12"]
    broken = [None, 7, {}, {"title": "broken", "mapping": None}, circle]
    session = llama_session()
    sessions = [{**session, "conv": {**session["conv"], "id": name}} for name in "12"]
    open_webui = [open_webui_chat() | {"id": name} for name in "12"]
    return [
        ("ChatGPT", [*broken[:3], whole[0], *broken[3:], whole[1]]),
        ("llama.cpp", [sessions[0], {"conv": {"id": "3"}, "messages": None}, None, sessions[1]]),
        ("Open WebUI", [open_webui[0], {"id": "3", "chat": {"history": {"messages": None}}}, open_webui[1], []]),
    ]


@pytest.mark.parametrize(("name", "values"), damaged_and_others())
def test_a_damaged_chat_is_counted_and_the_others_are_imported(tmp_path: Path, name: str, values: list[Any]) -> None:
    found = list(formats.read(written(tmp_path / "x.json", values)))
    summary = summary_of(found, [])
    assert (summary.formats, summary.n_conversations) == ((name,), 2)
    assert summary.left_out["damaged chats"] == len(values) - 2
    assert f"damaged chats: {len(values) - 2}" in dict(rows(summary))["Left out"]


def test_a_damaged_chat_of_kvdesk_is_counted(tmp_path: Path) -> None:
    chats = [Conversation(ConversationId(name), "T", 0, draft="typed") for name in ("a", "b", "c")]
    value = json.loads("".join(json_file.lines(chats, 5)))
    value["conversations"][0]["messages"] = [{"id": "m", "role": "nobody"}]
    value["conversations"][1] = None
    whole, rest = formats.read(written(tmp_path / "x.json", value))
    assert whole.conversation == chats[2]
    assert dict(rest.left_out) == {"damaged chats": 2}


def test_a_folder_is_read_as_a_zip_of_it(tmp_path: Path) -> None:
    """So are several files; LM Studio and Jan make one of each chat."""
    folder = tmp_path / "conversations"
    (folder / "work").mkdir(parents=True)
    pinned = lm_studio_conversation() | {"pinned": True}
    one = written(folder / "1.conversation.json", pinned)
    two = written(folder / "work" / "2.conversation.json", lm_studio_conversation())
    bad = folder / "3.conversation.json"
    bad.write_text("{")
    written(folder / "settings.json", {"other": 1})
    told: list[tuple[int, int]] = []
    *whole, rest = formats.read(folder, lambda done, total: told.append((done, total)))
    assert [found.conversation.pinned for found in whole] == [True, False]
    assert dict(rest.left_out) == {"damaged chats": 1}
    assert told == sorted(told)
    assert told[-1] == (told[-1][1], one.stat().st_size + two.stat().st_size + 1)
    assert list(formats.read(one, others=(bad, two))) == [*whole, rest]
    assert looks_like_chats(folder)
    assert said(tmp_path / "nowhere") == "nowhere cannot be read: No such file or directory."
    (tmp_path / "empty").mkdir()
    assert not looks_like_chats(tmp_path / "empty")


def test_a_file_of_a_zip_that_is_no_json_is_a_damaged_chat(tmp_path: Path) -> None:
    members = {
        "a.conversation.json": "{",
        "b.conversation.json": lm_studio_conversation(),
        "c.conversation.json": "[1,",
    }
    whole, rest = formats.read(zipped(tmp_path / "x.zip", members))
    assert whole.format == "LM Studio"
    assert dict(rest.left_out) == {"damaged chats": 2}
    only = dict.fromkeys(members, "{")
    assert said(zipped(tmp_path / "x.zip", only)) == "This file is damaged, or is not JSON."
    part = {"conversations-000.json": [chatgpt_conversation()], "conversations-001.json": "["}
    assert said(zipped(tmp_path / "x.zip", part)) == "This file is damaged, or is not JSON.", "it has many chats"


def test_a_limit_of_the_file_refuses_all_of_a_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MOST_CONVERSATIONS", 2)
    members = {f"{n}.conversation.json": lm_studio_conversation() for n in range(3)}
    assert "more than 2 chats" in said(zipped(tmp_path / "x.zip", members))


def test_a_long_file_without_a_chat_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", 1000)
    path = written(tmp_path / "x.json", list(range(20_000)))
    told: list[int] = []
    with pytest.raises(UserError, match="no export that kvdesk knows"):
        list(formats.read(path, lambda done, _total: told.append(done)))
    assert told[-1] < path.stat().st_size


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045_000),
        ("2026-01-02T04:04:05.25+01:00", 1_767_323_045_250),
        ("2026-01-02 03:04:05", 1_767_323_045_000),
        ("1767323045", 1_767_323_045_000),
        (1_767_323_045, 1_767_323_045_000),
        (1_767_323_045_000, 1_767_323_045_000),
        *[(no_time, 0) for no_time in ("", "soon", "nan", "1" * 400, "0001-01-01T00:00:00+14:00")],
        (None, 0),
        (True, 0),
    ],
)
def test_times_are_numbers_or_dates(value: Any, ms: int) -> None:
    assert time_ms(value, 1000.0) == ms


@pytest.mark.skipif(not SHARED_CASES.is_dir(), reason="without the folder of small inputs")
@pytest.mark.parametrize("path", sorted((SHARED_CASES / "import").glob("*")), ids=lambda path: path.name)
def test_every_small_file_opens(path: Path) -> None:
    assert looks_like_chats(path)
    messages = [message for found in formats.read(path) for message in found.conversation.messages]
    assert messages
    assert all(message.text.strip() for message in messages)


def test_what_is_no_file_gets_a_sentence(tmp_path: Path) -> None:
    assert said(tmp_path).endswith(" has no chats.")
    assert said(tmp_path / "none.json") == "none.json cannot be read: No such file or directory."


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
def test_values_are_the_same_however_a_file_is_cut(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    elements: list[Any] = [{"a": "x" * 50 + '"\\\u00e9\U0001f600'}, 12345, -1.5e10, True, None, "[{", [[], {}], 7]
    text = "\ufeff " + json.dumps({"v": 12, "conversations": elements, "w": 3}, ensure_ascii=False, indent=1)
    found = list(json_values(io.BytesIO(text.encode())))
    assert [value.value for value in found] == elements
    lines = "\n".join(json.dumps({"n": n}) for n in range(3))
    assert [value.value for value in json_values(io.BytesIO(lines.encode()))] == [{"n": n} for n in range(3)]


def test_a_chat_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK", 1000)
    monkeypatch.setattr(json_stream, "LARGEST_VALUE", 10_000)
    value = chatgpt_conversation() | {"padding": "x" * 50_000}
    assert "kvdesk reads no larger ones" in said(written(tmp_path / "x.json", [value]))
    assert "kvdesk reads no larger ones" in said(written(tmp_path / "x.json", {f"{n}": "x" * 900 for n in range(20)}))


def test_too_many_chats_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MOST_MESSAGES", 5)
    sentence = said(written(tmp_path / "x.json", [chatgpt_conversation()] * 2))
    assert sentence == "This file has more than 100,000 chats or 5 messages."


def test_progress_may_end_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", [chatgpt_conversation()] * 50)
    told: list[tuple[int, int]] = []
    list(formats.read(path, lambda done, total: told.append((done, total))))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)

    class Stopped(Exception):
        pass

    def stop(_done: int, _total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(formats.read(path, stop))
