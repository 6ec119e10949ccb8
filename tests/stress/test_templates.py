"""Every chat template of llama.cpp's `models/templates`, through two turns, against an independent rendering.

KVDESK_TEMPLATES names the folder; without it, it is looked for in `../shared` beside the project.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.prompt.template_traits import BLOCKS, TemplateTraits, answer_in_form
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.errors import TemplateError
from kvdesk.message import ConversationId, Message, MessageId
from tests.backends.local.plain_template import BOS, EOS, rendered
from tests.ui.markdown.whole import split_segments

pytestmark = pytest.mark.stress

_CONTROLS = re.compile(
    r"<\|[^|<>\s]{1,40}\|>|<[|｜][^<>\s]{1,40}[|｜]>|<\|[a-z_]+>|<[a-z_]+\|>|\[/?[A-Z_]{3,}\]|</?s>"
    r"|<start_of_turn>|<end_of_turn>|<eos>|<bos>|</?think>|</?tool_call>"
)
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
_CALL = {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
_THOUGHT, _SAID = "They ask for something.", "Hello!"
_REASONING = {  # families whose marks a template has, by the names of its files; all others show none
    "<|inner_prefix|>": "Apertus",
    "Here are my reasoning steps:": "Apriel-1.6",
    "<seed:think>": "Seed-OSS",
    "<|START_THINKING|>": "Cohere2MoE|r7b",
    "<|open|>think<|sep|>": "Kimi-K3",
    "<mm:think>": "MiniMax-M3",
    "<|channel>thought": "gemma-4",
    "[THINK]": "Ministral-3",
    "to=self<|message|>": "muse",
    "<|channel|>analysis<|message|>": "gpt-oss",
    "<think:opensource>": "Hy3",
    "<|think|>": "Solar",
    "<think>": (
        "Bielik|GLM|K2-Thinking|LFM2.5-8B|MiniMax-M2|Nemotron|QwQ|Qwen3-0.6B|Qwen3.5|Reka|Spark|StepFun|DeepSeek"
        "|deepseek|ling|rwkv|MiniCPM5|Laguna"
    ),
}


def _folder() -> Path | None:
    given = os.environ.get("KVDESK_TEMPLATES")
    beside = Path(__file__).parents[3] / "shared"
    places = [Path(given)] if given else sorted(beside.glob("**/models/templates")) if beside.is_dir() else []
    return next((place for place in places if place.is_dir()), None)


_FOLDER = _folder()
_FILES = sorted(_FOLDER.glob("*.jinja")) if _FOLDER is not None else []


def _template(file: Path) -> tuple[str, ChatTemplate]:
    source = file.read_text(encoding="utf-8")
    return source, ChatTemplate(source, BOS, EOS, frozenset({*_CONTROLS.findall(source), BOS, EOS}))


def _written(traits: TemplateTraits) -> str:
    """An answer with reasoning as the family writes it; one without if none was found."""
    marks = traits.marks
    if marks is None:
        return _SAID
    return f"{'' if marks.is_open else marks.start}{_THOUGHT}{marks.end}{marks.answer}{_SAID}{marks.after}"


def _apart(traits: TemplateTraits, **more: object) -> dict[str, Any]:
    """The same answer as its template is given it."""
    if not traits.form:
        return {"role": "assistant", "content": _written(traits), **more}
    return {"role": "assistant", **answer_in_form(traits.form, _THOUGHT, _SAID), **more}


def _check(
    source: str, template: ChatTemplate, given: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]],
    tools: object = None,
) -> None:  # fmt: skip
    """The rendering is the independent one, or both refuse. Without system prompts they are in a question. A template
    that does not describe tools, leaves calls out or takes results elsewhere has help: nothing of those is missing.
    """
    messages = [
        Message(
            MessageId(str(i)),
            ConversationId("c"),
            None,
            one["role"],
            one["content"],
            fields=json.dumps({k: v for k, v in one.items() if k not in ("role", "content")}) if len(one) > 2 else "",
        )
        for i, one in enumerate(given)
    ]
    right = rendered(source, wanted, tools)
    try:
        found = template.rendering(messages, True, json.dumps(tools) if tools else "")
    except TemplateError:  # two templates know no results of tools, and leave them out of the prompt
        assert right is None or given[-1]["content"] not in right
        return
    traits = template.traits
    if tools and (traits.takes_results or not (traits.takes_tools and traits.writes_calls)):
        assert all(text in found.text for text in ("get_weather", "Paris", given[0]["content"], given[-1]["content"]))
    elif not found.system_folded and right is not None:  # llama.cpp's own template maps tools to no list
        assert found.text == right
    assert given[-1]["content"] in found.text


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
class TestTemplate:
    def test_its_marks_are_found(self, file: Path) -> None:
        traits = _template(file)[1].traits
        wanted = next((start for start, names in _REASONING.items() if re.search(names, file.stem)), None)
        assert not traits.is_unknown
        assert (traits.marks.start if traits.marks is not None else None) == wanted

    def test_its_reasoning_is_told_from_its_answer(self, file: Path) -> None:
        traits = _template(file)[1].traits
        kinds = [(segment.kind, segment.text) for segment in split_segments(_written(traits), traits.marks)]
        assert kinds == ([("think", _THOUGHT)] if traits.marks is not None else []) + [("prose", _SAID)]

    @pytest.mark.parametrize("system", [False, True])
    def test_a_second_turn(self, file: Path, system: bool) -> None:
        source, template = _template(file)
        before = [{"role": "system", "content": "Be brief."}] if system else []
        question, following = {"role": "user", "content": "Hi there"}, {"role": "user", "content": "And now?"}
        for said, apart in (
            ({"role": "assistant", "content": _SAID}, {"role": "assistant", "content": _SAID}),
            ({"role": "assistant", "content": _written(template.traits)}, _apart(template.traits)),
        ):
            _check(source, template, [*before, question, said, following], [*before, question, apart, following])

    @pytest.mark.parametrize("thinks", [False, True])
    def test_a_call_and_the_turn_after_it(self, file: Path, thinks: bool) -> None:
        source, template = _template(file)
        result = {"role": "tool", "content": "18 C", "tool_call_id": "abcdef123", "name": "get_weather"}
        rest = [{"role": "assistant", "content": "18 degrees."}, {"role": "user", "content": "And Rome?"}]
        calling: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
        if thinks:
            calling["content"] = _written(template.traits)
        apart = _apart(template.traits, tool_calls=[_CALL]) if thinks else calling
        answers = list(rest)
        if thinks and template.traits.form == BLOCKS:
            answers[0] = {"role": "assistant", **answer_in_form(BLOCKS, "", "18 degrees.")}
        question = {"role": "user", "content": "Weather in Paris?"}
        for n in (0, 2):
            given, wanted = [question, calling, result, *rest[:n]], [question, apart, result, *answers[:n]]
            _check(source, template, given, wanted, _TOOLS)
