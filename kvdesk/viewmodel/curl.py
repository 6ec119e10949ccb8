"""A request of the server as one line for a terminal. No Qt."""

import json
import sys
from typing import Final

_BODY: Final = {"messages": [{"role": "user", "content": "Hello"}]}


def curl_line(address: str, key: str, *, windows: bool = sys.platform == "win32") -> str:
    """Asks for an answer. `address`: such as http://127.0.0.1:8080/v1. `windows`: quoted as cmd wants it."""
    body = json.dumps(_BODY)
    quoted = '"' + body.replace('"', '\\"') + '"' if windows else f"'{body}'"
    headers = (f"Authorization: Bearer {key}", "Content-Type: application/json")
    return " ".join((f"curl {address}/chat/completions", *(f'-H "{header}"' for header in headers), f"-d {quoted}"))
