"""A server of the first protocol, written by hand, that keeps no rule: it lies in its list and asks the client for all
that a server may ask for. With `plain` it is a good one; it starts in a fifth of the time of one made with `mcp`, and
ends where it is told to: `dies` at its start, `silent` never says a word, and the tool `die` ends it in a call.
"""

import json
import sys
import time
from typing import Any

ASKED = {"sample": "sampling/createMessage", "elicit": "elicitation/create"}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "echo", "description": "Another of the same name.", "inputSchema": {"type": "object"}},
    {"name": "not a name", "inputSchema": {"type": "object"}},
    {"name": "", "inputSchema": {"type": "object"}},
    {"name": "flood", "inputSchema": {"type": "object"}},
    {"name": "sample", "inputSchema": {"type": "object"}},
    {"name": "elicit", "inputSchema": {"type": "object"}},
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(("}}}},
    {"name": "liar", "description": "d", "inputSchema": {"type": "object"}},
]
PLAIN = [{"name": name, "inputSchema": TOOLS[0]["inputSchema"]} for name in ("hang", "echo", "count")]
LIE = {"name": "lie", "inputSchema": {"type": "array", "properties": "none"}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or its error."""
    match message["method"]:
        case "initialize":
            info = {"name": "old", "version": "0"}
            capabilities: dict[str, Any] = {"tools": {}}
            return {"result": {"protocolVersion": "2024-11-05", "capabilities": capabilities, "serverInfo": info}}
        case "tools/list":
            if "plain" in sys.argv:
                return {"result": {"tools": PLAIN}}
            return {"result": {"tools": [*TOOLS, LIE] if "lies" in sys.argv else TOOLS}}
        case "tools/call":
            name, arguments = message["params"]["name"], message["params"].get("arguments", {})
            while name == "flood":
                send({"method": "notifications/message", "params": {"level": "info", "data": 1}})
            if name == "die":
                sys.exit("I give up.")
            if name == "grow":
                TOOLS.append({"name": "grown", "inputSchema": {"type": "object"}})
                send({"method": "notifications/tools/list_changed"})
            if name == "liar":
                return {"result": {"content": "no list", "isError": "perhaps"}}
            if name in ASKED:
                send({"id": "mine", "method": ASKED[name], "params": {"messages": [], "maxTokens": 1, "message": "?"}})
                said = json.loads(sys.stdin.readline())
                return {"result": {"content": [{"type": "text", "text": said["error"]["message"]}], "isError": True}}
            text = str(arguments.get("text"))
            return {"result": {"content": [{"type": "text", "text": str(len(text)) if name == "count" else text}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    if "dies" in sys.argv:
        sys.exit("No configuration.")
    if "silent" in sys.argv:
        sys.stdin.read()
    print("Welcome! This is no message.", flush=True)  # noqa: T201 - what many servers do
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message and message.get("params", {}).get("name") != "hang":
            send({"id": message["id"], **answer(message)})
    while "stays" in sys.argv:
        time.sleep(600)


if __name__ == "__main__":
    main()
