"""Answers that call tools: results and further answers, limits, Stop, and what is kept."""

import json

import pytest

from kvdesk.call_format import GENERIC
from kvdesk.chat import Conversation
from kvdesk.conversations.service import ConversationService
from kvdesk.conversations.tool_steps import calls_of, without_calls
from kvdesk.conversations.toolbox import PendingCall, ToolResult
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.protocol.chat import Generate, TurnStarted
from kvdesk.settings import Settings, ToolBudget
from tests.conversations.conftest import Held

TOOLS = json.dumps([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])


class Box:
    """A toolbox whose calls a test ends."""

    def __init__(self) -> None:
        self.begun: list[PendingCall] = []
        self.cancelled: list[MessageId] = []

    def offered(self, conversation: Conversation) -> str:
        return TOOLS if conversation.tools else ""

    def server_of(self, conversation: Conversation, tool: str) -> str:  # noqa: ARG002
        return "maths" if tool == "add" else ""

    def begin(self, call: PendingCall) -> None:
        self.begun.append(call)

    def cancel(self, message: MessageId) -> None:
        self.cancelled.append(message)


class WithTools(Held):
    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self.box = Box()
        self.service = ConversationService(
            self.commands.append, self.stopped.append, lambda: self.settings, n_colours=8, toolbox=self.box
        )
        self.chat = self.service.create()
        self.service.choose_tools(self.chat, ("maths",))

    def calls(self, asked: Generate, *arguments: dict[str, int], said: str = "") -> None:
        """The model answers with calls."""
        self.service.take([TurnStarted(asked.conversation, asked.answer, calls=GENERIC)])
        text = GENERIC.written([("add", one) for one in arguments])
        self.answer(asked, f"{said}\n{text}" if said else text)

    def result(self, text: str) -> None:
        self.service.tool_ended(self.box.begun[-1].message, ToolResult(text, 12))

    def roles(self) -> list[str]:
        return [message.role for message in self.service.branch(self.chat)]


@pytest.fixture
def tools() -> WithTools:
    return WithTools().listen()  # type: ignore[return-value]


def test_a_call_has_a_result_and_then_the_model_answers(tools: WithTools) -> None:
    first = tools.say("What is 2 + 3?", tools.chat)
    assert (first.tools, first.choice is not None) == (TOOLS, True)
    tools.calls(first, {"a": 2, "b": 3}, said="Let me see.")
    [call] = tools.box.begun
    assert (call.tool, json.loads(call.arguments)) == ("add", {"a": 2, "b": 3})
    assert tools.service.answers_of(tools.chat) == [call.message], "a call runs as an answer does"
    tools.result("5")
    second = tools.asked[-1]
    called, result = second.messages[-2:]
    assert json.loads(called.fields)["content"] == "Let me see."
    assert called.tokens == (0, 1), "the ids that the model wrote"
    identity = json.loads(called.fields)["tool_calls"][0]["id"]
    assert json.loads(result.fields) == {"tool_call_id": identity, "name": "add"}
    assert (result.role, result.text) == ("tool", "5")
    tools.answer(second, "It is 5.")
    assert tools.roles() == ["user", "assistant", "tool", "assistant"]
    shown = tools.service.branch(tools.chat)
    assert without_calls(shown[1]) == "Let me see."
    assert (shown[2].use.server, shown[2].use.ms, shown[2].use.failed) == ("maths", 12, False)


def test_several_calls_of_an_answer_are_made_one_after_the_other(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1}, {"a": 2})
    assert len(tools.box.begun) == 1
    tools.result("one")
    assert len(tools.box.begun) == 2
    assert len(tools.asked) == 1, "not before all have results"
    tools.result("two")
    assert [message.text for message in tools.asked[-1].messages[-2:]] == ["one", "two"]


def test_without_tools_a_call_is_text(tools: WithTools) -> None:
    tools.service.choose_tools(tools.chat, ())
    asked = tools.say("Add", tools.chat)
    assert (asked.tools, asked.choice) == ("", None)
    tools.answer(asked, GENERIC.written([("add", {"a": 1})]))
    assert tools.roles() == ["user", "assistant"]
    assert calls_of(tools.last(tools.chat)) == ()


