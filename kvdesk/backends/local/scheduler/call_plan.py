"""Plans the sampling of an answer that may or must call tools: the grammar of its calls, and when it applies."""

import json

from kvdesk.backends.local.llama.samplers.sampler import SamplingPlan, Trigger
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.errors import PromptError, UserError
from kvdesk.grammar.calls import grammar_of_calls
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
    tools = json.loads(command.tools)
    if choice.names:
        tools = [tool for tool in tools if tool["function"]["name"] in choice.names]
    if not tools:
        raise PromptError(tr("None of the tools that may be called were offered."))
    trigger = behind_reasoning
    if not choice.must and not schema:
        if not form.opening:
            return plan
        trigger = Trigger(form.opening, is_at_start=form.opening == "{", marks=marks)
    schema = "" if choice.must else schema
    try:
        grammar = checked(grammar_of_calls(form, tools, several=choice.several, schema=schema))
    except (UserError, RecursionError) as error:
        if choice.must:
            raise PromptError(tr("The tools that may be called are too many for one grammar.")) from error
        return plan
    return replace(plan, grammar=grammar, trigger=trigger)
