"""The reasoning that a request asks for, by all names that clients use: whether, how much, how many tokens."""

import json
from typing import Any

from kvdesk.server.request.schemas import ChatRequest
from kvdesk.thinking import at_effort, switch
from kvdesk.values import dataclass

_MOST = (1 << 31) - 1
"""Tokens of the largest budget: no context has more."""


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """As in `Generate`: `variables` of the chat template, as a JSON object or "", and `budget` in tokens."""

    variables: str
    budget: int


def options_of(request: ChatRequest, usual: int) -> ReasoningOptions:
    """`usual`: tokens of the reasoning if the request does not specify them; -1: no limit. Seed-OSS's template has
    `thinking_budget`. A budget of 0 is the switch too, and so is an effort; without reasoning the budget is 0: where
    the template has no switch, it is closed where it begins.
    """
    found = dict(request.chat_template_kwargs or {})
    thinking, effort, budget = request.enable_thinking, request.reasoning_effort, request.reasoning_budget_tokens
    for given in (request.thinking, request.reasoning):
        if isinstance(given, bool):
            thinking = given if thinking is None else thinking
        elif isinstance(given, dict):
            thinking = _first(thinking, _switch(given))
            effort = _first(effort, given["effort"] if isinstance(given.get("effort"), str) else None)
            budget = _first(budget, _tokens(given.get("budget_tokens")), _tokens(given.get("max_tokens")))
    budget = _first(budget, _tokens(found.get("thinking_budget")))
    if effort == "none":
        thinking = _first(thinking, False)
        effort = None
    if effort is not None:
        found = at_effort(effort) | found
    switched = _first(*(found[name] for name in ("enable_thinking", "thinking") if isinstance(found.get(name), bool)))
    thinking = _first(switched, thinking)
    if budget is None and usual >= 0:
        budget = usual
    if budget is not None:
        budget = min(budget, _MOST)
    if thinking is False or (thinking is None and budget == 0):
        thinking, budget = False, 0
    elif effort is not None:
        thinking = True
    if thinking is not None:
        found = switch(thinking) | found
    if budget is not None and budget >= 0:
        found.setdefault("thinking_budget", budget)
    return ReasoningOptions(json.dumps(found, ensure_ascii=False) if found else "", -1 if budget is None else budget)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _switch(given: dict[str, Any]) -> bool | None:
    if given.get("type") in ("enabled", "disabled"):
        return bool(given["type"] == "enabled")
    return given["enabled"] if isinstance(given.get("enabled"), bool) else None


def _tokens(value: object) -> int | None:
    """A number of tokens; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= -1 else None
