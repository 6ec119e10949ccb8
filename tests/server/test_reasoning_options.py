"""Whether and how much a model reasons, by every name that clients have for it."""

import json
from typing import Any

import pytest

from kvdesk.server.request.reasoning_options import options_of
from kvdesk.server.request.schemas import ChatRequest
from kvdesk.thinking import at_effort, switch

ON = switch(True)
OFF = {**switch(False), "thinking_budget": 0}


@pytest.mark.parametrize(
    ("said", "budget", "variables"),
    [
        ({}, -1, {}),
        ({"thinking_budget_tokens": 64}, 64, {"thinking_budget": 64}),
        ({"reasoning_budget_tokens": 64}, 64, {"thinking_budget": 64}),
        ({"reasoning_budget": -1}, -1, {}),
        ({"reasoning_budget_tokens": 1e19}, (1 << 31) - 1, {"thinking_budget": (1 << 31) - 1}),
        ({"thinking_budget": 64.0}, 64, {"thinking_budget": 64}),
        ({"thinking_token_budget": 64}, 64, {"thinking_budget": 64}),
        ({"chat_template_kwargs": {"thinking_budget": 64}}, 64, {"thinking_budget": 64}),
        ({"reasoning_budget": 0}, 0, OFF),
        ({"thinking_budget": 0, "enable_thinking": True}, 0, {**ON, "thinking_budget": 0}),
        ({"thinking": {"type": "enabled", "budget_tokens": 64}}, 64, {**ON, "thinking_budget": 64}),
        ({"thinking": {"type": "disabled"}}, 0, OFF),
        ({"thinking": False}, 0, OFF),
        ({"reasoning": {"effort": "low", "max_tokens": 64}}, 64, {**ON, **at_effort("low"), "thinking_budget": 64}),
        ({"reasoning": {"enabled": False}}, 0, OFF),
        ({"reasoning_effort": "none"}, 0, OFF),
        ({"reasoning_effort": "high"}, -1, {**ON, **at_effort("high")}),
        ({"reasoning_effort": "high", "enable_thinking": False}, 0, {**OFF, **at_effort("high")}),
        ({"thinking": "much", "reasoning": 3}, -1, {}),
    ],
)
def test_each_name_means_the_same(said: dict[str, Any], budget: int, variables: dict[str, Any]) -> None:
    request = ChatRequest.model_validate({"messages": [{"role": "user", "content": "Hi"}], **said})
    found = options_of(request, -1)
    assert found.budget == budget
    assert (json.loads(found.variables) if found.variables else {}) == variables
    assert not request.passed_over()


def test_a_request_that_does_not_say_has_the_budget_of_the_server() -> None:
    def budget(**said: Any) -> int:
        return options_of(ChatRequest.model_validate({"messages": [{"role": "user"}], **said}), 100).budget

    assert budget() == 100
    assert budget(thinking={"type": "enabled"}) == 100
    assert budget(thinking_budget=5) == 5
    assert budget(thinking_budget=-1) == -1
    assert budget(enable_thinking=False) == 0
