"""A real tool server, made with `mcp`, whose list of tools grows while it runs: it tells subscribers. Over HTTP with
`http`, where it says its port first.
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("growing")


def shout(text: str) -> str:
    """Says the text aloud."""
    return text.upper()


@server.tool()
async def grow(context: Context) -> str:
    """Adds a tool."""
    server.add_tool(shout)
    await context.notify_tools_changed()
    return "There is another one."


if __name__ == "__main__":
    if "http" in sys.argv:
        door = socket.create_server(("127.0.0.1", 0))
        print(door.getsockname()[1], flush=True)  # noqa: T201 - its port
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([door])
    else:
        server.run()
