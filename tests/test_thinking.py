"""What a chat template lets one choose of thinking, found in the templates that the project knows."""

import pytest

from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.thinking import AS_USUAL, EFFORTS, OFF, ON, Thinking, can_keep, checked, levels_of

CHAT = ConversationId("c")
QWEN = (  # as Qwen 3's: thinking off is an empty block
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
DEEPSEEK = (
    "{% if not thinking is defined %}{% set thinking = false %}{% endif %}"
    "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<think>' if thinking else '</think>' }}"
)
EFFORT = "Reasoning: {{ reasoning_effort | default('medium') }}{% for m in messages %}{{ m.content }}{% endfor %}"
KEEPS = "{% if not clear_thinking | default(true) %}all{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
NONE = "{% for m in messages %}{% if 'thinking' in m %}{{ m.thinking }}{% endif %}{{ m.content }}{% endfor %}"


def prompt(template: str, thinking: Thinking) -> str:
    messages = [Message(MessageId("1"), CHAT, None, "user", "hi")]
    rendering = ChatTemplate(template).rendering(messages, True, variables=thinking.variables)
    return "".join(segment.text for segment in rendering.segments)


@pytest.mark.parametrize(
    ("template", "levels"),
    [(QWEN, ("", OFF, ON)), (DEEPSEEK, ("", OFF, ON)), (EFFORT, ("", *EFFORTS[:3])), (NONE, ()), (KEEPS, ()), ("", ())],
)
def test_levels_are_those_that_the_template_knows(template: str, levels: tuple[str, ...]) -> None:
    assert levels_of(template) == levels
    rendered = {level: prompt(template, Thinking(level)) for level in (*levels[1:], "")} if levels else {}
    assert len({rendered[level] for level in levels[1:]}) == len(levels[1:]), "each makes another prompt"


@pytest.mark.parametrize(("template", "can"), [(KEEPS, True), (QWEN, False), (NONE, False)])
def test_earlier_thinking_is_kept_where_the_template_can(template: str, can: bool) -> None:
    assert can_keep(template) == can
    assert (prompt(template, Thinking(keep=True)) != prompt(template, AS_USUAL)) == can


def test_as_usual_says_nothing_to_the_template() -> None:
    assert AS_USUAL.variables == ""
    assert AS_USUAL.most == -1


def test_off_closes_reasoning_whatever_the_template_does() -> None:
    assert Thinking(OFF, budget=500).most == 0
    assert Thinking(ON, budget=500).most == 500


@pytest.mark.parametrize("odd", [Thinking("loud"), Thinking(budget=-2), Thinking(budget=1 << 40)])
def test_what_a_file_made_up_is_as_usual(odd: Thinking) -> None:
    assert checked(odd) == AS_USUAL
