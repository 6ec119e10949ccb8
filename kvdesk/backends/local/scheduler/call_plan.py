"""Plans the sampling of an answer that may or must call tools: the grammar of its calls, and when it applies."""

import json

from kvdesk.backends.local.llama.samplers.sampler import SamplingPlan, Trigger
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.errors import PromptError
from kvdesk.grammar.calls import grammar_of_calls
from kvdesk.grammar.state import checked
from kvdesk.protocol.chat import Generate
from kvdesk.translation import tr
from kvdesk.values import replace


def with_calls(plan: SamplingPlan, command: Generate, prompt: Prompt) -> SamplingPlan:
    """The plan with the grammar of the calls that the command allows; an existing grammar stays.

    Raises UserError if the parameters of a tool cannot be expressed.
    """
    choice, form, marks = command.choice, prompt.calls, prompt.marks
    if plan.grammar is not None:  # it describes the answer, not the reasoning before it
        is_open = marks is not None and marks.is_open
        return replace(plan, trigger=Trigger(marks.end, is_part=False)) if marks is not None and is_open else plan
    if choice is None or form is None:
        return plan
    tools = json.loads(command.tools)
    if choice.names:
        tools = [tool for tool in tools if tool["function"]["name"] in choice.names]
    if not tools:
        raise PromptError(tr("None of the tools that may be called were offered."))
    trigger = None
    if not choice.must:
        if not form.opening:
            return plan
        trigger = Trigger(form.opening, is_at_start=form.opening == "{", marks=marks)
    elif marks is not None and marks.is_open:
        trigger = Trigger(marks.end, is_part=False)
    grammar = checked(grammar_of_calls(form, tools, several=choice.several))
    return replace(plan, grammar=grammar, trigger=trigger)
