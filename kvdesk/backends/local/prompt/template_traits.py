"""The family of a chat template: the marks around reasoning, and how the reasoning of an answer is passed to it.

Found by rendering conversations that differ in one thing and comparing: an answer with and without reasoning, with and
without a call, a prompt with and without the beginning of the next answer. Marks that a template searches for in the
text of an answer cannot be found like that, so those of `KNOWN` and pairs whose end is in the source are tried. Knows
nothing of Jinja2 and tokens.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.call_format import GENERIC, CallFormat
from kvdesk.reasoning import MARK, ReasoningMarks
from kvdesk.values import dataclass, replace

Render = Callable[[Sequence[Mapping[str, Any]], bool, Sequence[Mapping[str, Any]] | None, Mapping[str, Any]], str]
"""Renders messages as templates get them, whether the next answer begins, tools, and further variables. May raise
anything."""

FIELDS: Final = ("reasoning_content", "reasoning", "thinking", "thought")
PARTS, BLOCKS = "parts", "blocks"
"""Forms in which reasoning is part of the content: a list of typed parts (Ministral), an object of typed blocks
(Apertus)."""
KNOWN: Final = (
    ReasoningMarks("<think>", "</think>"),
    ReasoningMarks("<think>", "</think>", "<response>"),
    ReasoningMarks("[THINK]", "[/THINK]"),
    ReasoningMarks("◁think▷", "◁/think▷"),
    ReasoningMarks("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>"),
)
"""Tried in the text of an answer if a template has no field or part for reasoning."""
_MOST_PAIRS: Final = 12
"""Pairs from the source that are tried."""

QUESTION, SAID = "Qquestionq", "Ssaids"
"""The question and the answer of a probe."""
_THOUGHT, _NEXT = "Tthoughtt", "Nnextn"
_A_MARK: Final = f"(?:{MARK.pattern})"
_A_WORD: Final = r"[^<>\[\]◁▷\s]{1,40}"
_CLOSE: Final = re.compile(rf"\s*({_A_MARK}(?:{_A_WORD}{_A_MARK})?)")
_LAST: Final = re.compile(rf"(?:(?:{_A_MARK}{_A_WORD})?{_A_MARK}|(?<=[>\]▷])[^<>\[\]◁▷]+)\Z")
_PAIR: Final = re.compile(r"([<\[◁]([^<>\[\]◁▷/\s]{1,40})[>\]▷])\s*([<\[◁]/\2[>\]▷])\s*\Z")
_END_OF_PAIR: Final = re.compile(r"([<\[◁])/((?!tool|func|call)[^<>\[\]◁▷{}'\"\s]{1,40})([>\]▷])", re.IGNORECASE)
_AS_DATA: Final = re.compile(r"['\"](?:type|blocks)['\"][^\n]{0,60}\Z")  # the form itself, written out
_USUAL: Final[Mapping[str, Any]] = {}
_THINKING: Final[Mapping[str, Any]] = {"enable_thinking": True, "thinking": True}
_LONGEST_MARK: Final = 100  # characters; longer text is a sentence
_CALL: Final = {"id": "abcdef123", "type": "function", "function": {"name": "look", "arguments": {"at": "x"}}}
_RESULT: Final = {"role": "tool", "content": "seen", "tool_call_id": "abcdef123", "name": "look"}
_TOOLS: Final = (
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
        },
    },
)


@dataclass(frozen=True, slots=True)
class TemplateTraits:
    """`marks`: around reasoning, None if none were found. `form`: one of `FIELDS`, `PARTS` or `BLOCKS`: how the
    template takes the reasoning of an earlier answer; "" if that stays in the text.

    `is_unknown`: the template takes reasoning, but its marks could not be found. `calls`: how the family calls tools.
    `takes_tools`: the template describes tools to the model. `writes_calls`: it writes the calls of earlier answers.
    `takes_results`: it takes results in the message of their calls, and writes separate results like any other message
    (Gemma 4's first templates).
    """

    marks: ReasoningMarks | None = None
    form: str = ""
    is_unknown: bool = False
    calls: CallFormat = GENERIC
    takes_tools: bool = False
    writes_calls: bool = False
    takes_results: bool = False


def traits_of(render: Render, source: str) -> TemplateTraits:
    """The traits of the template that `render` renders with."""
    forms = [form for form in (*FIELDS, PARTS, BLOCKS) if _takes(render, form)]
    for form in forms:
        if (marks := _marks_of(render, form)) is not None:
            return TemplateTraits(marks, form)
    if forms:
        return TemplateTraits(is_unknown=True)
    in_text = _marks_in_text(render, source)
    if in_text is None and (marks := _marks_of_nothing(render)) is not None:
        return TemplateTraits(marks, FIELDS[0])
    return TemplateTraits(in_text)


def answer_in_form(form: str, thought: str, said: str) -> dict[str, Any]:
    """What a template with this form gets for an answer with reasoning."""
    match form:
        case "parts":
            return {"content": [{"type": "thinking", "thinking": thought}, {"type": "text", "text": said}]}
        case "blocks":
            before = [{"type": "thoughts", "text": thought}] if thought else []
            return {"content": {"blocks": [*before, {"type": "response", "text": said}]}}
        case _:
            return {"content": said, form: thought}


def _takes(render: Render, form: str) -> bool:
    """Whether the template writes the reasoning of any answer: the last, an earlier one, or one with a call."""
    answer = {"role": "assistant", **answer_in_form(form, _THOUGHT, SAID)}
    calling = ({"role": "user", "content": QUESTION}, {**answer, "tool_calls": [_CALL]}, _RESULT)
    plain = calling[0], answer
    for flags in ({}, _THINKING):
        for messages, begins, tools in (
            (plain, False, None),
            ((*plain, {"role": "user", "content": _NEXT}), True, None),
            (calling, True, _TOOLS),
        ):
            before, found, _ = try_render(render, messages, begins, tools, flags).partition(_THOUGHT)
            if found and not (form in (PARTS, BLOCKS) and _AS_DATA.search(before)):
                return True
    return False


def _marks_of(render: Render, form: str) -> ReasoningMarks | None:
    """The marks around reasoning that is passed in this form."""
    question = {"role": "user", "content": QUESTION}
    without = {"role": "assistant", "content": SAID}
    answer = {"role": "assistant", **answer_in_form(form, _THOUGHT, SAID)}
    usual = try_render(render, [question], True)
    for flags in ({}, _THINKING):
        for more, call, tools in (((), {}, None), ((_RESULT,), {"tool_calls": [_CALL]}, _TOOLS)):
            begun = behind_question(try_render(render, [question], True, tools, flags))
            plain = behind_question(try_render(render, [question, without], False, None, flags))
            thinking = behind_question(
                try_render(render, [question, {**answer, **call}, *more], bool(more), tools, flags)
            )
            found = _compared(begun, plain, thinking, calls=bool(call))
            if found is not None:
                return replace(found, is_open=usual.rstrip().endswith(found.start))
    return None


def _marks_of_nothing(render: Render) -> ReasoningMarks | None:
    """The marks that a template writes before an answer with nothing between them, in place of its reasoning."""
    question, answer = {"role": "user", "content": QUESTION}, {"role": "assistant", "content": SAID}
    head = behind_question(try_render(render, [question, answer], False)).partition(SAID)[0]
    pair = _PAIR.search(head)
    if pair is None:
        return None
    is_open = try_render(render, [question], True).rstrip().endswith(pair[1])
    return ReasoningMarks(pair[1], pair[3], is_open=is_open)


def _compared(begun: str, plain: str, thinking: str, *, calls: bool) -> ReasoningMarks | None:
    """Marks from the text after a question: the beginning of its answer, an answer without reasoning, and one with
    reasoning, and with a tool call if `calls`.
    """
    head, found, behind = thinking.partition(_THOUGHT)
    said = behind.find(SAID)
    close = _CLOSE.match(behind, 0, said if said >= 0 else len(behind))
    if not found or close is None:
        return None
    start = _start_mark(head, begun.rstrip(), plain, close[1])
    if calls or said < 0:
        answer = plain[common_start(plain, begun) : max(0, plain.find(SAID))].rpartition(close[1])[2].strip()
    else:
        answer = behind[close.end() : said].strip()
    if not start or len(start) > _LONGEST_MARK:
        return None
    after = plain.partition(SAID)[2].strip()
    shown = {*MARK.findall(start), *MARK.findall(close[1]), *MARK.findall(answer)}
    if len(after) > _LONGEST_MARK or shown.isdisjoint(MARK.findall(after)):
        after = ""
    return ReasoningMarks(start, close[1], answer if len(answer) <= _LONGEST_MARK else "", after)


def _start_mark(head: str, begun: str, plain: str, close: str) -> str:
    """What a model writes before its reasoning: the text before that, without the beginning of the turn. If nothing is
    left, the prompt opens the reasoning, and its last mark counts.
    """
    rest = begun[len(head.rstrip()) :].strip() if begun.startswith(head.rstrip()) else ""
    if rest and not rest.startswith(close):
        return rest  # begins an answer, and is left out of earlier ones
    at = len(begun) if begun and head.startswith(begun) else common_start(head, plain)
    if own := head[at:].strip():
        return own
    last = _LAST.search(head.rstrip())
    return last[0].strip() if last else ""


def behind_question(text: str) -> str:
    return text.rpartition(QUESTION)[2]


def _pairs_of(source: str) -> list[ReasoningMarks]:
    """Pairs such as `<x>` and `</x>` whose end is in the source."""
    found = dict.fromkeys((f"{a}{name}{b}", f"{a}/{name}{b}") for a, name, b in _END_OF_PAIR.findall(source))
    return [ReasoningMarks(start, end) for start, end in found][:_MOST_PAIRS]


def _marks_in_text(render: Render, source: str) -> ReasoningMarks | None:
    """The marks with which the template cuts reasoning out of an earlier answer, or known ones at the beginning of an
    answer.
    """
    question, following = {"role": "user", "content": QUESTION}, {"role": "user", "content": _NEXT}
    begun = try_render(render, [question], True)
    for marks in (*KNOWN, *_pairs_of(source)):
        text = f"{marks.start}\n{_THOUGHT}\n{marks.end}\n\n{marks.answer}{SAID}"
        rendered = try_render(render, [question, {"role": "assistant", "content": text}, following], True)
        is_open = begun.rstrip().endswith(marks.start)
        if (is_open and marks in KNOWN) or (SAID in rendered and _THOUGHT not in rendered):
            return ReasoningMarks(marks.start, marks.end, marks.answer, is_open=is_open)
    return None


def try_render(
    render: Render,
    messages: Sequence[Mapping[str, Any]],
    begins: bool,
    tools: Sequence[Mapping[str, Any]] | None = None,
    flags: Mapping[str, Any] = _USUAL,
) -> str:
    """Empty if the template refuses."""
    try:
        return render(messages, begins, tools, flags)
    except Exception:  # noqa: BLE001  # a template can fail in any way
        return ""


def common_start(one: str, other: str) -> int:
    """Number of characters both begin with, not cutting a mark of the first."""
    at = common_prefix(one, other)
    return next((mark.start() for mark in MARK.finditer(one) if mark.start() < at < mark.end()), at)
