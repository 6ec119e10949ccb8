"""How templates write calls, found by rendering."""

import json

import pytest

from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.call_format import GENERIC, ID, INDEX, KEY, KNOWN, CallFormat, NamedArguments, Pair
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.values import replace

_TURNS = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}CALLS<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TAGGED = Pair("\n<parameter=", ">\n", "\n</parameter>")
TEMPLATES: dict[str, tuple[str, CallFormat]] = {
    "objects": (
        ("{% for c in m.tool_calls %}{% if not loop.first %}{{ nl }}{% endif %}"
        '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
        "{% endfor %}"),
        CallFormat("", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n", ""),
    ),
    "an array with ids": (
        ("{% if m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}"
        '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}, "id": "{{ c.id }}"}'
        "{% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}"),
        CallFormat("[TOOL_CALLS][", '{"name": "', '", "arguments": ', f', "id": "{ID}"}}', ", ", "]"),
    ),
    "one only": (
        ("{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}"
        "{% for c in m.tool_calls %}[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"
        "{% endfor %}{% endif %}"),
        CallFormat("", "[TOOL_CALLS]", "[ARGS]", "", None, ""),
    ),
    "numbered": (
        ("{% if m.tool_calls %}<|calls|>{% for c in m.tool_calls %}<|call|>functions.{{ c.function.name }}:"
        "{{ loop.index0 }}<|args|>{{ c.function.arguments | tojson }}<|call_end|>{% endfor %}<|calls_end|>{% endif %}"),
        CallFormat("<|calls|>", "<|call|>functions.", f":{INDEX}<|args|>", "<|call_end|>", "", "<|calls_end|>"),
    ),
    "named": (
        ("{% for c in m.tool_calls %}{% if not loop.first %}{{ nl }}{% endif %}<tool_call>\n"
        "<function={{ c.function.name }}>{% for k, v in c.function.arguments | items %}{{ nl }}<parameter={{ k }}>\n"
        "{{ v if v is string else v | tojson }}\n</parameter>{% endfor %}{{ nl }}</function>\n</tool_call>"
        "{% endfor %}"),
        CallFormat(
            "", "<tool_call>\n<function=", ">", "\n</function>\n</tool_call>", "\n", "",
            NamedArguments(_TAGGED, _TAGGED),
        ),
    ),
    "named twice": (
        ("{% for c in m.tool_calls %}<call>{{ c.function.name }}{% for k, v in c.function.arguments | items %}"
        "<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>{% endfor %}</call>{% endfor %}"),
        CallFormat(
            "", "<call>", "", "</call>", "", "",
            NamedArguments(Pair("<", ">", f"</{KEY}>"), Pair("<", ">", f"</{KEY}>")),
        ),
    ),
    "tags inside tags": (
        ("{% macro told(v) %}{% if v is mapping %}"
        "{% for k, w in v | items %}<{{ k }}>{{ told(w) }}</{{ k }}>{% endfor %}"
        "{% elif v is iterable and v is not string %}{% for w in v %}<one>{{ told(w) }}</one>{% endfor %}"
        "{% else %}{{ v }}{% endif %}{% endmacro %}"
        "{% for c in m.tool_calls %}<call>{{ c.function.name }}{{ told(c.function.arguments) }}</call>{% endfor %}"),
        CallFormat(
            "", "<call>", "", "</call>", "", "",
            NamedArguments(Pair("<", ">", f"</{KEY}>"), Pair("<", ">", f"</{KEY}>"), item="one"),
        ),
    ),
    "quoted": (
        ("{% for c in m.tool_calls %}<|call>{{ c.function.name }}{{ '{' }}"
        "{% for k, v in c.function.arguments | items %}{% if not loop.first %},{% endif %}"
        "{{ k }}:{% if v is string %}<q>{{ v }}<q>{% else %}{{ v | tojson }}{% endif %}{% endfor %}"
        "{{ '}' }}<call|>{% endfor %}"),
        CallFormat(
            "", "<|call>", "{", "}<call|>", "", "", NamedArguments(Pair("", ":<q>", "<q>"), Pair("", ":", ""), ",")
        ),
    ),
}  # fmt: skip
TOOLS = json.dumps([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}])
CALL = json.dumps({"tool_calls": [{"id": "abcdef123", "function": {"name": "look", "arguments": {"at": "x"}}}]})
WRITTEN = '<tool_call>\n{"name": "look", "arguments": {"at": "x"}}\n</tool_call>'


