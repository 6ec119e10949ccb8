"""What a client changed is named with its message and place, in both protocols: made cases, through a `Reporter`."""

import json
from typing import Any

import pytest

from kvdesk.cache.reuse.prompt_change import Change
from kvdesk.cache.reuse.score import NOT_KEPT
from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.proxy.exchange import Exchange, Usage
from kvdesk.proxy.report import Finding, Reporter

CHAT, MESSAGES, RESPONSES, COMPLETION = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/completion"
SYSTEM = "You are a careful assistant for a large garden in the north, and answer in one short sentence. " * 4
Json = dict[str, Any]


def said(role: str, content: Any, **more: Any) -> Json:
    return {"role": role, "content": content, **more}


def tool(name: str, what: str) -> Json:
    return {"type": "function", "function": {"name": name, "description": what, "parameters": {"type": "object"}}}


def call(name: str, arguments: str, identity: str = "c1") -> Json:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


ASKED = said("user", "When do I plant the beans, and when the peas that I like more?")
ANSWERED = said("assistant", "Plant the beans in the middle of May, and the peas in March.")
THEN = said("user", "And which of them needs more water in a dry summer?")
ANSWERED_THEN = said("assistant", "The beans need more, above all while they bloom.")
TALK = [said("system", SYSTEM), ASKED, ANSWERED, THEN]
EVENING = said("user", "Good night.")
NEXT = [*TALK, ANSWERED_THEN, said("user", "Thank you.")]
LOOK, FIND = tool("look", "Looks at a place of the garden."), tool("find", "Finds a plant by its name.")
BLOCK = {"type": "tool_use", "id": "t1", "name": "look", "input": {"place": "pond"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "Frogs, and much reed."}


def chat(messages: list[Json], **more: Any) -> Json:
    return {"model": "m", "messages": messages, **more}


def anthropic(messages: list[Json], system: Any = SYSTEM, **more: Any) -> Json:
    return {"model": "m", "max_tokens": 9, "system": system, "messages": messages, **more}


def with_part(at: int, **fields: Any) -> list[Json]:
    return [{**one, **fields} if i == at else one for i, one in enumerate(NEXT)]


ATTRIBUTION = "x-anthropic-billing-header: cc_version=2.1; cch={};"
ITEMS = [
    said("user", "Look at the pond and say what you see."),
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I look first."}]},
    {"type": "function_call", "name": "look", "arguments": '{"place": "pond"}', "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": "Frogs, and much reed."},
]

CASES: list[tuple[str, str, Json, Json, str, str]] = [
    ("a message edited", CHAT, chat(TALK), chat(with_part(1, content=ASKED["content"].replace("beans", "lettuce"))),
     Change.EDITED, "message 2, content, character 20"),
    ("a date in the system prompt", CHAT, chat([said("system", f"Today is 2026-11-25. {SYSTEM}"), *TALK[1:]]),
     chat([said("system", f"Today is 2026-11-26. {SYSTEM}"), *NEXT[1:]]),
     UsualCause.DATE, "message 1, content, character 18"),
    ("the time in the system prompt", MESSAGES, anthropic(TALK[1:], f"It is 14:03. {SYSTEM}"),
     anthropic(NEXT[1:], f"It is 14:05. {SYSTEM}"), UsualCause.DATE, "message 1, content, character 10"),
    ("an identifier in the system prompt", CHAT, chat([said("system", f"session-id: 8f14e45f {SYSTEM}"), *TALK[1:]]),
     chat([said("system", f"session-id: 45c48cce {SYSTEM}"), *NEXT[1:]]),
     UsualCause.IDENTIFIER, "message 1, content, character 12"),
    ("an attribution header", MESSAGES,
     anthropic(TALK[1:], [{"type": "text", "text": ATTRIBUTION.format("1f2e3")}, {"type": "text", "text": SYSTEM}]),
     anthropic(NEXT[1:], [{"type": "text", "text": ATTRIBUTION.format("9a8b7")}, {"type": "text", "text": SYSTEM}]),
     UsualCause.ATTRIBUTION, "message 1, content, character 48"),
    ("tools reordered", CHAT, chat(TALK, tools=[LOOK, FIND]), chat(NEXT, tools=[FIND, LOOK]),
     Change.TOOLS_REORDERED, "tools[0], character 43"),
    ("a tool gone", MESSAGES, anthropic(TALK[1:], tools=[{"name": "look"}, {"name": "find"}]),
     anthropic(NEXT[1:], tools=[{"name": "look"}]), Change.TOOLS_GONE, "tools[1], character 0"),
    ("a tool changed", RESPONSES, {"instructions": SYSTEM, "input": ITEMS, "tools": [{"name": "look", "strict": True}]},
     {"instructions": SYSTEM, "input": [*ITEMS, ANSWERED], "tools": [{"name": "look", "strict": False}]},
     Change.TOOLS_CHANGED, "tools[0], character 27"),
    ("a role changed", CHAT, chat(TALK), chat(with_part(0, role="developer")), Change.ROLE_CHANGED, "message 1, role"),
    ("a message dropped", CHAT, chat(NEXT), chat([*NEXT[:2], *NEXT[3:], EVENING]), Change.DROPPED, "message 3"),
    ("the front cut", MESSAGES, anthropic(NEXT[1:]), anthropic([*NEXT[3:], EVENING]), Change.FRONT_CUT, "message 2"),
    ("a message inserted", CHAT, chat(TALK), chat([*NEXT[:2], said("user", "I live by the sea."), *NEXT[2:]]),
     Change.INSERTED, "message 3"),
    ("messages in another order", CHAT, chat(NEXT), chat([NEXT[0], NEXT[3], NEXT[2], NEXT[1], *NEXT[4:]]),
     Change.BLOCK_MOVED, "message 2, content, character 0"),
    ("thinking removed from content", CHAT,
     chat([*TALK[:2], said("assistant", f"<think>May or June?</think>{ANSWERED['content']}"), THEN]), chat(NEXT),
     Change.THINKING, "message 3, content, character 0"),
    ("reasoning_content removed", CHAT, chat([*TALK[:2], {**ANSWERED, "reasoning_content": "May or June?"}, THEN]),
     chat(NEXT), Change.THINKING, "message 3, content, character 0"),
    ("thinking blocks removed", MESSAGES,
     anthropic([ASKED, said("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, BLOCK]),
                said("user", [RESULT])]),
     anthropic([ASKED, said("assistant", [BLOCK]), said("user", [RESULT]), ANSWERED, THEN]),
     Change.THINKING, "message 3, content, character 0"),
    ("a reasoning item removed", RESPONSES, {"instructions": SYSTEM, "input": ITEMS},
     {"instructions": SYSTEM, "input": [ITEMS[0], *ITEMS[2:], ANSWERED]}, Change.THINKING, "message 3"),
    ("the result of a tool edited", MESSAGES,
     anthropic([ASKED, said("assistant", [BLOCK]), said("user", [RESULT]), ANSWERED, THEN]),
     anthropic([ASKED, said("assistant", [BLOCK]), said("user", [{**RESULT, "content": "(cleared)"}]),
                ANSWERED, THEN, ANSWERED_THEN, ASKED]),
     Change.EDITED, "message 4, content, character 57"),
    ("the output of a call edited", RESPONSES, {"instructions": SYSTEM, "input": [*ITEMS, ANSWERED, THEN]},
     {"instructions": SYSTEM, "input": [*ITEMS[:3], {**ITEMS[3], "output": "…"}, ANSWERED, THEN, ANSWERED_THEN]},
     Change.EDITED, "message 5, output, character 0"),
    ("calls with other ids", CHAT,
     chat([*TALK[:2], said("assistant", None, tool_calls=[call("look", "{}", "c1")]), THEN]),
     chat([*TALK[:2], said("assistant", None, tool_calls=[call("look", "{}", "z9")]), THEN, ANSWERED, ASKED]),
     UsualCause.CALL_IDS, "message 3, tool_calls, character 8"),
    ("arguments in another order", CHAT,
     chat([*TALK[:2], said("assistant", None, tool_calls=[call("look", '{"x": 1, "y": 2}')]), THEN]),
     chat([*TALK[:2], said("assistant", None, tool_calls=[call("look", '{"y": 2, "x": 1}')]), THEN, ANSWERED]),
     UsualCause.FIELD_ORDER, ""),
    ("a text behind a rendered prompt", COMPLETION, {"prompt": f"<|im_start|>system\n{SYSTEM}Be brief.<|im_end|>\n"},
     {"prompt": f"<|im_start|>system\n{SYSTEM}Be long.<|im_end|>\n<|im_start|>user\nHi"}, Change.EDITED,
     "message 1, content, character 383"),
    ("a conversation compacted", MESSAGES,
     anthropic([said(("user", "assistant")[i % 2], f"Question or answer {i}. " * 20) for i in range(8)]),
     anthropic([said("user", "So far we spoke of beans.")]), Change.COMPACTED, "message 2"),
    ("nothing changed", CHAT, chat(TALK), chat(NEXT), Change.NOTHING, ""),
    ("marks of what is kept moved", MESSAGES,
     anthropic([said("user", [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}])]),
     anthropic([said("user", [{"type": "text", "text": "Hi"}]), ANSWERED, THEN]), Change.NOTHING, ""),
]  # fmt: skip


def exchange(path: str, body: Json, usage: Usage | None = None, **more: Any) -> Exchange:
    fields = {"status": 200, "is_stream": True, "first_byte_s": 2.0, "ended": True} | more
    return Exchange(path, b"client", json.dumps(body).encode(), usage=usage or Usage(), **fields)


def explained(*exchanges: Exchange) -> list[Finding]:
    reporter = Reporter()
    return [reporter.explain(one) for one in exchanges]


@pytest.mark.parametrize(
    ("path", "before", "after", "cause", "place"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_change_is_named(path: str, before: Json, after: Json, cause: str, place: str) -> None:
    _, found = explained(exchange(path, before), exchange(path, after))
    assert not found.comparison.is_first
    change = found.comparison.change
    assert change.cause == cause
    assert change.place.startswith(place)
    assert (change.place == "") == (cause == Change.NOTHING)
    assert change.sentence in found.line


def test_the_servers_own_numbers_count() -> None:
    first, found = explained(
        exchange(CHAT, chat([said("system", f"It is 14:03. {SYSTEM}"), ASKED]), Usage(120, 0)),
        exchange(CHAT, chat([said("system", f"It is 14:04. {SYSTEM}"), ASKED]), Usage(120, 8, 5, 56.0)),
    )
    assert "It continues no earlier request." in first.line
    assert first.stats.miss == ""
    stats = found.stats
    assert (stats.prompt_tokens, stats.reused_tokens, stats.prefilled_tokens) == (120, 8, 112)
    assert stats.miss == UsualCause.DATE
    assert 100 < stats.reread_tokens <= 112
    assert found.seconds == pytest.approx(stats.reread_tokens / 56)
    assert not found.is_estimated
    assert found.as_json()["field"] == "content"


def test_without_numbers_tokens_are_estimated_and_that_is_said() -> None:
    reporter = Reporter()
    reporter.explain(exchange(CHAT, chat(TALK)))
    found = reporter.explain(exchange(CHAT, chat(NEXT)))
    n_chars = sum(len(one["content"]) for one in NEXT)
    assert found.stats.prompt_tokens == round(n_chars / 4)
    assert "could be reused" in found.line
    assert reporter.score.misses == {}
    assert "estimated" in reporter.lines[-1]


def test_a_prompt_that_goes_on_and_is_read_again_was_not_kept() -> None:
    first, found = explained(exchange(CHAT, chat(TALK), Usage(160, 0)), exchange(CHAT, chat(NEXT), Usage(190, 0)))
    assert (first.stats.miss, found.stats.miss) == ("", NOT_KEPT)
    assert 140 < found.stats.reread_tokens <= 172
    assert found.seconds > 0


@pytest.mark.parametrize(("cached", "miss"), [(0, Change.SETTINGS), (158, "")])
def test_other_template_arguments_are_named_where_the_prompt_was_read_again(cached: int, miss: str) -> None:
    _, found = explained(
        exchange(CHAT, chat(TALK, chat_template_kwargs={"enable_thinking": True}), Usage(160, 0)),
        exchange(CHAT, chat(NEXT, chat_template_kwargs={"enable_thinking": False}), Usage(190, cached)),
    )
    assert found.stats.miss == miss
    assert ("The client changed chat_template_kwargs" in found.line) == bool(miss)
    assert ("It continues an earlier request." in found.line) != bool(miss)


def test_a_score_of_all_comes_at_the_end() -> None:
    reporter = Reporter()
    assert reporter.lines == ["No request came."]
    for minute in range(3):
        body = chat([said("system", f"It is 14:0{minute}. {SYSTEM}"), ASKED])
        reporter.explain(exchange(CHAT, body, Usage(120, 0, 5, 100.0)))
    reporter.explain(exchange(CHAT, chat(TALK), status=500))
    assert reporter.lines[0] == "0 % reused; 2 misses: date or time in the system prompt (2)"
    assert reporter.lines[1] == "  360 prompt tokens in 3 requests, 0 reused"


def test_what_failed_is_not_what_the_next_request_follows() -> None:
    _, found = explained(exchange(CHAT, chat(TALK), status=400), exchange(CHAT, chat(NEXT)))
    assert found.comparison.is_first


def test_a_conversation_is_found_among_others_of_its_client() -> None:
    title = chat([said("system", "Give this a name."), said("user", "Beans")])
    *_, found = explained(exchange(CHAT, chat(TALK)), exchange(CHAT, title), exchange(CHAT, chat(NEXT)))
    assert (found.comparison.is_first, found.comparison.change.change) == (False, Change.NOTHING)


def test_conversations_that_name_themselves_are_not_compared_with_each_other() -> None:
    one, two = (chat(TALK, prompt_cache_key=name) for name in ("one", "two"))
    *_, found = explained(exchange(CHAT, one), exchange(CHAT, two))
    assert found.comparison.is_first


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"input": "x", "previous_response_id": "r"}', b'{"messages": 3}'])
def test_what_cannot_be_compared_is_said(body: bytes) -> None:
    (found,) = explained(Exchange(CHAT, b"client", body, status=200, ended=True))
    assert found.comparison is None
    assert "cannot be compared" in found.line


def test_ollamas_own_protocol_is_compared() -> None:
    _, found = explained(exchange("/api/chat", chat(TALK), Usage(160)), exchange("/api/chat", chat(NEXT), Usage(190)))
    assert (found.comparison.is_first, found.comparison.change.change) == (False, Change.NOTHING)
    assert "190" in found.line
    before, after = ({"model": "m", "system": SYSTEM, "prompt": f"It is {n}. Beans?"} for n in ("14:03", "14:04"))
    _, found = explained(exchange("/api/generate", before), exchange("/api/generate", after))
    assert found.comparison.change.message == 2


def test_what_is_nested_too_deeply_ends_no_report() -> None:
    for depth in range(850, 1000):
        deep = "[" * depth + "]" * depth
        message = f'{{"role": {deep}, "content": [{deep}]}}'
        body = f'{{"model": {deep}, "messages": [{message}], "tools": [{{"name": {deep}}}]}}'
        (found,) = explained(Exchange(CHAT, b"client", body.encode(), status=200, ended=True))
        assert found.line


def test_a_line_has_no_signs_that_a_terminal_acts_on() -> None:
    bad = [said("system", SYSTEM), said("user", "\x1b[2J\x1b]0;owned\x07 once upon a time in a garden"), ANSWERED]
    good = [bad[0], said("user", "another text, once upon a time in a garden"), ANSWERED]
    _, found = explained(exchange(CHAT, chat(bad)), exchange(CHAT, chat(good)))
    assert "owned" in found.line
    assert found.line.isprintable()
