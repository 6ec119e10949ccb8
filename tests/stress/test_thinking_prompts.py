"""Prompts with thinking off, on, at each effort, with and without kept reasoning and tools, beside llama-server's for
the same messages (`/apply-template`): of each chat template of llama.cpp's `models/templates` that knows thinking.

KVDESK_LLAMA_SERVER=…/llama-server   where it is (`serving`)
KVDESK_TEMPLATES=DIR                 the templates; without it, they are looked for in `../shared` beside the project
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import pytest

from kvdesk.backends.local.prompt.template_traits import TemplateTraits
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.errors import TemplateError
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.thinking import EFFORTS, OFF, ON, Thinking, can_keep, levels_of
from tests.stress.serving import llama_server, needs_llama_server
from tests.stress.test_templates import _CALL, _CONTROLS, _FILES, _TOOLS

pytestmark = [pytest.mark.stress, pytest.mark.timeout(600), needs_llama_server]
THOUGHT, SAID = "They ask for something.", "Hello!"
_RESULT: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": "Weather in Paris?"},
    {"role": "assistant", "reasoning_content": THOUGHT, "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "content": "18 C", "tool_call_id": "abcdef123", "name": "get_weather"},
]
CONVERSATIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "question": [{"role": "user", "content": "Hi"}],
    "second": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "reasoning_content": THOUGHT, "content": SAID},
        {"role": "user", "content": "And now?"},
    ],
    "result": _RESULT,
    "after": [
        *_RESULT,
        {"role": "assistant", "reasoning_content": THOUGHT, "content": "18 degrees."},
        {"role": "user", "content": "And Rome?"},
    ],
}
OTHER_SWITCH: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "ByteDance-Seed-OSS": ({"thinking_budget": 0}, {}),
    "Cohere2MoE": ({"reasoning": False}, {"reasoning": True}),
    "Kimi-K3": ({"thinking": False}, {"thinking": True}),
    "MiniMax-M3": ({"thinking_mode": "disabled"}, {"thinking_mode": "enabled"}),
    "ibm-granite-granite-3.3-2B-Instruct": ({"thinking": False}, {"thinking": True}),
}
"""Templates whose switch llama-server's own does not reach: what it is asked by hand for off and on."""
OTHER_FORM: Final = {"Apertus-8B-Instruct": "blocks", "upstage-Solar-Open-100B": "reasoning"}
"""Templates that take reasoning in another form than llama-server hands it over: there it leaves earlier reasoning out,
and so does kvdesk's prompt for answers without reasoning.
"""
NOT_CUT: Final = ("deepseek-ai-DeepSeek-V3.1", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B")
"""Templates that cut reasoning out of an answer's text, but not behind a result of a tool. kvdesk hands them the text,
as transformers does; llama-server hands them what is said.
"""


@dataclass(frozen=True, slots=True)
class Both:
    """A template in both programs."""

    name: str
    source: str
    template: ChatTemplate
    http: httpx.Client


def knows_thinking(file: Path) -> bool:
    source = file.read_text(encoding="utf-8")
    return bool(levels_of(source)) or can_keep(source)


@pytest.fixture(scope="module", params=[file for file in _FILES if knows_thinking(file)], ids=lambda file: file.stem)
def both(request: pytest.FixtureRequest, talking_file: Path) -> Iterator[Both]:
    file: Path = request.param
    source = file.read_text(encoding="utf-8")
    with llama_server(talking_file, "-c", "512", "-np", "1", "--no-warmup", "--chat-template-file", str(file)) as http:
        props = http.get("/props").json()
        bos, eos = props["bos_token"], props["eos_token"]
        controls = frozenset({*_CONTROLS.findall(source), bos, eos})
        yield Both(file.stem, source, ChatTemplate(source, bos, eos, controls), http)


def theirs(both: Both, messages: Sequence[Mapping[str, Any]], tools: bool, thinking: Thinking) -> str | None:
    """The prompt of llama-server; None if it refuses."""
    kept = {"preserve_reasoning": thinking.keep} | ({"preserved_thinking": True} if thinking.keep else {})
    body: dict[str, Any] = {"messages": messages, "chat_template_kwargs": kept}
    if tools:
        body["tools"] = _TOOLS
    if thinking.level in EFFORTS:
        body["reasoning_effort"] = thinking.level
    elif thinking.level:
        other = OTHER_SWITCH.get(both.name, ({}, {}))[thinking.level == ON]
        body["chat_template_kwargs"] |= {"enable_thinking": thinking.level == ON, **other}
    answer = both.http.post("/apply-template", json=body)
    return str(answer.json()["prompt"]) if answer.status_code == 200 else None


def ours(both: Both, messages: Sequence[Mapping[str, Any]], tools: bool, thinking: Thinking) -> str | None:
    """kvdesk's prompt, of answers as the model wrote them; None if it refuses."""
    traits = both.template.traits
    given = [
        Message(
            MessageId(str(i)),
            ConversationId("c"),
            None,
            one["role"],
            written(traits, one) if one["role"] == "assistant" else one["content"],
            fields=fields_of(one),
        )
        for i, one in enumerate(messages)
    ]
    try:
        found = both.template.rendering(given, True, json.dumps(_TOOLS) if tools else "", thinking.variables)
    except TemplateError:
        return None
    return found.text


def written(traits: TemplateTraits, answer: Mapping[str, Any]) -> str:
    """The text of an answer as the family writes it."""
    marks, said = traits.marks, answer["content"]
    if marks is None or traits.form in OTHER_FORM.values():
        return str(said)
    thought = f"{'' if marks.is_open else marks.start}{answer['reasoning_content']}{marks.end}"
    return f"{thought}{marks.answer}{said}{marks.after}" if said else thought


def fields_of(message: Mapping[str, Any]) -> str:
    fields = {k: v for k, v in message.items() if k not in ("role", "content", "reasoning_content")}
    if "tool_calls" in fields:
        fields["content"] = message["content"]
    return json.dumps(fields) if fields else ""


@pytest.mark.parametrize("tools", [False, True], ids=["", "tools"])
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_it_writes_what_llama_server_writes(both: Both, conversation: str, tools: bool) -> None:
    messages, traits = CONVERSATIONS[conversation], both.template.traits
    if (tools and not traits.takes_tools) or ("tool_calls" in str(messages) and not traits.writes_calls):
        pytest.skip("kvdesk writes the tools or calls that the template leaves out")
    if conversation == "after" and both.name in NOT_CUT:
        pytest.skip("llama-server cuts what the template leaves")
    keeps = (False, True) if can_keep(both.source) else (False,)
    for level, keep in product(levels_of(both.source)[1:] or ("",), keeps):
        thinking = Thinking(level, keep)
        found, wanted = ours(both, messages, tools, thinking), theirs(both, messages, tools, thinking)
        if found != wanted:
            pytest.fail(f"{thinking}:\n{difference(found, wanted)}")


def difference(found: str | None, wanted: str | None) -> str:
    if found is None or wanted is None:
        return f"{'kvdesk' if found is None else 'llama-server'} refuses"
    theirs, ours = (re.split(r"(?=<)|(?<=\n)", text) for text in (wanted, found))
    return "\n".join(map(repr, difflib.unified_diff(theirs, ours, "llama-server", "kvdesk", n=2)))


@pytest.mark.parametrize("name", ["off", "on", *EFFORTS])
def test_each_choice_makes_another_prompt(both: Both, name: str) -> None:
    """A budget of tokens is no part of the prompt, but for the template that names it to the model."""
    levels = levels_of(both.source)[1:]
    if name not in levels:
        pytest.skip("the template does not know it")
    question = CONVERSATIONS["question"]
    prompts = {level: ours(both, question, False, Thinking(level)) for level in levels}
    assert [level for level in levels if prompts[level] == prompts[name]] == [name]
    limited = ours(both, question, False, Thinking(name, budget=512))
    assert (limited == prompts[name]) == (both.name != "ByteDance-Seed-OSS" or name == OFF)
