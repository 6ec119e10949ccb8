"""`kvdesk proxy`: in front of another server, why its prompts are read again, request by request, until Ctrl+C."""

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from kvdesk.cli import options
from kvdesk.cli.ending import as_interrupt
from kvdesk.cli.output import Log, tell
from kvdesk.cli.parser import Parser
from kvdesk.protocol.servers import is_readable_on_the_way, server_url
from kvdesk.proxy.report import Finding
from kvdesk.translation import tr

DEFAULT_PORT: Final = 8090


def main(argv: Sequence[str]) -> int:
    """Exit code 0; 1 if the log is not whole. Raises UserError for an address that is none, a port that is taken, a log
    that cannot be made.
    """
    parser = Parser(
        "proxy",
        tr(
            "Runs in front of any server of OpenAI's or Anthropic's protocol until Ctrl+C. It compares the requests "
            "that pass, and shows which message, field and character breaks a prefix, and what that costs. It "
            "changes and writes nothing."
        ),
    )
    parser.add_argument("--to", required=True, metavar="URL", help=tr("the server, such as http://127.0.0.1:8080"))
    options.add_port(parser, DEFAULT_PORT)
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help=tr("write one JSON object per request, which only you can read")
    )
    args = parser.parse_args(argv)
    options.check_port(parser, args)
    url = server_url(args.to)
    from kvdesk.proxy.server import ProxyServer

    with closing(Log(args.log)) as log:
        server = ProxyServer(url, args.port, lambda found: _tell(found, log))
        listening = server.listen()
        tell(tr("kvdesk proxy passes requests at {url} on to {to}").format(url=server.url, to=url))
        if is_readable_on_the_way(url):
            tell(tr("The connection to {url} is not encrypted.").format(url=url))
        with suppress(KeyboardInterrupt), as_interrupt():
            server.run(listening)
        tell("\n".join(server.reporter.lines))
    return int(not log.is_whole)


def _tell(found: Finding, log: Log) -> None:
    tell(found.line)
    log.write(json.dumps(found.as_json()).encode() + b"\n")
