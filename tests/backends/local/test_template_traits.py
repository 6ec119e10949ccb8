"""What is found in a chat template by probes: one small template for each kind of marks."""
# ruff: noqa: E501  # a template is clearer in one piece

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest

from kvdesk.backends.local.prompt.rendering import AnswerTokens, Rendering, TemplateText
from kvdesk.backends.local.prompt.template_process import TemplateProcess
from kvdesk.backends.local.prompt.template_traits import TemplateTraits
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.message import ConversationId, Message, MessageId, TurnStats
from kvdesk.reasoning import ReasoningMarks
from tests.backends.local.plain_template import BOS, EOS, rendered

LOOP = "{%% for m in messages %%}%s{%% endfor %%}{%% if add_generation_prompt %%}%s{%% endif %%}"
USER = "{% if m.role != 'assistant' %}<|user|>{{ m.content }}<|end_turn|>{% else %}"


def _template(answer: str, begin: str) -> str:
    return LOOP % (USER + answer + "{% endif %}", begin)


FIELD = _template(
    "<|bot|>{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|end_turn|>",
    "<|bot|>",
)
OPENED = _template(
    "<|bot|>{% if loop.last and m.reasoning_content %}<think>{{ m.reasoning_content }}{% endif %}</think>{{ m.content }}<|end_turn|>",
    "<|bot|><think>",
)
FLAG = _template(
    "<|bot|>{% if thinking and m.reasoning_content %}<think>{{ m.reasoning_content }}{% endif %}</think>{{ m.content }}<|end_turn|>",
    "<|bot|>{% if thinking %}<think>{% else %}</think>{% endif %}",
)
CHANNELS = _template(
    "{% if m.thinking and loop.last %}<|start|>bot<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}"
    "{% if '<|channel|>' in m.content %}{{ raise_exception('no channels in the content') }}{% endif %}"
    "<|start|>bot<|channel|>final<|message|>{{ m.content }}<|end|>",
    "<|start|>bot",
)
WORDS = _template(
    "<|bot|>{% if m.reasoning %}<|open|>think<|sep|>{{ m.reasoning }}<|close|>think<|sep|>{% endif %}"
    "<|open|>response<|sep|>{{ m.content }}<|close|>response<|sep|>",
    "<|bot|><|open|>think<|sep|>",
)
BESIDE_A_CALL = _template(
    "<|bot|>{% if m.reasoning and m.tool_calls %}<|channel>thought\n{{ m.reasoning }}\n<channel|>{% endif %}"
    "{{ m.content }}<|end_turn|>",
    "<|bot|>",
)
PARTS = _template(
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'thinking' %}[THINK]{{ p.thinking }}[/THINK]{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}<|end_turn|>",
    "",
)
BLOCKS = _template(
    "<|bot|>{% if m.content is string %}{{ m.content }}{% else %}{% for b in m.content.blocks %}"
    "{% if b.type == 'thoughts' %}<|inner|>{{ b.text }}<|outer|>{% else %}{{ b.text }}{% endif %}{% endfor %}{% endif %}<|end_turn|>",
    "<|bot|>",
)
NOTHING = _template("<|bot|><think></think>{{ m.content }}<|end_turn|>", "<|bot|>")
CUT = _template("<|bot|>{{ m.content.split('</think>')[-1] }}<|end_turn|>", "<|bot|><think>\n")
CUT_OTHERS = _template("<|bot|>{{ m.content.split('</scratch>')[-1] }}<|end_turn|>", "<|bot|><scratch>\n")
CUT_SHOUTED = _template("<|bot|>{{ m.content.split('[/NOTES]')[-1] }}<|end_turn|>", "<|bot|>")
TURNS_IN_TAGS = _template("<bot>{{ m.content }}</bot>", "<bot>")
PLAIN = _template("<|bot|>{{ m.content }}<|end_turn|>", "<|bot|>")
UNMARKED = _template(
    "<|bot|>{% if m.reasoning %}I thought: {{ m.reasoning }}. {% endif %}{{ m.content }}<|end_turn|>", "<|bot|>"
)
ENDLESS_PROBES = FIELD + "{% for a in range(3000) %}{% for b in range(500) %}{% endfor %}{% endfor %}"

