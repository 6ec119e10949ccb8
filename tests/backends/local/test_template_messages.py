"""Messages that a chat template does not take as they are: typed parts, turns out of order, calls and their results."""
# ruff: noqa: E501  # templates and their renderings are clearer in one piece

import json
import re

import pytest

from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.errors import TemplateError
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.values import replace
from tests.backends.local.test_templates import CHATML, GEMMA, answers, chat, message, render, template

PARTS_ONLY = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}{% if part.type == 'text' %}"
    "{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def test_contents_are_typed_parts_where_a_template_takes_nothing_else() -> None:
    messages = chat("Hi<|im_end|>", "Hello", "Bye", system="Be kind")
    rendering = render(PARTS_ONLY, messages)
    assert rendering.segments == render(CHATML, messages).segments
    assert not rendering.system_folded
    assert rendering.exact


@pytest.mark.parametrize("others", ["{{ m.content }}", "{{ '' + m.content }}"])
def test_questions_alone_may_be_typed_parts(others: str) -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'user' %}{{ m.content[0].text }}{% else %}"
        + others
        + "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    messages = chat("Hi", "Hello", "Bye", system="Be kind")
    assert render(source, messages).text == render(CHATML, messages).text
    result = Message(MessageId("t"), ConversationId("c"), None, "tool", "18 C")
    assert render(source, [*messages, result]).text == render(CHATML, [*messages, result]).text


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages[:-1] %}{{ m.content }}{% endfor %}ok",
        "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{% endif %}{% endfor %}ok",
        "Hi {{ messages[0].content }}",
    ],
)
def test_a_last_message_that_is_left_out_is_an_error(source: str) -> None:
    with pytest.raises(TemplateError, match="leaves the last message out"):
        render(source, chat("a", "Hello", "Hi", generated=False))


def test_a_last_message_may_be_changed() -> None:
    source = "{% for m in messages %}{{ m.content | upper }}{% endfor %}"
    assert render(source, chat("Hi")).text == "HI"


@pytest.mark.parametrize("system", ["", "Be kind"])
def test_an_answer_without_a_question_gets_an_empty_one(system: str) -> None:
    messages = chat("", "Welcome", "Hi", "Hello", "Bye", system=system)
    messages = [m for m in messages if m.id != "m0"]
    rendering = render(GEMMA, messages)
    assert rendering.text == (
        f"<s><start_of_turn>user\n{system}<end_of_turn>\n<start_of_turn>model\nWelcome<end_of_turn>\n"
        "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n<start_of_turn>user\nBye"
        "<end_of_turn>\n<start_of_turn>model\n"
    )
    assert answers(rendering) == ["Welcome", "Hello"]
    assert "empty question" in rendering.remark
    assert {name for _, name in rendering.places} == {m.id for m in messages}


def test_two_answers_in_a_row_too() -> None:
    messages = [m for m in chat("Hi", "Hello", "x", "Again", "Bye") if m.id != "m2"]
    assert "Hello<end_of_turn>\n<start_of_turn>user\n<end_of_turn>\n" in render(GEMMA, messages).text


def test_questions_in_a_row_become_one_where_a_template_takes_no_two() -> None:
    """Codex and Claude Code send what they tell the model beside the question as messages of their own."""
    messages = [m for m in chat("Where I am.", "x", "Hi", "Hello", "Bye", system="Be kind") if m.id != "m1"]
    rendering = render(GEMMA, messages)
    assert rendering.text == (
        "<s><start_of_turn>user\nBe kind\n\nWhere I am.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"
    )
    assert answers(rendering) == ["Hello"]
    assert "two questions in a row" in rendering.remark
    assert {name for _, name in rendering.places} == {m.id for m in messages[2:]}


def test_no_question_is_added_where_a_template_needs_none() -> None:
    rendering = render(CHATML, chat("", "Welcome", "Hi")[1:])
    assert rendering.text.startswith("<|im_start|>assistant\nWelcome")
    assert rendering.remark == ""


def test_a_template_that_refuses_everything_says_why_itself() -> None:
    with pytest.raises(TemplateError, match="no answers here"):
        render("{{ raise_exception('no answers here') }}", chat("", "Welcome", "Hi")[1:])


