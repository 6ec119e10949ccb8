"""What can never fit into the context is refused by its number of characters, before it is rendered or tokenized."""

import json

import pytest

from kvdesk.headless import HeadlessEngine
from kvdesk.message import Message, Role, new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, Overflowed, TurnEnded
from kvdesk.settings import Overflow, Sampling
from kvdesk.values import replace
from tests.backends.local.test_turns import of

LONG = "word " * 4_000  # 20,000 characters; 256 tokens hold 16,384 at most
SHORT = Sampling(temperature=0.0, max_tokens=4)
WITHOUT_REASONING = "{% for m in messages %}{{ m.role }}: {{ m.content.split('</think>')[-1] }}\n{% endfor %}"


def said(role: Role, text: str, fields: str = "") -> Message:
    return Message(new_message_id(), new_conversation_id(), None, role, text, fields=fields)


def asked(*before: Message, overflow: Overflow = Overflow.STOP) -> Generate:
    messages = (*before, said("user", "Hi"))
    return Generate(new_conversation_id(), new_message_id(), messages, SHORT, overflow)


def ended(headless: HeadlessEngine, command: Generate) -> TurnEnded:
    return of(headless.do(command), TurnEnded)[0]


CALLS = json.dumps({"tool_calls": [{"function": {"name": "write", "arguments": LONG}}]})
OF_EACH = {
    "system": asked(said("system", LONG)),
    "tools": replace(asked(), tools=json.dumps([{"type": "function", "function": {"description": LONG}}])),
    "continued": replace(asked(), continued=said("assistant", LONG)),
}


@pytest.mark.parametrize(
    "command",
    [
        *(pytest.param(command, id=f"stop-{name}") for name, command in OF_EACH.items()),
        *(
            pytest.param(replace(command, overflow=overflow), id=f"{overflow}-{name}")
            for overflow in (Overflow.SLIDE, Overflow.RECOMPUTE)
            for name, command in OF_EACH.items()
        ),
        pytest.param(replace(asked(overflow=Overflow.SLIDE), messages=(said("user", LONG),)), id="slide-question"),
        pytest.param(asked(said("user", LONG), said("assistant", "I see.")), id="stop-earlier question"),
        pytest.param(asked(said("user", "Hello"), said("assistant", LONG)), id="stop-earlier answer"),
        pytest.param(asked(said("user", "Write"), said("assistant", "", CALLS)), id="stop-earlier call"),
        pytest.param(asked(*(said("user", LONG[:1_000]) for _ in range(20))), id="stop-all together"),
    ],
)
def test_what_cannot_be_evicted_is_counted_first(
    narrow: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, command: Generate
) -> None:
    prompts = narrow.engine.session.loaded.prompts
    for name in ("prompt", "answer_tokens"):
        monkeypatch.setattr(prompts, name, lambda *_: pytest.fail("it was rendered or tokenized"))
    end = ended(narrow, command)
    assert end.state == "failed"
    assert "characters, far more than the 256 tokens of the context hold." in end.note
    (full,) = of(narrow.events, Overflowed)
    assert (full.policy, full.sentence) == (Overflow.STOP, end.note), "the server says context_length_exceeded"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(asked(said("user", LONG), said("assistant", "I see."), overflow=Overflow.SLIDE), id="slide"),
        pytest.param(asked(said("system", LONG), overflow=Overflow.SINKS), id="sinks"),
        pytest.param(
            replace(
                asked(said("user", "Hello"), said("assistant", f"<think>{LONG}</think>Hi.")), template=WITHOUT_REASONING
            ),
            id="reasoning that the template leaves out",
        ),
    ],
)
def test_what_leaves_the_prompt_is_not_counted(narrow: HeadlessEngine, command: Generate) -> None:
    assert ended(narrow, command).state == "complete"
