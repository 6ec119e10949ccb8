"""Tool servers (MCP), what the user allowed them, and the limits of tools."""

from typing import Literal

from pydantic import Field

from kvdesk.settings.table import Table
from kvdesk.translation import marked


class ToolServer(Table):
    """A tool server (MCP): a program on this computer, or an address.

    env, headers  names of what it gets beside; their values are kept as keys are
    left_out      names of its tools that no chat is offered
    signed_in     the keyring has a token for its address
    """

    name: str = Field("", max_length=60)
    command: str = Field("", max_length=2000, description="Program; empty for a server with an address")
    args: tuple[str, ...] = ()
    folder: str = Field("", max_length=2000, description="It starts there; empty: the person's own")
    env: tuple[str, ...] = ()
    url: str = Field("", max_length=2000)
    headers: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    signed_in: bool = False


class ToolGrant(Table):
    """What a user allowed for good. bound: the server's command or address (`kvdesk.tools.servers.bound_to`), so that
    another one of the same name has it not.
    """

    bound: str = ""
    what: Literal["start", "tool", "server"] = "start"
    tool: str = ""


class ToolBudget(Table):
    """How far an answer may go with tools before a user is asked something again."""

    calls: int = Field(
        20,
        ge=1,
        le=1000,
        title=marked("Calls for one question"),
        description=marked("After that the model answers without tools"),
    )
    tokens: int = Field(
        8000,
        ge=100,
        le=1_000_000,
        title=marked("Tokens of results for one question"),
        description=marked("How much of the results the model reads before it must answer"),
    )
    seconds: int = Field(
        300,
        ge=1,
        le=86_400,
        title=marked("Seconds of tools for one question"),
        description=marked("Waiting for you is not counted"),
    )
    call_s: int = Field(
        60, ge=1, le=3600, title=marked("Seconds for one call"), description=marked("After that it is ended")
    )
    result_chars: int = Field(
        16_000,
        ge=500,
        le=1_000_000,
        title=marked("Characters of a result"),
        description=marked("Longer results are cut, and the model gets a note"),
    )