def source(name: str) -> str:
    return "{% set nl = '\\n' %}" + _TURNS.replace("CALLS", TEMPLATES[name][0])


def messages(*texts: tuple[str, str, str]) -> list[Message]:
    return [
        Message(MessageId(f"m{i}"), ConversationId("c"), None, role, text, fields=fields)  # type: ignore[arg-type]
        for i, (role, text, fields) in enumerate(texts)
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_form_is_that_in_which_the_template_writes(name: str) -> None:
    template = ChatTemplate(source(name))
    assert template.traits.calls == TEMPLATES[name][1]
    assert (template.traits.takes_tools, template.traits.writes_calls) == (True, True)
    form, arguments = TEMPLATES[name][1], {"at": "x", "n": 5}
    call = {"id": "call00000", "function": {"name": "look", "arguments": arguments}}
    asked = messages(("user", "Hi", ""), ("assistant", "", json.dumps({"tool_calls": [call]})))
    rendered = template.rendering(asked, add_generation_prompt=False, tools=TOOLS).text
    assert rendered.endswith(f"<|im_start|>assistant\n{form.written([('look', arguments)])}<|im_end|>\n")


def test_a_template_that_knows_no_tools_is_told_of_them_in_its_system_prompt() -> None:
    template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}")
    assert template.traits.calls == GENERIC
    asked = messages(
        ("user", "Hi", ""),
        ("assistant", "I look.", CALL),
        ("tool", "seen", ""),
        ("tool", "heard", ""),
        ("user", "So?", ""),
    )
    for start in ([], messages(("system", "Be brief.", ""))):
        text = template.rendering([*start, *asked], add_generation_prompt=True, tools=TOOLS).text
        assert text.startswith("<system>Be brief.\n\n# Tools" if start else "<system># Tools")
        assert '"name": "look"' in text
        assert f"I look.\n{WRITTEN}" in text
        results = "<tool_response>\nseen\n</tool_response>\n<tool_response>\nheard\n</tool_response>"
        assert f"<user>{results}\n" in text
        assert text.endswith("<user>So?\n")


def test_families_that_leave_calls_in_the_text_are_known() -> None:
    described = "{% if tools %}<|tool_list_start|>{{ tools | tojson }}<|tool_list_end|>{% endif %}"
    template = ChatTemplate(described + "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}")
    assert (template.traits.calls, template.traits.takes_tools) == (KNOWN["<|tool_list_start|>"], True)
    asked = messages(("user", "Hi", ""), ("assistant", "", CALL), ("tool", "seen", ""))
    text = template.rendering(asked, add_generation_prompt=True, tools=TOOLS).text
    assert text.endswith('<assistant><|tool_call_start|>[look(at="x")]<|tool_call_end|>\n<tool>seen\n')


def test_an_answer_that_was_generated_here_stays_as_the_model_wrote_it_where_the_template_takes_that() -> None:
    written = '<tool_call>{"name":"look","arguments":{"at":"x"}}</tool_call>'
    fields = json.dumps({**json.loads(CALL), "content": ""})
    asked = messages(("user", "Hi", ""), ("assistant", written, fields), ("tool", "seen", ""))
    asked[1] = replace(asked[1], tokens=(5,))
    text = ChatTemplate(source("objects")).rendering(asked, add_generation_prompt=True, tools=TOOLS).text
    assert f"<|im_start|>assistant\n{written}<|im_end|>" in text
    strict = (
        "{% if messages[-1].role == 'tool' and not messages[-2].tool_calls %}{{ raise_exception('no') }}{% endif %}"
    )
    text = ChatTemplate(strict + source("objects")).rendering(asked, add_generation_prompt=True, tools=TOOLS).text
    assert f"<|im_start|>assistant\n{WRITTEN}<|im_end|>" in text


def test_reasoning_apart_is_left_out_where_the_family_does_not_reason() -> None:
    asked = messages(("user", "Hi", ""), ("assistant", "Hello", json.dumps({"reasoning_content": "They greet."})))
    text = ChatTemplate(source("objects")).rendering(asked, add_generation_prompt=False).text
    assert "They greet." not in text
    thought = "{% if m.thinking %}<t>{{ m.thinking }}</t>{% endif %}{{ m.content }}"
    template = ChatTemplate(source("objects").replace("{{ m.content }}", thought))
    assert "<t>They greet.</t>Hello" in template.rendering(asked, add_generation_prompt=False).text
