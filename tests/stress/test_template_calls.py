"""Every chat template of llama.cpp's `models/templates`: what it writes of calls is derived, read at every cut, and
allowed by the grammar. A grammar makes the embedded model write each form; the reader finds that call.

KVDESK_TEMPLATES names the folder; without it, it is looked for in `../shared` beside the project.
"""

import json
from typing import Any

import pytest

from kvdesk.backends.local.prompt import templates
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.call_format import GENERIC
from kvdesk.grammar.calls import grammar_of_calls
from kvdesk.grammar.state import checked
from kvdesk.tool_calls import CallReader
from tests.backends.local.plain_template import BOS, EOS
from tests.stress.test_templates import _FILES

pytestmark = pytest.mark.stress

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "more": {"type": "object", "properties": {"at": {"type": "array", "items": {"type": "number"}}}},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "description": "Write",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        },
    },
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_weather", {"city": "São Paulo", "days": 3, "more": {"at": [1, 2.5]}}),
    ("write_file", {"path": "a.py", "content": "def f():\n    return [1, {}]\n"}),
]
NO_TOOLS = ("DeepSeek-R1-Distill-Llama", "gemma-2", "rwkv", "Phi-3.5", "SmolLM3", "firefunction", "command-r-plus")
"""Families whose templates write no calls that can be derived: they get the generic form."""


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "PROBE_S", 60.0)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_calls_are_read_as_the_family_writes_them(file: Any) -> None:
    traits = ChatTemplate(file.read_text(encoding="utf-8"), BOS, EOS).traits
    form = traits.calls
    assert (form == GENERIC) <= (any(name in file.stem for name in NO_TOOLS) or "tool_call" in form.head)
    checked(grammar_of_calls(form, TOOLS))
    for calls in (CALLS[:1], CALLS[1:], CALLS if form.between is not None else CALLS[:1]):
        written = form.written(calls)
        for step in (1, 3, len(written)):
            reader = CallReader(form, TOOLS)
            for at in range(0, len(written), step):
                reader.add(written[at : at + step])
            reader.end()
            assert [(call.name, json.loads(call.arguments)) for call in reader.calls] == calls
            assert reader.said == ""
