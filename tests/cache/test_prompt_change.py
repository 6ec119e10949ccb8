"""What a client changed between two prompts."""

from __future__ import annotations

from typing import Any

import pytest

from kvdesk.cache.prompt_change import Change, Prompt, change_between, prompt_of_json, prompt_of_text

SYSTEM = {"role": "system", "content": "You are a careful assistant for the garden."}
TALK = [
    SYSTEM,
    {"role": "user", "content": "When do I plant the beans?"},
    {"role": "assistant", "content": "Plant them in the middle of May."},
    {"role": "user", "content": "And the peas, which I like more?"},
]
NEXT = [*TALK, {"role": "assistant", "content": "In March."}, {"role": "user", "content": "Thank you."}]
REMINDER = "<system-reminder>Your list of things to do is empty.</system-reminder>"


def with_text(messages: list[dict[str, Any]], at: int, **fields: Any) -> list[dict[str, Any]]:
    return [{**message, **fields} if i == at else message for i, message in enumerate(messages)]


def tool(name: str, what: str = "does it") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": what}}


def prompt(messages: list[dict[str, Any]], **more: Any) -> Prompt:
    found = prompt_of_json({"messages": messages, **more})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("before", "after", "change", "message"),
    [
        (TALK, NEXT, Change.NOTHING, 0),
        (TALK, TALK, Change.NOTHING, 0),
        (TALK, with_text(NEXT, 0, role="developer"), Change.ROLE_CHANGED, 1),
        (
            with_text(TALK, 3, content=f"And the peas, which I like more?\n{REMINDER}"),
            with_text(NEXT, 5, content=f"Thank you.\n{REMINDER}"),
            Change.BLOCK_MOVED,
            4,
        ),
        (
            with_text(TALK, 2, content="<think>May or June?</think>Plant them in the middle of May."),
            NEXT,
            Change.THINKING,
            3,
        ),
        (NEXT, [SYSTEM, *NEXT[3:], {"role": "assistant", "content": "You are welcome."}], Change.FRONT_CUT, 2),
        (
            [SYSTEM, *({"role": "user", "content": f"Question {i} " * 30} for i in range(9))],
            [SYSTEM, {"role": "user", "content": "So far we spoke of beans."}],
            Change.COMPACTED,
            2,
        ),
        (
            with_text(TALK, 0, content="x-anthropic-billing-header: cc_version=2; cch=1f2e3;\nYou are Claude."),
            with_text(NEXT, 0, content="x-anthropic-billing-header: cc_version=2; cch=9a8b7;\nYou are Claude."),
            Change.ATTRIBUTION,
            1,
        ),
        (
            with_text(TALK, 0, content="Today is 2026-11-25. Be brief."),
            with_text(NEXT, 0, content="Today is 2026-11-26. Be brief."),
            Change.USUAL,
            1,
        ),
        (TALK, with_text(NEXT, 1, content="When do I plant the lettuce?"), Change.EDITED, 2),
    ],
)
def test_the_first_change_is_named(
    before: list[dict[str, Any]], after: list[dict[str, Any]], change: Change, message: int
) -> None:
    found = change_between(prompt(before), prompt(after))
    assert (found.change, found.message) == (change, message)
    assert bool(found.sentence) == (change is not Change.NOTHING)


def test_a_usual_cause_is_said_in_a_sentence() -> None:
    days = [with_text(TALK, 0, content=f"Today is 2026-11-{day}. Be brief.") for day in (25, 26)]
    sentence = change_between(*map(prompt, days)).sentence
    assert sentence == "Message 1 changed. Usual cause: the system prompt contains the date or the time."


def test_tools_come_before_messages() -> None:
    a, b = tool("read"), tool("write")
    before = prompt(TALK, tools=[a, b])
    assert change_between(before, prompt(NEXT, tools=[b, a])).change is Change.TOOLS_REORDERED
    gone = change_between(before, prompt(NEXT, tools=[a]))
    assert (gone.change, gone.sentence) == (Change.TOOLS_GONE, "The client left out 1 of its 2 tools (write).")
    assert change_between(before, prompt(NEXT, tools=[a, tool("write", "else")])).change is Change.TOOLS_CHANGED
    assert change_between(before, prompt(NEXT, tools=[a, b])).change is Change.NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
        (
            "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
        ),
        "<start_of_turn>system\nBe kind.<end_of_turn>\n<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
    ],
)
def test_a_rendered_text_is_cut_at_the_marks_of_its_template(text: str) -> None:
    found = prompt_of_text(text)
    assert [part.role for part in found.parts][:2] == ["system", "user"]
    assert "Be kind." in found.parts[0].text
    assert len(found.parts) == 3


def test_anthropic_and_responses_bodies_are_prompts_too() -> None:
    blocks = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]
    anthropic = prompt_of_json({"system": blocks, "messages": [{"role": "user", "content": blocks}]})
    assert anthropic is not None
    assert [(part.role, part.text) for part in anthropic.parts] == [
        ("system", "Hello\nthere"),
        ("user", "Hello\nthere"),
    ]
    responses = prompt_of_json({"input": [{"role": "user", "content": "Hi"}], "tools": [{"name": "read"}, "odd"]})
    assert responses is not None
    assert [name for name, _ in responses.tools] == ["read", ""]
    assert prompt_of_json({"messages": 3}) is None
    text = prompt_of_json({"prompt": "Once upon a time"})
    assert text is not None
    assert text.parts[0].text == "Once upon a time"
