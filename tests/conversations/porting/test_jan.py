"""Jan's lines of messages: one chat a thread, parts of an answer, and what is left out."""

import json
from pathlib import Path
from typing import Any

from kvdesk.conversations.porting import formats
from tests.conversations.porting.samples import jan_lines


def lines_in(path: Path, lines: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def test_the_lines_of_a_thread_are_a_chat(tmp_path: Path) -> None:
    [found] = formats.read(lines_in(tmp_path / "messages.jsonl", jan_lines()))
    there = found.conversation
    assert (found.format, there.title, there.system_prompt) == ("Jan", "Why tides?", "Be brief.")
    ask, answer = there.messages
    assert (ask.role, ask.text, ask.created_ms) == ("user", "Why tides?\n[picture]", 1_700_000_000_000)
    assert answer.text == "Let me see.\n\n<think>\nLook it up.\n</think>\n\nThe moon."
    assert (answer.parent, there.leaf) == (ask.id, answer.id)
    assert dict(found.left_out) == {"pictures": 1, "tool calls": 1, "tool results": 1}


def test_threads_that_follow_one_another_stay_apart_and_a_damaged_line_costs_itself(tmp_path: Path) -> None:
    lines = [*jan_lines(), {}, *(line | {"thread_id": "t-2"} for line in jan_lines())]
    one, other = formats.read(lines_in(tmp_path / "messages.jsonl", lines))
    assert one.conversation.id != other.conversation.id
    assert [len(each.conversation.messages) for each in (one, other)] == [2, 2]
    assert one.left_out["other content"] == 1
