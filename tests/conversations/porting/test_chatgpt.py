"""ChatGPT's export: branches, instructions, tools, pictures; hidden nodes are left out and counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvdesk.conversations.porting import formats
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError
from tests.conversations.porting.samples import chatgpt_conversation, chatgpt_message, chatgpt_node, written


def test_a_conversation_with_two_answers(tmp_path: Path) -> None:
    [found] = formats.read(written(tmp_path / "conversations.json", [chatgpt_conversation()]))
    there = found.conversation
    assert (found.format, there.title) == ("ChatGPT", "Tides")
    assert there.system_prompt == "I am a sailor.\n\nBe brief."
    assert (there.created_ms, there.updated_ms) == (1_700_000_000_250, 1_700_000_060_250)
    ask, first, second = there.messages
    assert (ask.role, ask.text, ask.parent) == ("user", "[picture]\nWhy are there tides?", None)
    assert (first.role, first.text, first.parent, first.model) == ("assistant", "No idea.", ask.id, "gpt-4o")
    assert second.text == "<think>\nThe moon pulls.\n</think>\n\nThe moon."
    assert (second.parent, second.model, second.created_ms) == (ask.id, "o3", 1_700_000_000_250)
    assert Tree(there.messages).branch(there.leaf) == [ask, second]
    assert dict(found.left_out) == {"pictures": 1, "files": 1, "tool calls": 1, "tool results": 1, "citations": 1}


def test_the_same_file_gives_the_same_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", [chatgpt_conversation()])
    [one], [other] = formats.read(path), formats.read(path)
    assert one.conversation == other.conversation
    assert one.conversation.messages == other.conversation.messages


@pytest.mark.parametrize("around", ["array", "object", "alone"])
def test_an_array_may_be_wrapped_or_be_missing(tmp_path: Path, around: str) -> None:
    one = chatgpt_conversation()
    value = {"array": [one, one | {"conversation_id": "2"}], "object": {"x": 1, "conversations": [one]}, "alone": one}
    found = list(formats.read(written(tmp_path / "x.json", value[around])))
    assert [len(each.conversation.messages) for each in found] == ([3, 3] if around == "array" else [3])


def test_answers_with_branches_among_them_stay_apart(tmp_path: Path) -> None:
    value = chatgpt_conversation()
    nodes = [
        chatgpt_node("ask", None, chatgpt_message("ask", "user", "Count")),
        chatgpt_node("one", "ask", chatgpt_message("one", "assistant", "One")),
        chatgpt_node("two", "one", chatgpt_message("two", "assistant", "Two")),
        chatgpt_node("other", "one", chatgpt_message("other", "assistant", "Other")),
        chatgpt_node("three", "two", chatgpt_message("three", "assistant", "Three")),
    ]
    value |= {"mapping": {node["id"]: node for node in nodes}, "current_node": "three"}
    [found] = formats.read(written(tmp_path / "x.json", [value]))
    assert [message.text for message in found.conversation.messages] == ["Count", "One", "Two\n\nThree", "Other"]
    assert found.conversation.leaf == found.conversation.messages[2].id


def test_code_and_transcribed_speech_are_text(tmp_path: Path) -> None:
    code = chatgpt_message("code", "assistant")
    code["content"] = {"content_type": "code", "language": "python", "text": "x = 1"}
    spoken = {"content_type": "audio_transcription", "text": "Hello"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "x"}
    nodes = [
        chatgpt_node("ask", None, chatgpt_message("ask", "user", spoken, sound, kind="multimodal_text")),
        chatgpt_node("code", "ask", code),
    ]
    value = {"mapping": {node["id"]: node for node in nodes}}
    [found] = formats.read(written(tmp_path / "x.json", [value]))
    assert [message.text for message in found.conversation.messages] == ["Hello", "```python\nx = 1\n```"]
    assert found.conversation.title == "Hello"
    assert found.left_out == {"sound": 1}


def test_answers_without_a_model_have_that_of_the_conversation(tmp_path: Path) -> None:
    value = chatgpt_conversation() | {"default_model_slug": "gpt-5"}
    del value["mapping"]["first"]["message"]["metadata"]["model_slug"]
    [found] = formats.read(written(tmp_path / "x.json", [value]))
    assert [message.model for message in found.conversation.messages] == ["", "gpt-5", "o3"]


def canvas(call: Any, recipient: str = "canmore.create_textdoc", kind: str = "document") -> list[dict[str, Any]]:
    """A question, the call that writes a canvas, the tool's answer and the answer."""
    text = call if isinstance(call, str) else json.dumps(call)
    asked = chatgpt_message("call", "assistant", kind="code", recipient=recipient)
    asked["content"] = {"content_type": "code", "language": "json", "text": text}
    made = {"canvas": {"textdoc_type": kind, "title": "letter"}}
    return [
        chatgpt_node("ask", None, chatgpt_message("ask", "user", "Write"), "call"),
        chatgpt_node("call", "ask", asked, "made"),
        chatgpt_node("made", "call", chatgpt_message("made", "tool", "Successfully created", metadata=made), "said"),
        chatgpt_node("said", "made", chatgpt_message("said", "assistant", "Done.")),
    ]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (canvas({"name": "letter", "type": "document", "content": "Dear Sir"}), "**letter**\n\nDear Sir\n\nDone."),
        (
            canvas({"name": "a.py", "type": "code/python", "content": 'x = "```"'}),
            '**a.py**\n\n````python\nx = "```"\n````\n\nDone.',
        ),
        (
            canvas({"updates": [{"pattern": ".*", "replacement": "New"}]}, "canmore.update_textdoc"),
            "**letter**\n\nNew\n\nDone.",
        ),
        (
            canvas({"updates": [{"replacement": "x"}, None]}, "canmore.update_textdoc", "code/c"),
            "**letter**\n\n```c\nx\n```\n\nDone.",
        ),
        (canvas('{"content": "cut'), '**letter**\n\n{"content": "cut\n\nDone.'),
    ],
)
def test_a_canvas_is_text_of_the_answer(tmp_path: Path, nodes: list[dict[str, Any]], text: str) -> None:
    value = {"mapping": {node["id"]: node for node in nodes}, "current_node": "said"}
    [found] = formats.read(written(tmp_path / "x.json", [value]))
    assert [message.text for message in found.conversation.messages] == ["Write", text]
    assert not found.left_out


def test_a_call_that_writes_no_canvas_is_left_out(tmp_path: Path) -> None:
    nodes = canvas({"updates": []}, "canmore.update_textdoc")
    [found] = formats.read(written(tmp_path / "x.json", [{"mapping": {node["id"]: node for node in nodes}}]))
    assert [message.text for message in found.conversation.messages] == ["Write", "Done."]
    assert found.left_out == {"tool calls": 1}


def test_a_circle_is_refused(tmp_path: Path) -> None:
    value = chatgpt_conversation()
    value["mapping"]["root"]["parent"] = "second"
    with pytest.raises(UserError, match="The chat “Tides” is damaged: its messages follow one another in a circle"):
        list(formats.read(written(tmp_path / "x.json", [value])))
