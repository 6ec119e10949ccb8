"""The grammar of an answer that may call: which one it is, and from where it applies."""

import json
from typing import Any

import pytest

from kvdesk.backends.local.llama.samplers.sampler import SamplingPlan, Trigger
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.backends.local.scheduler.call_plan import with_calls
from kvdesk.call_format import GENERIC
from kvdesk.errors import PromptError
from kvdesk.grammar import gbnf
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.grammar.state import checked
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.chat import Generate, ToolChoice
from kvdesk.reasoning import ReasoningMarks
from kvdesk.settings import Sampling

OPEN = ReasoningMarks("<think>", "</think>", is_open=True)
LEGS = '{"type": "object", "properties": {"legs": {"enum": [2, 4]}}}'


def planned(
    choice: ToolChoice | None, *, schema: str = "", marks: ReasoningMarks | None = None, name: str = "look"
) -> SamplingPlan:
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}]
    sampling = Sampling(json_schema=schema)
    command = Generate(ConversationId("c"), MessageId("a"), (), sampling, tools=json.dumps(tools), choice=choice)
    plan = SamplingPlan(sampling, grammar=checked(gbnf_of(schema)) if schema else None)
    return with_calls(plan, command, Prompt([], (), marks=marks, calls=GENERIC))


def test_beside_a_schema_an_answer_follows_it_or_calls_from_its_beginning() -> None:
    plan = planned(ToolChoice(), schema=LEGS)
    assert plan.trigger is None
    assert "legs" in plan.grammar.text
    assert "look" in plan.grammar.text
    must = planned(ToolChoice(must=True), schema=LEGS).grammar
    assert "legs" not in must.text
    none = planned(None, schema=LEGS).grammar
    assert "look" not in none.text


@pytest.mark.parametrize("choice", [None, ToolChoice(), ToolChoice(must=True)])
def test_reasoning_comes_before_a_schema(choice: ToolChoice | None) -> None:
    assert planned(choice, schema=LEGS, marks=OPEN).trigger == Trigger("</think>", is_part=False)


def test_calls_have_no_grammar_if_there_are_too_many_tools_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gbnf, "MOST_RULES", 5)
    assert planned(ToolChoice(), name="many").grammar is None
    with pytest.raises(PromptError, match="too many"):
        planned(ToolChoice(must=True), name="many")
