"""A real tool server over HTTP that wants a key. Says its port, then serves."""

import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

KEY = "Bearer secret"
server = MCPServer("web")


@server.tool()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


def main() -> None:
    app = server.streamable_http_app()

    async def checked(
        scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] == "http" and (b"authorization", KEY.encode()) not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(checked, log_level="error")).run([listening])


if __name__ == "__main__":
    main()
