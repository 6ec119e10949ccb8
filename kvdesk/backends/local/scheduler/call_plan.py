"""Plans the sampling of an answer that may or must call tools: the grammar of its calls, and when it applies."""

import json
from functools import lru_cache

from kvdesk.backends.local.llama.samplers.sampler import SamplingPlan, Trigger
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.call_format import CallFormat
from kvdesk.errors import PromptError, UserError
from kvdesk.grammar.calls import grammar_of_calls
from kvdesk.grammar.gbnf import Grammar
from kvdesk.grammar.state import checked
from kvdesk.protocol.chat import Generate
from kvdesk.translation import tr
from kvdesk.values import replace


def with_calls(plan: SamplingPlan, command: Generate, prompt: Prompt) -> SamplingPlan:
    """The plan with the grammar of the calls that the command allows. An existing grammar stays; beside a JSON schema,
    an answer follows that or calls. If the tools are too many for one grammar, calls have none.

    Raises UserError if a tool has to be called, and none can be.
    """
    choice, form, marks = command.choice, prompt.calls, prompt.marks
    behind_reasoning = Trigger(marks.end, is_part=False) if marks is not None and marks.is_open else None
    schema = command.sampling.json_schema.strip()
    if plan.grammar is not None:
        plan = replace(plan, trigger=behind_reasoning)
    if choice is None or form is None or (plan.grammar is not None and not schema):
        return plan
    trigger = behind_reasoning
    if not choice.must and not schema:
        if not form.opening:
            return plan
        trigger = Trigger(form.opening, is_at_start=form.opening == "{", marks=marks)
    grammar = _grammar(form, command.tools, choice.names, choice.several, "" if choice.must else schema)
    if grammar is not None:
        return replace(plan, grammar=grammar, trigger=trigger)
    if choice.must:
        raise PromptError(tr("The tools that may be called are too many for one grammar."))
    return plan


@lru_cache(maxsize=8)
def _grammar(form: CallFormat, tools: str, names: tuple[str, ...], several: bool, schema: str) -> Grammar | None:
    """None if the tools are too many, which takes the longest to find out: an agent has the same in every request.
    Raises PromptError.
    """
    found = json.loads(tools)
    if names:
        found = [tool for tool in found if tool["function"]["name"] in names]
    if not found:
        raise PromptError(tr("None of the tools that may be called were offered."))
    try:
        return checked(grammar_of_calls(form, found, several=several, schema=schema))
    except (UserError, RecursionError):
        return None
