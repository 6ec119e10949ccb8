"""What a client changed between two prompts."""

import json
from typing import Any

import pytest

from kvdesk.cache.reuse.prompt_change import Change, Prompt, change_between, overlap, prompt_of_json, prompt_of_text
from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.loose_json import json_value
from kvdesk.values import replace

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
        (NEXT, [*NEXT[:3], *NEXT[5:]], Change.DROPPED, 4),
        (TALK, [*TALK[:2], {"role": "user", "content": "I am in the north."}, *NEXT[2:]], Change.INSERTED, 3),
        (NEXT, [NEXT[0], NEXT[3], NEXT[2], NEXT[1], *NEXT[4:]], Change.BLOCK_MOVED, 2),
        (with_text(TALK, 2, reasoning_content="May or June?"), NEXT, Change.THINKING, 3),
    ],
)
def test_the_first_change_is_named(
    before: list[dict[str, Any]], after: list[dict[str, Any]], change: Change, message: int
) -> None:
    found = change_between(prompt(before), prompt(after))
    assert (found.change, found.message) == (change, message)
    assert bool(found.sentence) == (change is not Change.NOTHING)


def test_a_usual_cause_is_named_in_its_sentence() -> None:
    before = prompt(with_text(TALK, 0, content="Today is 2026-11-25. Be brief."))
    found = change_between(before, prompt(with_text(NEXT, 0, content="Today is 2026-11-26. Be brief.")))
    assert found.cause == UsualCause.DATE
    assert found.sentence == f"Message 1 changed. {UsualCause.DATE.sentence}"


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (TALK, with_text(NEXT, 1, content="When do I plant the lettuce?"), "message 2, content, character 20"),
        (TALK, with_text(NEXT, 0, role="developer"), "message 1, role"),
        (
            with_text(TALK, 2, reasoning_content="May or June?"),
            with_text(NEXT, 2, reasoning_content="May or later?"),
            "message 3, reasoning_content, character 7",
        ),
        (
            with_text(TALK, 2, tool_calls=[{"function": {"name": "look", "arguments": "{}"}}]),
            with_text(NEXT, 2, tool_calls=[{"function": {"name": "find", "arguments": "{}"}}]),
            "message 3, tool_calls, character 23",
        ),
        (NEXT, [SYSTEM, *NEXT[3:]], "message 2"),
        (TALK, NEXT, ""),
    ],
)
def test_the_place_of_the_first_difference(
    before: list[dict[str, Any]], after: list[dict[str, Any]], place: str
) -> None:
    assert change_between(prompt(before), prompt(after)).place == place


def test_the_place_in_tools() -> None:
    a, b = tool("read"), tool("write")
    found = change_between(prompt(TALK, tools=[a, b]), prompt(NEXT, tools=[a, tool("write", "else")]))
    assert found.place == f"tools[1], character {json.dumps(b).index('does it')}"


def test_what_marks_a_beginning_to_keep_is_no_part_of_the_prompt() -> None:
    keep = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "12 degrees"}
    asked = {"role": "user", "content": [{**result, **keep}]}
    later = {"role": "user", "content": [result]}
    before = prompt([SYSTEM, asked], tools=[tool("read") | keep])
    after = prompt([SYSTEM, later, {"role": "user", "content": [{"type": "text", "text": "And?", **keep}]}])
    assert change_between(before, replace(after, tools=before.tools)).change is Change.NOTHING
    assert change_between(before, prompt([SYSTEM, later], tools=[tool("read")])).change is Change.NOTHING


def test_reasoning_items_that_are_left_out_are_reasoning() -> None:
    asked = {"role": "user", "content": "Beans?"}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "May."}]}
    call = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
    before = prompt_of_json({"instructions": "Be kind.", "input": [asked, thought, call, output]})
    after = prompt_of_json({"instructions": "Be kind.", "input": [asked, call, output, asked]})
    other = prompt_of_json({"instructions": "Be kind.", "input": [asked, thought, call, {**output, "output": "rain"}]})
    assert before is not None
    assert after is not None
    assert other is not None
    assert (change_between(before, after).change, change_between(before, after).message) == (Change.THINKING, 3)
    assert change_between(before, other).place == "message 5, output, character 0"


def test_overlap_is_what_a_cache_could_have_and_what_it_loses() -> None:
    whole = overlap(prompt(TALK), prompt(NEXT))
    assert (whole.common, whole.again) == (sum(len(one["content"]) for one in TALK), 0)
    edited = overlap(prompt(TALK), prompt(with_text(NEXT, 1, content="When do I plant the lettuce?")))
    behind = sum(len(one["content"]) for one in TALK[2:])
    assert (edited.common, edited.again) == (len(SYSTEM["content"]) + len("When do I plant the "), behind + len("?"))
    assert edited.n == whole.n + len("lettuce") - len("beans")
    tools = overlap(prompt(TALK, tools=[tool("a"), tool("b")]), prompt(NEXT, tools=[tool("b"), tool("a")]))
    assert (tools.common, tools.n - tools.again) == (0, len("In March.Thank you."))
    new = overlap(prompt(TALK), prompt([{"role": "system", "content": "A title, please."}]))
    assert (new.common, new.again) == (0, 1), "the full stop at the end"


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
    assert [(part.role, part.text) for part in anthropic.parts] == [
        ("system", "Hello\nthere"),
        ("user", "Hello\nthere"),
    ]
    responses = prompt_of_json({"input": [{"role": "user", "content": "Hi"}], "tools": [{"name": "read"}, "odd"]})
    assert [name for name, _ in responses.tools] == ["read", ""]
    assert prompt_of_json({"messages": 3}) is None
    text = prompt_of_json({"prompt": "Once upon a time"})
    assert text.parts[0].text == "Once upon a time"


def test_what_is_nested_too_deeply_is_no_error() -> None:
    """JSON may be read a few levels deeper than it can be written."""
    for depth in range(850, 1000):
        deep = json_value("[" * depth + "]" * depth)
        for body in (
            {"messages": [{"role": deep, "content": [deep]}]},
            {"messages": [{"content": "Hi"}], "tools": [{"name": deep, "parameters": deep}]},
        ):
            assert prompt_of_json(body) is not None


def test_tokens_and_the_text_around_a_gap_are_no_messages() -> None:
    bodies: list[dict[str, Any]] = [
        *({"prompt": [1, 2]}, {"prompt": [1, "a"]}, {"messages": []}, {"input_prefix": "a", "prompt": "b"})
    ]
    assert [prompt_of_json(body) for body in bodies] == [None] * len(bodies)


def test_a_date_outside_the_system_prompt_is_not_said_to_be_in_it() -> None:
    asked = with_text(TALK, 3, content="And the peas?\nToday is 2026-06-05T08:16:28Z")
    found = change_between(
        prompt(asked), prompt(with_text(NEXT, 3, content="And the peas?\nToday is 2026-06-05T08:17:40Z"))
    )
    assert (found.change, found.usual) == (Change.EDITED, None)
    assert found.sentence.startswith("Message 4 (user) changed at character ")
    assert found.sentence.endswith("It contains the date or the time.")
