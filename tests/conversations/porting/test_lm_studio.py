"""LM Studio's conversations: versions are branches, reasoning stays, the file's name and time tell them apart."""

from pathlib import Path

from kvdesk.conversations.porting import formats
from kvdesk.conversations.tree import Tree
from tests.conversations.porting.samples import lm_studio_conversation, written


def test_a_conversation_with_two_versions_of_an_answer(tmp_path: Path) -> None:
    [found] = formats.read(written(tmp_path / "1700000000123.conversation.json", lm_studio_conversation()))
    there = found.conversation
    assert (found.format, there.title, there.system_prompt) == ("LM Studio", "Tides again", "Be brief.")
    assert (there.created_ms, there.updated_ms) == (1_700_000_000_123, 1_700_000_009_000)
    ask, wind, moon, thanks = there.messages
    assert ask.text == "Why tides?\n[picture]"
    assert (wind.text, wind.parent, wind.model) == ("Wind.", ask.id, "qwen3-4b")
    assert (moon.text, moon.parent) == ("<think>\nMoon or sun?\n</think>\n\nThe moon.", ask.id)
    assert thanks.parent == moon.id
    assert Tree(there.messages).branch(there.leaf) == [ask, moon, thanks]
    assert found.left_out == {"pictures": 1, "tool calls": 1}


def test_a_damaged_message_costs_itself(tmp_path: Path) -> None:
    value = lm_studio_conversation()
    value["messages"][2:] = [None, {"versions": None}, value["messages"][2]]
    [found] = formats.read(written(tmp_path / "x.conversation.json", value))
    assert len(found.conversation.messages) == 4
    assert found.left_out["other content"] == 2


def test_the_name_of_the_file_tells_conversations_apart(tmp_path: Path) -> None:
    value = lm_studio_conversation()
    paths = [written(tmp_path / f"{name}.conversation.json", value) for name in ("1", "2")]
    ids = [found.conversation.id for path in (*paths, paths[0]) for found in formats.read(path)]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2]


def test_wrong_selections_and_empty_chats(tmp_path: Path) -> None:
    value = lm_studio_conversation()
    for message, selected in zip(value["messages"], (-1, 99, "x"), strict=True):
        message["currentlySelected"] = selected
    [found] = formats.read(written(tmp_path / "a.json", value))
    assert len(Tree(found.conversation.messages).branch(found.conversation.leaf)) == 3
    [found] = formats.read(written(tmp_path / "b.json", value | {"messages": []}))
    assert found.left_out == {"empty chats": 1}
