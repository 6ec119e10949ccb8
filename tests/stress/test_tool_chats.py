"""Ten questions of a chat with tools to a model that calls them: each ends by an answer, a limit or the breaker,
whatever the server does meanwhile. Which of these is the model's affair.

KVDESK_TOOL_MODEL=….gguf   the model (`serving`)
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("mcp")

from kvdesk.conversations.tool_steps import MOST_ALIKE, calls_of, next_call, refusal
from kvdesk.conversations.toolbox import PendingCall, ToolResult
from kvdesk.headless import HeadlessEngine
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling, Settings, ToolBudget
from tests.backends.local import test_chat_tools
from tests.stress.conftest import Row
from tests.stress.serving import TOOL_MODEL, needs_tool_model
from tests.tools.conftest import Heard, local

BUDGET: Final = ToolBudget(calls=5, tokens=2000, seconds=60, call_s=2, result_chars=2000)
SYSTEM: Final = "Write each call of a tool between <tool_call> and </tool_call>, never in a code block."
"""Without it the model writes calls as code, which is text to kvdesk as to llama-server."""
TASKS: Final = (
    "Use the tool echo with the text 'good morning', then tell me what it said.",
    "How many characters does the word 'electroencephalography' have? Use the tool count.",
    "Count the characters of 'one', of 'three' and of 'seventeen' with the tool, one after the other.",
    "Call the tool fail, and go on calling it until it works.",
    "Call the tool hang and tell me its result.",
    "Call the tool long. What does it say?",
    "Which environment variables does the server have? Use the tool environment.",
    "Call the tool die, then echo with the text 'still here'.",
    "Call echo with the text 'again' ten times.",
    "What is the capital of France? You need no tool for that.",
)
pytestmark = [pytest.mark.stress, pytest.mark.timeout(3600), needs_tool_model]


class Chat(test_chat_tools.Chat):
    """With a real model and a real server; calls are allowed without a question."""

    settings = Settings(system_prompt=SYSTEM, tools=BUDGET)

    def __init__(self, headless: HeadlessEngine, heard: Heard, seed: int) -> None:
        self.heard, self.servers = heard, {"test": heard.started(local()).tools}
        super().__init__(headless, Sampling(temperature=0.7, seed=seed, max_tokens=160))

    def begin(self, call: PendingCall) -> None:
        self.calls.append(call)
        found = self.heard.call(call.tool, BUDGET.call_s, BUDGET.result_chars, **json.loads(call.arguments))
        self.service.tool_ended(call.message, ToolResult(found.text, found.ms, found.failed))


@pytest.fixture(scope="module")
def headless() -> Iterator[HeadlessEngine]:
    found = HeadlessEngine()
    found.do(LoadModel(LocalFile(Path(TOOL_MODEL)), ContextSettings(n_ctx=4096)))
    yield found
    found.close()


@pytest.mark.parametrize("n", range(len(TASKS)))
def test_a_question_ends(headless: HeadlessEngine, row: Row, n: int) -> None:
    with Heard() as heard:
        chat = Chat(headless, heard, n)
        ends = chat.ask(TASKS[n])
        branch = chat.service.branch(chat.id)
        why = refusal(branch, BUDGET)
        n_calls = sum(len(calls_of(message)) for message in branch)
        how = ("breaker" if "same call" in why else "limit") if why else "answer"
        row.say(f"{n + 1}: ended by {how} after {n_calls} calls; {branch[-1].text[:150]!r}")
        assert branch[-1].role == "assistant"
        assert next_call(branch) is None
        assert all(end.state == "complete" for end in ends)
        assert n_calls == sum(message.role == "tool" for message in branch), "each call has its result"
        assert len(chat.calls) <= BUDGET.calls
        keys = [call.key for message in branch for call in calls_of(message)]
        assert all(keys.count(key) <= MOST_ALIKE for key in keys)
