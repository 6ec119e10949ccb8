"""Sentences about tools: prices, budgets, states. Pure."""

import json
from collections.abc import Sequence
from typing import Final

from kvdesk.conversations.tool_steps import Spent
from kvdesk.protocol.prompt import ToolPrice
from kvdesk.quantities import seconds_text, tokens_text
from kvdesk.settings import ToolBudget, ToolServer
from kvdesk.tools.servers import ServerState, Tool, command_line, visible
from kvdesk.translation import marked, plural, tr

LARGE: Final = 0.1
"""Of the context: schemas that take more are proposed to be left out."""
_STATES: Final = {
    "off": marked("Off"),
    "starting": marked("Starting…"),
    "on": marked("Running"),
    "failed": marked("Failed"),
}
_SHOWN_ARGUMENTS: Final = 80
_SHOWN_NAMES: Final = 5


def price_text(n_tools: int, price: ToolPrice | None) -> str:
    """What the schemas of a server cost, such as “12 tools · 1,234 tokens · 3.1 s to read”."""
    tools = plural("1 tool", "%n tools", n_tools)
    if price is None:
        return tools
    tokens = tokens_text(price.n_tokens)
    if price.ms is None:
        return f"{tools}  ·  {tokens}"
    return f"{tools}  ·  {tokens}  ·  " + tr("{time} to read").format(time=seconds_text(price.ms / 1e3))


def again_text(price: ToolPrice) -> str:
    """What switching it off reads again."""
    time = "" if price.again_ms is None else f", {seconds_text(price.again_ms / 1e3)}"
    tokens = tokens_text(price.n_again)
    return tr("Switched off, {tokens} of this chat must be read again{time}.").format(tokens=tokens, time=time)


def read_again_text(price: ToolPrice) -> str:
    """What a change of the tools reads again."""
    time = "" if price.again_ms is None else f", {seconds_text(price.again_ms / 1e3)}"
    said = plural(
        "1 token of this chat is read again{time}.", "%n tokens of this chat are read again{time}.", price.n_again
    )
    return said.format(time=time)


def changed_text(server: str, before: Sequence[Tool], now: Sequence[Tool]) -> str:
    """Which tools a running server has added, removed and changed."""
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in now}
    parts = (
        (marked("added {names}"), [name for name in new if name not in old]),
        (marked("removed {names}"), [name for name in old if name not in new]),
        (marked("changed {names}"), [name for name in new if name in old and old[name] != new[name]]),
    )
    said = "; ".join(tr(text).format(names=_listed(names)) for text, names in parts if names)
    return tr("The server {server} changed its tools: {said}.").format(server=visible(server), said=said)


def _listed(names: Sequence[str]) -> str:
    shown = tr(", ").join(map(visible, names[:_SHOWN_NAMES]))
    return (
        shown
        if len(names) <= _SHOWN_NAMES
        else tr("{names} and {n} more").format(names=shown, n=len(names) - _SHOWN_NAMES)
    )


def is_large(n_tokens: int, n_ctx: int) -> bool:
    """Whether schemas take so much of a context that some are better left out."""
    return bool(n_ctx) and n_tokens > LARGE * n_ctx


def budget_text(spent: Spent, budget: ToolBudget) -> str:
    """What tools cost for the last question so far, and may cost."""
    return tr("{calls} of {most_calls} calls  ·  {tokens} of {most_tokens} tokens  ·  {s} of {most_s} s").format(
        calls=spent.calls,
        most_calls=budget.calls,
        tokens=f"{spent.tokens:,}",
        most_tokens=f"{budget.tokens:,}",
        s=f"{spent.seconds:.1f}",
        most_s=budget.seconds,
    )


def state_text(state: ServerState | None) -> str:
    """The state of a server, with what a person should know of it."""
    said = _STATES["off" if state is None else state.state]
    return " · ".join(filter(None, (tr(said), "" if state is None else state.sentence)))


def place_of(server: ToolServer) -> str:
    """The command of a server, or its address."""
    return visible(server.url) or command_line(server)


def arguments_text(arguments: str) -> str:
    """Arguments of a call in one line: names and values."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        text = arguments
    else:
        text = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items())
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_ARGUMENTS else text[:_SHOWN_ARGUMENTS] + "…"


def pretty(arguments: str) -> str:
    """Arguments of a call, one in a line."""
    try:
        return json.dumps(json.loads(arguments or "{}"), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return arguments