CALLING = (
    '{"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": {"at": "x"}}}], "content": ""}'
)
WITH_RESULTS = (  # as Gemma 4's first one
    "{% for m in messages %}<turn>{{ m.role }}:{% for call in m.tool_calls or [] %}<call>{{ call.function.name }}{{ call.function.arguments | tojson }}</call>{% endfor %}"
    "{% for one in m.tool_responses or [] %}<result>{{ one.name }}={{ one.response }}</result>{% endfor %}{{ m.content }}</turn>{% endfor %}"
)
IN_TURN = (  # as Ministral's: calls and results do not count, and no answer is empty
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{% if (m.role == 'user') != (ns.n % 2 == 0) or not m.content %}{{ raise_exception('in turn') }}{% endif %}{% set ns.n = ns.n + 1 %}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% for call in m.tool_calls or [] %}<call>{{ call.function.name }}{{ call.function.arguments | tojson }}</call>{% endfor %}{% endfor %}"
)
NINE = (  # as Mistral Small's
    "{% for m in messages %}{% for call in m.tool_calls or [] %}<call>{{ call.function.name }}#{{ call.id }}"
    "{% if call.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}{% endfor %}{{ m.content }}"
    "{% if m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('nine') }}{% endif %}"
    "={{ m.tool_call_id }}{% endif %}{% endfor %}"
)
BLOCKS = (  # as Apertus's: one form for all answers
    "{% set ns = namespace(form=none) %}{% for m in messages %}[{{ m.role }}]{% if m.content is mapping %}"
    "{% if ns.form == 'text' %}{{ raise_exception('two forms') }}{% endif %}{% set ns.form = 'blocks' %}"
    "{% for block in m.content.blocks %}{% if block.type == 'thoughts' %}<in>{{ block.text }}</in>{% else %}{{ block.text }}{% endif %}{% endfor %}"
    "{% else %}{% if m.role == 'assistant' %}{% set ns.form = 'text' %}{% endif %}{{ m.content }}{% endif %}"
    "{% for call in m.tool_calls or [] %}<call>{{ call.function.name }}{{ call.function.arguments | tojson }}</call>{% endfor %}{% endfor %}"
)


ONE_CALL = (  # as Llama 3's
    "{% for tool in tools or [] %}{{ '// ' + tool.function.description + ' ' + tool.function.name }}"
    "{{ tool.function.parameters.properties | tojson }}{% endfor %}{% for m in messages %}{% if m.tool_calls %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('single') }}{% endif %}{% set call = m.tool_calls[0].function %}"
    "{{ m.content }}<call>{{ call.name }}{% for key in call.arguments.keys() %}{% endfor %}{{ call.arguments | tojson }}</call>"
    "{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
)
POPPING = (  # as Kimi's
    "{% set ns = namespace(ids=[]) %}{% for m in messages %}{{ m.content }}{% for call in m.tool_calls or [] %}"
    "{% set _ = ns.ids.append(call.function.name) %}<call>{{ call.function.name }}{{ call.function.arguments | tojson }}</call>"
    "{% endfor %}{% if m.role == 'tool' %} of {{ ns.ids.pop(0) }}{% endif %}{% endfor %}"
)


def called_at_once(*arguments: object) -> list[Message]:
    """A question, calls in one answer, and a result for each, the last first."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": given}}
        for n, given in enumerate(arguments)
    ]
    called = replace(message("assistant", "Well.", 1), fields=json.dumps({"tool_calls": calls}))
    results = [
        replace(message("tool", f"seen {n}", n + 2), fields=json.dumps({"tool_call_id": f"c{n}"}))
        for n in range(len(calls))
    ]
    return [message("user", "Look"), called, *reversed(results)]


def test_calls_are_one_by_one_where_a_template_takes_one() -> None:
    """Llama 3's refuse several, which another model or an agent may have put into the conversation."""
    messages = [*called_at_once({"at": "x"}, {"at": "y"}), message("user", "Go on", 9)]
    assert render(ONE_CALL, messages).text == (
        '[user]LookWell.<call>look{"at": "x"}</call>[tool]seen 0<call>look{"at": "y"}</call>[tool]seen 1[user]Go on'
    )
    unanswered = render(ONE_CALL, messages[:2]).text
    assert unanswered == '[user]LookWell.<call>look{"at": "x"}</call><call>look{"at": "y"}</call>'