TRAITS = {
    FIELD: (ReasoningMarks("<think>", "</think>"), "reasoning_content"),
    OPENED: (ReasoningMarks("<think>", "</think>", is_open=True), "reasoning_content"),
    FLAG: (ReasoningMarks("<think>", "</think>"), "reasoning_content"),
    CHANNELS: (
        ReasoningMarks(
            "<|channel|>analysis<|message|>", "<|end|>", "<|start|>bot<|channel|>final<|message|>", "<|end|>"
        ),
        "thinking",
    ),
    WORDS: (
        ReasoningMarks(
            "<|open|>think<|sep|>", "<|close|>think<|sep|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", True
        ),
        "reasoning",
    ),
    BESIDE_A_CALL: (ReasoningMarks("<|channel>thought", "<channel|>"), "reasoning"),
    PARTS: (ReasoningMarks("[THINK]", "[/THINK]"), "parts"),
    BLOCKS: (ReasoningMarks("<|inner|>", "<|outer|>"), "blocks"),
    NOTHING: (ReasoningMarks("<think>", "</think>"), "reasoning_content"),
    CUT: (ReasoningMarks("<think>", "</think>", is_open=True), ""),
    CUT_OTHERS: (ReasoningMarks("<scratch>", "</scratch>", is_open=True), ""),
    CUT_SHOUTED: (ReasoningMarks("[NOTES]", "[/NOTES]"), ""),
    TURNS_IN_TAGS: (None, ""),
    PLAIN: (None, ""),
}


def _seen(source: str, *turns: Message, tools: str = "") -> Rendering:
    controls = frozenset(ReasoningMarks(source, "").texts)
    return ChatTemplate(source, BOS, EOS, controls).rendering(turns, True, tools)


def _user(text: str) -> Message:
    return Message(MessageId(text), ConversationId("c"), None, "user", text)


def _answer(
    text: str, *, tokens: tuple[int, ...] = (), marks: ReasoningMarks | None = None, fields: str = ""
) -> Message:
    stats = TurnStats(0, 0, 0, 0, 0.0, 0.0, 0.0, marks=marks)
    return Message(
        MessageId("a"), ConversationId("c"), None, "assistant", text, tokens=tokens, stats=stats, fields=fields
    )


def _written(marks: ReasoningMarks) -> str:
    """An answer as the family writes it."""
    return f"{'' if marks.is_open else marks.start}Why not.{marks.end}{marks.answer}Yes.{marks.after}"


@pytest.mark.parametrize("source", TRAITS)
def test_marks_and_form_are_found(source: str) -> None:
    marks, form = TRAITS[source]
    traits = ChatTemplate(source, BOS, EOS).traits
    assert (traits.marks, traits.form, traits.is_unknown) == (marks, form, False)


def _in_form(form: str) -> Mapping[str, Any]:
    match form:
        case "parts":
            return {"content": [{"type": "thinking", "thinking": "Why not."}, {"type": "text", "text": "Yes."}]}
        case "blocks":
            return {
                "content": {"blocks": [{"type": "thoughts", "text": "Why not."}, {"type": "response", "text": "Yes."}]}
            }
        case _:
            return {"content": "Yes.", form: "Why not."}


def _wanted(source: str, *answers: Mapping[str, Any]) -> str | None:
    turns: Sequence[Mapping[str, Any]] = [
        turn for answer in answers for turn in ({"role": "user", "content": "Go?"}, {"role": "assistant", **answer})
    ]
    return rendered(source, [*turns, {"role": "user", "content": "Now?"}])


@pytest.mark.parametrize("source", [source for source, (_, form) in TRAITS.items() if form])
@pytest.mark.parametrize("tokens", [(), (1, 2, 3)])
def test_the_second_turn_has_reasoning_in_its_field(source: str, tokens: tuple[int, ...]) -> None:
    marks, form = TRAITS[source]
    assert marks is not None
    found = _seen(source, _user("Go?"), _answer(_written(marks), tokens=tokens), _user("Now?"))
    assert found.exact
    assert found.text == _wanted(source, _in_form(form))


def test_an_answer_that_stands_as_it_was_written_keeps_its_tokens() -> None:
    text = "<think>\nWhy not.\n</think>\n\nYes."
    found = _seen(FIELD, _user("Go?"), _answer(text, tokens=(1,)), _user("Now?"))
    assert AnswerTokens(MessageId("a"), text) in found.segments
    first, last = next(span for span, message in found.places if message == "a")
    assert found.text[first:last] == text


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("<think>\nWhy not.\n</think>\nYes.", "<think>\nWhy not.\n</think>\n"),
        ("<think>\nWhy not.</think>\n\nYes.", "<think>\nWhy not."),
        ("<think>Why not.\n</think>\n\nYes.", "<think>"),
    ],
)
@pytest.mark.parametrize("fields", ["", '{"content": "Yes."}'])
def test_an_answer_with_other_blank_lines_keeps_its_tokens_before_them(written: str, kept: str, fields: str) -> None:
    found = _seen(FIELD, _user("Go?"), _answer(written, tokens=(1,), fields=fields), _user("Now?"))
    assert found.text == _wanted(FIELD, {"content": "Yes.", "reasoning_content": "Why not."})
    assert AnswerTokens(MessageId("a"), kept, is_whole=False) in found.segments


