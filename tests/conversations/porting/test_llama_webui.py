"""What llama.cpp's web UI exports, in each form it has had: the same conversation comes out of all."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvdesk.conversations.porting import formats
from kvdesk.conversations.porting.values import Found
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError
from kvdesk.message import Attachment
from tests.conversations.porting.samples import dexie_dump, jsonl, llama_session, oldest_session, written


def _check(found: Found) -> None:
    there = found.conversation
    assert (found.format, there.title, there.system_prompt) == ("llama.cpp", "Tides", "Be brief.")
    assert there.updated_ms == 1_700_000_060_000
    ask, wind, moon = there.messages
    assert ask.text == "Why tides?\n\n[picture]"
    assert ask.attachments == (Attachment("tide.csv", "text", "a,b"),)
    assert (wind.text, wind.model, wind.parent) == ("Wind.", "smol", ask.id)
    assert (moon.text, moon.model, moon.parent) == ("<think>\nLook it up.\n</think>\n\nThe moon.", "qwen", ask.id)
    assert Tree(there.messages).branch(there.leaf) == [ask, moon]
    assert found.left_out == {"pictures": 1, "tool calls": 1, "tool results": 1}


@pytest.mark.parametrize("form", ["one", "array", "dump", "lines"])
def test_every_form_of_the_export(tmp_path: Path, form: str) -> None:
    session = llama_session()
    values: dict[str, Any] = {"one": session, "array": [session], "dump": dexie_dump(session)}
    path = tmp_path / "x.json"
    path.write_text(jsonl(session) if form == "lines" else json.dumps(values[form], indent=2), "utf-8")
    [found] = formats.read(path)
    _check(found)


def test_a_zip_of_json_lines(tmp_path: Path) -> None:
    other = llama_session()
    other["conv"]["id"] = "c-2"
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, session in (("a.jsonl", llama_session()), ("b.jsonl", other)):
            archive.writestr(name, jsonl(session))
    one, two = formats.read(tmp_path / "all.zip")
    _check(one)
    _check(two)
    assert one.conversation.id != two.conversation.id


def test_several_sessions_in_one_file_of_lines(tmp_path: Path) -> None:
    other = llama_session()
    other["conv"]["id"] = "c-2"
    path = tmp_path / "x.jsonl"
    path.write_text(jsonl(llama_session()) + "\n" + jsonl(other) + "\n", "utf-8")
    assert len(list(formats.read(path))) == 2


def test_the_oldest_form_has_no_branches(tmp_path: Path) -> None:
    [found] = formats.read(written(tmp_path / "x.json", oldest_session()))
    ask, answer = found.conversation.messages
    assert (ask.created_ms, answer.parent) == (1_700_000_000_001, ask.id)
    assert found.conversation.title == "Why tides?"


def test_a_message_before_any_session_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(jsonl(llama_session()).partition("\n")[2], "utf-8")
    with pytest.raises(UserError, match="no export that kvdesk knows"):
        list(formats.read(path))