def test_the_third_equal_call_is_not_run_and_the_model_must_answer(tools: WithTools) -> None:
    asked = tools.say("Add", tools.chat)
    for n in range(2):
        tools.calls(asked, {"a": 1})
        assert len(tools.box.begun) == n + 1
        tools.result("1")
        asked = tools.asked[-1]
    tools.calls(asked, {"a": 1})
    assert len(tools.box.begun) == 2
    last = tools.asked[-1]
    assert last.messages[-1].text.startswith("The same call was made 3 times")
    assert (last.tools, last.choice) == (TOOLS, None), "the prompt is the same, and nothing may be called"
    tools.calls(last, {"a": 1})
    assert tools.roles()[-1] == "assistant", "it ends"


@pytest.mark.parametrize(
    ("budget", "tokens"), [(ToolBudget(calls=1), 0), (ToolBudget(tokens=100), 100), (ToolBudget(seconds=1), 0)]
)
def test_behind_a_limit_the_model_must_answer(budget: ToolBudget, tokens: int) -> None:
    tools = WithTools(Settings(tools=budget))
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    message = tools.box.begun[-1].message
    tools.service.tool_ended(message, ToolResult("1", 1000))
    if tokens:
        tools.service.take([MessageSpans(tools.chat, 0, (MessageSpan(message, 20, 20 + tokens, 21, ()),))])
        assert tools.service.branch(tools.chat)[2].use.n_tokens == tokens
        tools.calls(tools.asked[-1], {"a": 2})
    assert tools.asked[-1].choice is None
    assert len(tools.box.begun) == 1
    tools.answer(tools.asked[-1], "Enough.")
    assert tools.say("And now?", tools.chat).choice is not None, "each question has the whole of it"


def test_stop_ends_a_call_and_nothing_follows(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    tools.service.send(tools.chat, "Later")
    tools.service.stop(tools.chat)
    assert tools.box.cancelled == [tools.box.begun[0].message]
    assert tools.last(tools.chat).state == "stopped"
    tools.result("too late")
    assert (tools.last(tools.chat).text, len(tools.asked)) == ("", 1)
    assert tools.queued(tools.chat) == ("Later",)
    tools.service.release_queue(tools.chat)
    assert [message.text for message in tools.asked[-1].messages][-2:] == [
        "The call was ended before it had a result.",
        "Later",
    ]


def test_stop_between_the_calls_of_an_answer_begins_none_of_the_others(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1}, {"a": 2})
    tools.service.stop(tools.chat)
    assert len(tools.box.begun) == 1


def test_a_chat_that_is_deleted_ends_its_call(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    tools.service.delete(tools.chat)
    assert tools.box.cancelled
    tools.result("5")
    assert len(tools.asked) == 1


def test_it_is_answered_again_from_the_result(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    tools.result("1")
    tools.answer(tools.asked[-1], "One.")
    tools.service.turns.regenerate(tools.chat)
    assert tools.asked[-1].messages[-1].role == "tool"
    tools.answer(tools.asked[-1], "It is one.")
    assert len(tools.service.alternatives(tools.chat, tools.last(tools.chat).id)) == 2


def test_several_answers_at_once_call_nothing(tools: WithTools) -> None:
    tools.answer(tools.say("Hi", tools.chat), "Hello.")
    tools.service.turns.regenerate(tools.chat, 2)
    assert [asked.choice for asked in tools.asked[-2:]] == [None, None]
    assert tools.asked[-1].tools == TOOLS


def test_a_fork_has_calls_results_and_tools(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    tools.result("1")
    tools.answer(tools.asked[-1], "One.")
    fork = tools.service.fork(tools.chat, None)
    assert fork is not None
    assert tools.service.get(fork).tools == ("maths",)
    assert [calls_of(m) for m in tools.service.branch(fork)] == [calls_of(m) for m in tools.service.branch(tools.chat)]


def test_an_answer_in_other_words_calls_nothing(tools: WithTools) -> None:
    tools.calls(tools.say("Add", tools.chat), {"a": 1})
    tools.result("1")
    tools.answer(tools.asked[-1], "One.")
    called = tools.service.branch(tools.chat)[1]
    edited = tools.service.turns.edit_answer(tools.chat, called.id, "I know that.")
    assert edited is not None
    assert tools.last(tools.chat).fields == ""


def test_damaged_fields_are_no_calls() -> None:
    for fields in ("", '{"tool_calls": 5}', '{"tool_calls": [{"function": {"name": 5}}]}'):
        message = Message(MessageId("m"), ConversationId("c"), None, "assistant", "Hi", fields=fields)
        assert calls_of(message) == ()
        assert without_calls(message) == "Hi"
