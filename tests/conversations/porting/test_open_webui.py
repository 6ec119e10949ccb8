"""Open WebUI's chats: branches, reasoning, tools, files; the array of older versions; a chat without its record."""

from pathlib import Path

import pytest

from kvdesk.conversations.porting import formats
from kvdesk.conversations.tree import Tree
from tests.conversations.porting.samples import open_webui_chat, written


def test_a_chat_with_two_answers(tmp_path: Path) -> None:
    [found] = formats.read(written(tmp_path / "chat-export.json", [open_webui_chat()]))
    there = found.conversation
    assert (found.format, there.title, there.system_prompt) == ("Open WebUI", "Tides", "Be brief.")
    assert (there.created_ms, there.updated_ms) == (1_700_000_000_000, 1_700_000_060_000)
    ask, wind, moon = there.messages
    assert (ask.text, [(one.name, one.text) for one in ask.attachments]) == (
        "Why tides?\n\n[picture]",
        [("tide.csv", "a,b")],
    )
    assert (wind.text, wind.model, wind.parent) == ("Wind.", "smol", ask.id)
    assert moon.text == "<think>\nThe moon & the sun\npull.\n</think>\n\nThe moon."
    assert (moon.model, moon.parent, moon.created_ms) == ("qwen3:4b", ask.id, 1_700_000_000_000)
    assert Tree(there.messages).branch(there.leaf) == [ask, moon]
    assert dict(found.left_out) == {"pictures": 1, "tool calls": 1}


def test_a_chat_that_was_put_away_or_pinned_stays_so(tmp_path: Path) -> None:
    record = open_webui_chat() | {"archived": True, "pinned": True}
    [found] = formats.read(written(tmp_path / "x.json", [record]))
    assert (found.conversation.archived, found.conversation.pinned) == (True, True)


@pytest.mark.parametrize("form", ["without a record", "an array"])
def test_other_forms_of_a_chat(tmp_path: Path, form: str) -> None:
    record = open_webui_chat()
    chat = record["chat"]
    if form == "an array":
        del chat["history"]
    [found] = formats.read(written(tmp_path / "x.json", chat if form == "without a record" else [record]))
    assert found.format == "Open WebUI"
    assert found.conversation.messages[-1].text.endswith("The moon.")
    assert found.conversation.leaf == found.conversation.messages[-1].id


def test_an_answer_that_is_stored_in_parts_has_its_text(tmp_path: Path) -> None:
    record = open_webui_chat()
    record["chat"]["history"]["messages"]["a"] |= {
        "content": "",
        "output": [
            {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm."}]},
            {"type": "message", "content": [{"type": "output_text", "text": "The "}, {"text": "sun."}]},
        ],
    }
    [found] = formats.read(written(tmp_path / "x.json", [record]))
    assert found.conversation.messages[-1].text == "<think>\nHm.\n</think>\n\nThe sun."


def test_other_details_stay_as_they_were_written(tmp_path: Path) -> None:
    record = open_webui_chat()
    said = "<details><summary>More</summary>text</details>"
    record["chat"]["history"]["messages"]["b"]["content"] = said
    [found] = formats.read(written(tmp_path / "x.json", [record]))
    assert found.conversation.messages[1].text == said
