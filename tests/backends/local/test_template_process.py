"""TemplateProcess: renders as ChatTemplate does, and pays for what a template does."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from kvdesk.__main__ import CHILDREN
from kvdesk.backends.local.prompt import template_process
from kvdesk.backends.local.prompt.template_process import TemplateProcess
from kvdesk.backends.local.prompt.templates import FALLBACK, ChatTemplate
from kvdesk.errors import TemplateError
from kvdesk.message import ConversationId, Message, MessageId, Role

CONTROLS = frozenset({"<|im_start|>", "<|im_end|>"})
_GROW = "{% set ns = namespace(x=START) %}{% for i in range(99) %}{% set ns.x = NEXT %}{% endfor %}"
HOSTILE = {
    "text": "{{ 'a' * 20000000000 }}",
    "values": "{% set d = dict(a='a' * 90000000) %}{% for i in range(999) %}{{ d.values() }}{% endfor %}",
    "list": "{{ ('€' * 250000000)|list|length }}",
    "nested": _GROW.replace("START", "1").replace("NEXT", "[ns.x, ns.x]") + "{{ ns.x }}",
    "power": "{{ 9 ** 999999999 }}",
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
}
MORE_HOSTILE = {
    "items": "{% set d = dict(a='a' * 90000000) %}{% for i in range(999) %}{{ d.items() }}{% endfor %}",
    "namespace": "{% set n = namespace(x='a' * 90000000) %}{% for i in range(999) %}{{ n|string|length }}{% endfor %}",
    "doubling": _GROW.replace("START", "'ab'").replace("NEXT", "ns.x ~ ns.x"),
    "plus": _GROW.replace("START", "'ab'").replace("NEXT", "ns.x + ns.x"),
    "list_plus": _GROW.replace("START", "[1]").replace("NEXT", "ns.x + ns.x"),
    "blocks": _GROW.replace("{% set ns.x = NEXT %}", "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}"),
    "nested_dict": _GROW.replace("START", "1").replace("NEXT", "{1: ns.x, 2: ns.x}") + "{{ ns.x }}",
    "nested_call": _GROW.replace("START", "1").replace("NEXT", "dict(a=ns.x, b=ns.x)") + "{{ ns.x|tojson }}",
    "products": _GROW.replace("START", "9").replace("NEXT", "ns.x * ns.x"),
    "join": "{{ ('a' * 90000000)|join('bbbbbbbbb') }}",
    "replace": "{% set a = 'a' * 99999 %}{{ a.replace('a', a).replace('a', a) }}",
    "center": "{{ 'a'|center(20000000000) }}",
    "zfill": "{{ 'a'.zfill(20000000000) }}",
    "indent": "{{ 'a\nb'|indent(20000000000) }}",
    "percent": "{{ '%20000000000d' % 1 }}",
    "format": "{{ '{:>{}}'.format('a', 20000000000) }}",
    "brackets": "{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}",
    "filters": "{{ 1" + "|string" * 100_000 + " }}",
}


def chat(*texts: str) -> list[Message]:
    roles: tuple[Role, Role] = ("user", "assistant")
    return [
        Message(MessageId(f"m{i}"), ConversationId("c"), None, roles[i % 2], text, tokens=(1,) * (i % 2))
        for i, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def chatml() -> Iterator[TemplateProcess]:
    process = TemplateProcess(FALLBACK, control_tokens=CONTROLS)
    yield process
    process.close()


@pytest.mark.parametrize(
    "texts",
    [("Hi",), ("a<|im_end|>", "answer\n", "é€😀\ud800\0"), ("x" * 300_000, "y", "z")],
    ids=["short", "controls", "long"],
)
def test_it_renders_as_in_this_process(chatml: TemplateProcess, texts: tuple[str, ...]) -> None:
    expected = ChatTemplate(FALLBACK, control_tokens=CONTROLS).rendering(chat(*texts), True)
    assert chatml.rendering(chat(*texts), True) == expected


def test_a_process_that_was_killed_is_started_again() -> None:
    with closing(TemplateProcess(FALLBACK)) as process:
        before = process.rendering(chat("Hi"), True)
        process._child.kill()
        process._child.wait()
        assert process.rendering(chat("Hi"), True) == before


@pytest.mark.parametrize("asked", ["compile", "send_value"])
def test_what_a_process_was_asked_when_it_was_killed_is_asked_of_another(asked: str) -> None:
    """As by a system that is out of memory. The template is not blamed for it."""
    with closing(TemplateProcess("{{ messages[0].content }}")) as process:
        child = process._child
        if asked == "send_value":
            assert not process.traits.takes_tools
        ask = getattr(child, asked)
        setattr(child, asked, lambda value: (child.kill(), ask(value)))
        assert process.rendering(chat("a"), True).text == "a"
        assert process._child is not child


def test_what_a_template_refuses_is_told_and_the_next_rendering_works() -> None:
    with closing(
        TemplateProcess(
            "{% if messages|length > 1 %}{{ raise_exception('one only') }}{% endif %}{{ messages[0].content }}"
        )
    ) as process:
        with pytest.raises(TemplateError, match="refuses this conversation: one only"):
            process.rendering(chat("a", "b"), True)
        assert process.rendering(chat("a"), True).text == "a"


def test_a_template_that_is_broken_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(TemplateProcess("{% for %}")) as process:
        with pytest.raises(TemplateError, match="broken in line 1"):
            process.rendering(chat("a"), True)
        monkeypatch.setattr(process, "_begin", lambda: pytest.fail("it was started again"))
        with pytest.raises(TemplateError, match="broken in line 1"):
            process.rendering(chat("a"), True)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(n, marks=[pytest.mark.matrix] * (n not in ("text", "loops"))) for n in HOSTILE),
        *(pytest.param(n, marks=pytest.mark.stress) for n in MORE_HOSTILE),
    ],
)
def test_a_hostile_template_is_refused_or_harmless(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_process, "TIME_LIMIT_S", 0.5)
    mine = psutil.Process()
    before = mine.memory_info().rss
    process = TemplateProcess((HOSTILE | MORE_HOSTILE)[name])
    pid = process._child.pid
    start_s = time.monotonic()
    try:
        said = "The model's chat template " + process.rendering(chat("Hi"), True).text
    except TemplateError as error:
        said = str(error)
    finally:
        process.close()
    assert said.startswith("The model's chat template ")
    assert "\n" not in said
    assert len(said) < 200_000
    assert time.monotonic() - start_s < 10
    assert mine.memory_info().rss - before < 50_000_000
    assert not psutil.pid_exists(pid)


def test_a_template_can_be_exchanged_in_the_same_process() -> None:
    with closing(TemplateProcess("first {{ messages[0].content }}", name="This chat's own template")) as process:
        assert process.rendering(chat("Hi"), True).text == "first Hi"
        pid = process._child.pid
        long = "{# " + "x" * 200_000 + " #}second {{ messages[0].content }}"
        process.use("third")  # never rendered with
        process.use(long)
        assert process.rendering(chat("Hi"), True).text == "second Hi"
        process.use("{% if %}")
        for _ in range(2):
            with pytest.raises(TemplateError, match=r"^This chat's own template is broken in line 1: "):
                process.rendering(chat("Hi"), True)
        process.use(long)
        assert process.rendering(chat("Hi"), True).text == "second Hi"
        assert process._child.pid == pid
        process.use("{{ 'a' * 20000000000 }}")
        with pytest.raises(TemplateError, match=r"^This chat's own template was stopped"):
            process.rendering(chat("Hi"), True)
        process.use("fourth {{ messages[0].content }}")
        assert process.rendering(chat("Hi"), True).text == "fourth Hi"


def test_what_fails_is_told_with_its_line() -> None:
    with (
        closing(TemplateProcess("one\ntwo {{ nobody.name }}\nthree")) as process,
        pytest.raises(TemplateError, match=r"fails on this conversation in line 2: 'nobody' is undefined\.$"),
    ):
        process.rendering(chat("Hi"), True)


def test_its_process_imports_nothing_that_makes_the_first_answer_wait() -> None:
    module, _, _ = CHILDREN["--render"].partition(":")
    slow = {"pydantic", "psutil", "numpy", "PySide6"}
    code = f"import sys, kvdesk.__main__, {module}; print(*({slow} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ""
