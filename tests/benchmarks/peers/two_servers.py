"""`python -m tests.benchmarks.peers.two_servers`: `kvdesk serve` beside another server, over HTTP.

Both run already, with the same model, context and threads (`URL URL`), or are started here (`--llama-server FILE`).
Rounds go over all rows, and another server begins each time. A row fails where the whole interval of kvdesk over the
other is below `BAR`.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from kvdesk.cli import options
from kvdesk.errors import KvdeskError
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.peer import Peer, answer
from tests.benchmarks.peers.rows import QUESTIONS, TURNS, Measured, Row, Texts
from tests.benchmarks.peers.run import Plan, compare, first_number
from tests.benchmarks.peers.server import ServerPeer
from tests.benchmarks.peers.started_server import kvdesk_serve, llama_server
from tests.benchmarks.peers.table import PRIMARY, Line, as_json, text

BAR: Final = 0.98
SETTINGS: Final = ContextSettings(n_ctx=8192, n_seq_max=4)
"""Of servers that are started here."""
CALLS: Final = 2
CALL_TOKENS: Final = 40
TOKENS: Final = 16
"""Of an answer."""


def _tool(name: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS: Final = (
    _tool("read_log", day={"type": "string"}, lines={"type": "integer"}),
    _tool("set_lamp", brightness={"type": "integer"}, colour={"enum": ["white", "red", "green"]}),
    _tool("write_letter", to={"type": "string"}, text={"type": "string"}),
)
COLOURS: Final = ("green", "red")


def _shown(number: int, colour: str) -> list[dict[str, Any]]:
    """A call as the model is to make it: not every server forces one."""
    function = {"name": "set_lamp", "arguments": json.dumps({"brightness": number, "colour": colour})}
    call = {"id": f"call0000{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": f"Use a tool. Make the lamp {colour}."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": f"It is {colour}."},
        {"role": "assistant", "content": f"The lamp is {colour}."},
    ]


SHOWN: Final = (*_shown(5, "white"), *_shown(7, "red"))


def _at_once(name: str, n_clients: int, n_turns: int, peer: Peer, texts: Texts) -> list[Measured]:
    """Tokens a second of so many chats, prompts included."""

    def chat(which: int) -> int:
        n = 0
        for turn in range(n_turns):
            asked = QUESTIONS[turn] if turn else texts.opening(which, QUESTIONS[which])
            n += answer(peer, texts.chat(which), asked, TOKENS).n_tokens
        peer.forget(texts.chat(which))
        return n

    began = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        n_written = sum(pool.map(chat, range(n_clients)))
    return [Measured(name, n_written / (time.perf_counter() - began), "tok/s")]


def _first_call(name: str, peer: Peer, texts: Texts) -> list[Measured]:
    assert isinstance(peer, ServerPeer)
    seconds = []
    for which in range(CALLS):
        asked = {"role": "user", "content": texts.opening(which, f"Use a tool. Make the lamp {COLOURS[which]} again.")}
        seconds.append(peer.first_call_s([*SHOWN, asked], TOOLS, CALL_TOKENS))
    return [Measured(name, statistics.median(seconds), "s")]


def _row(identity: str, name: str, n_clients: int, n_turns: int) -> Row:
    return Row(identity, name, (name,), partial(_at_once, name, n_clients, n_turns))


CALL_NAME: Final = "first delta of a call"
ROWS: Final = (
    _row("turns", "ten turns of one client", 1, TURNS),
    _row("four", "four clients, three turns each", 4, 3),
    _row("eight", "eight streams at once", 8, 1),
    Row("call", CALL_NAME, (CALL_NAME,), partial(_first_call, CALL_NAME)),
)


def failed(lines: Sequence[Line], other: str) -> list[str]:
    """The names of those that were not measured, or whose whole interval is below the bar."""
    ratios = [(line.name, line.times_as_fast(other)) for line in lines]
    return [name for name, ratio in ratios if ratio is None or (ratio.high or ratio.value) < BAR]


def compared(peers: dict[str, Peer], plan: Plan) -> list[Line]:
    """The lines of the plan. Raises KvdeskError where a server cannot be asked."""
    for server in peers.values():
        answer(server, "first", "Hello", TOKENS)  # a server's first request is slower
    say = partial(print, file=sys.stderr, flush=True)
    return compare(peers, plan, Texts(1.0, first_number()), say, time.monotonic())


def main(argv: Sequence[str]) -> int:
    """Exit code 0 if no row fails, 1 if one does, 2 if a server cannot be asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="*", metavar="URL", help="of kvdesk serve and of the other server, which run")
    parser.add_argument("--llama-server", type=Path, metavar="FILE", help="or its program: both are started")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no row is begun")
    parser.add_argument("--only", nargs="+", choices=[row.id for row in ROWS], default=[])
    parser.add_argument("--json", action="store_true", help="everything measured as one JSON object")
    options.add_model(parser)
    args = parser.parse_args(argv)
    if len(args.urls) != (0 if args.llama_server else 2):
        parser.error("two addresses, or --llama-server FILE")
    rows = tuple(row for row in ROWS if not args.only or row.id in args.only)
    with ExitStack() as stack:
        try:
            servers = _servers(args, stack)
            lines = compared({server.name: server for server in servers}, Plan(rows, (0,), args.rounds, args.minutes))
        except KvdeskError as error:
            print(error, file=sys.stderr)
            return 2
    about = {server.name: server.about for server in servers}
    behind = failed(lines, servers[1].name)
    if args.json:
        print(json.dumps({"peers": about, "rows": as_json(lines, about)}, indent=2))
    else:
        print("\n".join(text(lines, about)))
        print(f"below {BAR}: {', '.join(behind) or 'none'}")
    return 1 if behind else 0


def _servers(args: argparse.Namespace, stack: ExitStack) -> list[ServerPeer]:
    """kvdesk and the other one, asked or started. Raises KvdeskError."""
    servers: list[ServerPeer] = []

    def add(server: ServerPeer) -> None:
        stack.callback(server.close)
        servers.append(server)

    if args.llama_server:
        model = options.model_path(args)
        add(kvdesk_serve(model, SETTINGS))
        add(llama_server(args.llama_server, model, SETTINGS))
        return servers
    add(ServerPeer(args.urls[0], name=PRIMARY))
    add(ServerPeer(args.urls[1]))
    for server in servers:
        server.check()
    return servers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
