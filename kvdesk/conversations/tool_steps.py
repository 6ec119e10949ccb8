"""What comes next in a branch whose answers call tools: the next call, another answer, or nothing. Pure functions.

Everything is read from the messages: an answer has its calls in `Message.fields`, and each is followed by the message
of its result. So a chat that was closed, forked, exported or imported in between goes on as any other.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from kvdesk.answer_reader import AnswerReader
from kvdesk.call_format import CallFormat
from kvdesk.loose_json import json_value, obj
from kvdesk.message import Message
from kvdesk.reasoning import parts_of
from kvdesk.settings import ToolBudget
from kvdesk.values import dataclass, replace

MOST_ALIKE: Final = 3
"""Equal calls for one question: the last of them is not run."""
SAME_CALL: Final = "The same call was made {n} times for this question. It is not run again: answer with what is known."
NO_BUDGET: Final = "Not run: the limit of {limit} for one question is used up. Answer with what is known."
"""What the model reads in the place of a result. English, as all that it reads."""
LIMITS: Final = {"calls": "calls", "tokens": "tokens of results", "seconds": "seconds of tools"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an answer: its id there, the tool's name and the JSON text of its arguments."""

    id: str
    name: str
    arguments: str

    @property
    def key(self) -> tuple[str, str]:
        """Equal for calls that ask the same."""
        return self.name, json.dumps(_value(self.arguments), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Spent:
    """What tools have cost for one question so far: calls, tokens of their results, seconds that they ran."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def over(self, budget: ToolBudget) -> str:
        """Which limit is used up: a key of `LIMITS`; "" while none is."""
        used = ((self.calls, budget.calls), (self.tokens, budget.tokens), (self.seconds, budget.seconds))
        return next((name for name, (n, most) in zip(LIMITS, used, strict=True) if n >= most), "")


def with_calls(answer: Message, form: CallFormat | None, tools: Sequence[Mapping[str, Any]]) -> Message:
    """The answer with the calls in its text, as chat templates know them; as it was if it has none."""
    if form is None or not tools:
        return answer
    reader = AnswerReader(tools)
    reader.begin(answer.marks, form, answer.text)
    reader.end()
    if not reader.calls:
        return answer
    calls = [
        {**one, "function": {**one["function"], "arguments": _value(one["function"]["arguments"])}}
        for one in reader.calls_as_json()
    ]
    return replace(answer, fields=json.dumps({"tool_calls": calls, "content": reader.said}, ensure_ascii=False))


def without_calls(answer: Message) -> str:
    """The beginning of an answer's text, up to its calls."""
    if not calls_of(answer):
        return answer.text
    said = str(json.loads(answer.fields).get("content", ""))
    if said and (at := answer.text.rfind(said)) >= 0:
        return answer.text[: at + len(said)]
    found = parts_of(answer.text, answer.marks)
    return answer.text[: found.said] if found is not None else ""


def calls_of(message: Message) -> tuple[Call, ...]:
    """Those of an answer; none of what is damaged."""
    if message.role != "assistant" or '"tool_calls"' not in message.fields:
        return ()
    return tuple(_calls(json.loads(message.fields).get("tool_calls")))


def _calls(found: object) -> Iterator[Call]:
    for one in found if isinstance(found, list) else ():
        function = obj(one).get("function")
        if isinstance(function, dict) and isinstance(name := function.get("name"), str):
            arguments = function.get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            yield Call(str(one.get("id", "")), name, text)


def result_fields(call: Call) -> str:
    """`Message.fields` of the result of a call."""
    return json.dumps({"tool_call_id": call.id, "name": call.name}, ensure_ascii=False)


def next_call(branch: Sequence[Message]) -> Call | None:
    """The first call at the end of the branch that no result follows; None if there is none."""
    results = list(takewhile(lambda message: message.role == "tool", reversed(branch)))
    asked = branch[-1 - len(results)] if len(results) < len(branch) else None
    calls = calls_of(asked) if asked is not None else ()
    return calls[len(results)] if len(results) < len(calls) else None


def spent(branch: Sequence[Message]) -> Spent:
    """Since the last question."""
    uses = [message.use for message in _since_question(branch) if message.use is not None]
    return Spent(len(uses), sum(use.n_tokens for use in uses), sum(use.ms for use in uses) / 1e3)


def refusal(branch: Sequence[Message], budget: ToolBudget, call: Call | None = None) -> str:
    """Why nothing is called any more for this question, as the model reads it; "" if something may be. `call`: the
    one that is next.
    """
    if limit := spent(branch).over(budget):
        return NO_BUDGET.format(limit=f"{getattr(budget, limit)} {LIMITS[limit]}")
    made = Counter(one.key for message in _since_question(branch) for one in calls_of(message))
    n = made[call.key] if call is not None else max(made.values(), default=0)
    return SAME_CALL.format(n=n) if n >= MOST_ALIKE else ""


def _since_question(branch: Sequence[Message]) -> list[Message]:
    return list(takewhile(lambda message: message.role != "user", reversed(branch)))


def _value(arguments: str) -> Any:
    """Arguments as the object that they are the text of: so templates know them."""
    return json_value(arguments or "{}", arguments)  # cut off: as the model wrote it