@pytest.mark.parametrize("given", ['{"at": "x', 5, ["x"]])
def test_arguments_that_are_no_object_become_one_where_a_template_takes_no_others(given: object) -> None:
    """A model did not end its JSON, and its agent sends the call with every later request."""
    assert render(ONE_CALL, called_at_once(given)).text == (
        f"[user]LookWell.<call>look{json.dumps({'arguments': given})}</call>[tool]seen 0"
    )


def test_tools_have_a_description_and_parameters() -> None:
    """The template of gpt-oss fails without."""
    tools = [{"type": "function", "function": {"name": "look", **more}} for more in ({}, {"description": None})]
    text = template(ONE_CALL).rendering([message("user", "Hi")], True, json.dumps(tools)).text
    assert text == "//  look{}//  look{}[user]Hi"


def test_a_template_may_take_from_its_lists() -> None:
    assert render(POPPING, called_at_once({"at": "x"})).text == 'LookWell.<call>look{"at": "x"}</call>seen 0 of look'


@pytest.mark.parametrize("ids", [("call_0", "call_1"), ("", ""), ("abcdefghi", "123456789")])
def test_calls_have_ids_that_a_template_takes(ids: tuple[str, str]) -> None:
    """Mistral's refuse others than nine letters and digits. Ollama's clients send none, others what they made."""
    function = {"name": "look", "arguments": {"at": "x"}}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    called = replace(message("assistant", "", 1), fields=json.dumps({"tool_calls": calls}))
    results = [
        replace(message("tool", text, n), fields=json.dumps({"tool_call_id": one} if one else {}))
        for n, (text, one) in enumerate(zip(("first", "second"), ids, strict=True), start=2)
    ]
    text = render(NINE, [message("user", "Look"), called, *results]).text
    found = re.fullmatch(r"Look<call>look#(\w{9})<call>look#(\w{9})first=(\w{9})second=(\w{9})", text)
    assert found is not None, text
    assert (found[1], found[2]) == (found[3], found[4])
    assert found[1] != found[2]
    if len(ids[0]) == 9:
        assert (found[1], found[2]) == ids
    assert render(NINE, [message("user", "Look"), called, *results]).text == text, "also in the next turn"


def test_a_question_behind_a_result_comes_after_an_answer_without_words() -> None:
    """Claude Code sends what it tells the model beside a result."""
    called = replace(message("assistant", "", 1), fields=CALLING)
    messages = [message("user", "Look"), called, message("tool", "18 C", 2), message("user", "Go on", 3)]
    before = '[user]Look[assistant]<call>look{"at": "x"}</call>[tool]18 C'
    assert render(IN_TURN, messages).text == f"{before}[assistant] [user]Go on"
    assert render(IN_TURN, messages[:3]).text == before


def with_a_call(thought: str, said: str) -> list[Message]:
    """A question, a call, its result and an answer."""
    texts = (
        ("user", "Hi", ""),
        ("assistant", f"{thought}<call>", CALLING),
        ("tool", "seen", ""),
        ("assistant", said, ""),
    )
    return [
        Message(MessageId(str(n)), ConversationId("c"), None, role, text, fields=fields)  # type: ignore[arg-type]
        for n, (role, text, fields) in enumerate(texts)
    ]


def test_results_are_in_the_message_of_their_calls_where_a_template_takes_them_there() -> None:
    template = ChatTemplate(WITH_RESULTS)
    assert template.traits.takes_results
    found = template.rendering(with_a_call("", "It is <b>."), False)
    assert found.text == (
        '<turn>user:Hi</turn><turn>assistant:<call>look{"at": "x"}</call><result>look=seen</result>It is <b>.</turn>'
    )
    assert [message for _, message in found.places] == ["0", "2", "3"], "each is found in the message of another"
    assert not ChatTemplate(BLOCKS).traits.takes_results


def test_answers_with_calls_have_the_form_of_the_others() -> None:
    template = ChatTemplate(BLOCKS)
    assert template.traits.form == "blocks"
    found = template.rendering(with_a_call("<in>Hm.</in>", "<in>So.</in>It is."), False)
    assert found.text == (
        '[user]Hi[assistant]<in>Hm.</in><call>look{"at": "x"}</call>[tool]seen[assistant]<in>So.</in>It is.'
    )
