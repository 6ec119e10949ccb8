"""A real tool server, made with `mcp`, that does what its argument says. Run as a child of the tests."""

import os
from typing import Any

import anyio
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = {
    "echo": ("Says the text again.", TEXT),
    "count": ("Counts the characters of a text.", TEXT),
    "fail": ("Fails.", EMPTY),
    "environment": ("Names of the variables that this server has.", EMPTY),
    "hang": ("Never answers.", EMPTY),
    "die": ("Ends the server.", EMPTY),
    "long": ("Answers with a million characters.", EMPTY),
}


def said(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


async def call(_context: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "echo":
            return said(str(arguments.get("text")))
        case "count":
            return said(str(len(str(arguments.get("text")))))
        case "fail":
            return said("No such file.", failed=True)
        case "environment":
            return said(" ".join(sorted(os.environ)))
        case "hang":
            await anyio.sleep_forever()
        case "die":
            os._exit(3)
        case "long":
            return said("x" * 1_000_000)
    return said("Done.")


async def main() -> None:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        tools = [types.Tool(name=name, description=about, input_schema=of) for name, (about, of) in TOOLS.items()]
        return types.ListToolsResult(tools=tools)

    server: Server[Any] = Server("test", on_list_tools=list_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