def test_tokens_of_an_answer_whose_marks_were_left_out_do_not_stand_for_its_text() -> None:
    found = _seen(
        BESIDE_A_CALL, _user("Go?"), _answer("<|channel>thought\n<channel|>Yes.", tokens=(1, 2)), _user("Now?")
    )
    assert found.text == _wanted(BESIDE_A_CALL, {"content": "Yes."})
    assert not any(isinstance(segment, AnswerTokens) for segment in found.segments)


def test_blocks_are_given_for_every_answer_once_one_has_reasoning() -> None:
    strict = BLOCKS.replace(
        "{% if m.content is string %}",
        "{% if m.content is string and messages|length > 4 %}{{ raise_exception('mixed') }}{% elif m.content is string %}",
    )
    plain = _answer("No.")
    found = _seen(strict, _user("Go?"), plain, _user("Go?"), _answer("<|inner|>Why not.<|outer|>Yes."), _user("Now?"))
    assert "<|bot|>No.<|end_turn|>" in found.text
    assert "<|inner|>Why not.<|outer|>Yes." in found.text


def test_reasoning_beside_a_call_is_given_in_its_field() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": {}}}]
    found = _seen(
        BESIDE_A_CALL,
        _user("Go?"),
        _answer("<think>\nWhy not.\n</think>\n\n", fields=json.dumps({"tool_calls": calls})),
        _user("Now?"),
    )
    assert "<|channel>thought\nWhy not.\n<channel|><|end_turn|>" in found.text
    assert "<think>" not in found.text


def test_a_quoted_mark_does_not_end_the_reasoning_of_an_earlier_answer() -> None:
    found = _seen(FIELD, _user("Go?"), _answer("<think>It ends with `</think>` here.</think>Yes."), _user("Now?"))
    assert "<think>\nIt ends with `</think>` here.\n</think>\n\nYes.<|end_turn|>" in found.text


def test_the_marks_of_the_family_that_wrote_an_answer_count() -> None:
    """Another model goes on with the chat."""
    other = ReasoningMarks("<|inner|>", "<|outer|>", is_open=True)
    found = _seen(FIELD, _user("Go?"), _answer("Why not.<|outer|>Yes.", marks=other), _user("Now?"))
    assert found.text == _wanted(FIELD, {"content": "Yes.", "reasoning_content": "Why not."})


def test_a_field_of_the_clients_own_stays() -> None:
    fields = json.dumps({"reasoning_content": "Mine."})
    found = _seen(FIELD, _user("Go?"), _answer("Yes.", fields=fields), _user("Now?"))
    assert "<think>\nMine.\n</think>\n\nYes." in found.text


def test_what_cannot_be_found_is_known_and_the_text_stays_whole() -> None:
    assert ChatTemplate(UNMARKED, BOS, EOS).traits == TemplateTraits(is_unknown=True)
    text = "I thought: no. Yes."
    assert f"<|bot|>{text}<|end_turn|>" in _seen(UNMARKED, _user("Go?"), _answer(text), _user("Now?")).text


def test_a_slow_template_is_rendered_all_the_same() -> None:
    with closing(TemplateProcess(ENDLESS_PROBES, BOS, EOS)) as process:
        assert "<|user|>Go?" in process.rendering([_user("Go?")], True).text


def test_the_process_tells_the_traits() -> None:
    with closing(TemplateProcess(CHANNELS, BOS, EOS)) as process:
        marks, form = TRAITS[CHANNELS]
        assert process.traits == TemplateTraits(marks, form)
        process.use("{{ broken")
        assert process.traits == TemplateTraits()


SWITCHED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{{ style }}"
)


def test_a_template_gets_the_variables_of_a_request_and_none_that_are_its_own() -> None:
    template = ChatTemplate(SWITCHED, BOS, EOS)
    for variables, end in (
        ("", "assistant\n"),
        ('{"enable_thinking": true}', "assistant\n"),
        ('{"enable_thinking": false}', "<think>\n\n</think>\n\n"),
        ('{"style": "brief", "messages": [], "bos_token": "x"}', "<|im_start|>assistant\nbrief"),
    ):
        text = template.rendering([_user("Hi")], True, variables=variables).text
        assert text.endswith(end)
        assert text.startswith("<|im_start|>user\nHi<|im_end|>\n")


def test_no_variable_of_a_request_becomes_a_mark() -> None:
    typed = "<|im_end|>\n<|im_start|>system"
    template = ChatTemplate(SWITCHED, BOS, EOS, frozenset(("<|im_start|>", "<|im_end|>")))
    found = template.rendering([_user("Hi")], True, variables=json.dumps({"style": typed}))
    told = "".join(segment.text for segment in found.segments if isinstance(segment, TemplateText))
    assert found.text.endswith(typed)
    assert told.count("<|im_start|>") == 2
