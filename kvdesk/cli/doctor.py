"""`kvdesk doctor`: the log of another program, request by request: what missed the cache, what it cost, what helps."""

import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Final

from kvdesk.cli.parser import Parser
from kvdesk.engine_log import report
from kvdesk.engine_log.causes import explain_request
from kvdesk.engine_log.events import read_events
from kvdesk.engine_log.findings import HITS
from kvdesk.engine_log.lines import CHUNK, read_lines
from kvdesk.engine_log.server_causes import has_facts
from kvdesk.engine_log.sources import LogRequests, read_requests
from kvdesk.errors import UserError
from kvdesk.translation import tr

_GZIP: Final = b"\x1f\x8b"


def main(argv: Sequence[str]) -> int:
    """Exit code 0, also where requests missed. UserError for a log without a request."""
    parser = Parser(
        "doctor",
        tr(
            "Explains the log of llama-server, Ollama, LM Studio, KoboldCpp, TabbyAPI, oMLX or llama-cpp-python, "
            "request by request: what missed the cache, what it cost and what helps. Of vLLM and SGLang, whose logs "
            "show no requests, it explains the numbers of all together. A pasted fragment is enough."
        ),
    )
    parser.add_argument("file", metavar="FILE", help=tr("the log; - reads standard input"))
    parser.flag("--json", tr("one object per line: each request, then the totals"))
    parser.flag("--misses", tr("only requests that missed, then the totals"))
    args = parser.parse_args(argv)
    reader, totals = LogRequests(), report.Totals()
    for request in read_requests(read_events(read_lines(chunks_of(args.file))), reader):
        finding = explain_request(request, request.server)
        totals.add(request, finding)
        if args.misses and finding.cause in HITS:
            continue
        if args.json:
            print(json.dumps(report.request_json(request, finding)))
        else:
            print("\n".join(report.request_lines(request, finding)))
    if not totals.score.requests and not any(map(has_facts, reader.servers)):
        raise UserError(
            tr(
                "{file} contains no request of llama-server, Ollama, LM Studio, KoboldCpp, TabbyAPI, oMLX or "
                "llama-cpp-python, and no report of vLLM or SGLang. llama-server logs requests from -lv 3 on, Ollama "
                "with OLLAMA_DEBUG=1, llama-cpp-python with verbose=True. For other servers, kvdesk proxy compares the "
                "requests."
            ).format(file=tr("standard input") if args.file == "-" else args.file)
        )
    if args.json:
        print(json.dumps(report.summary_json(totals, reader.servers)))
    else:
        print("\n".join(report.summary_lines(totals, reader.servers)))
    return 0


def chunks_of(file: str) -> Iterator[bytes]:
    """The bytes of a log in pieces, as they come; unpacked if it was rotated and packed with gzip. Raises UserError if
    it cannot be read.
    """
    if file == "-":
        descriptor = sys.stdin.fileno()  # a reader of it that waits on another thread keeps Python from ending
        yield from iter(lambda: os.read(descriptor, CHUNK), b"")
        return
    try:
        with Path(file).open("rb") as log:
            if log.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
                yield from _unpacked(log)
            else:
                yield from iter(lambda: log.read(CHUNK), b"")
    except (OSError, zlib.error) as error:
        raise unreadable(file, error) from error


def _unpacked(log: BufferedReader) -> Iterator[bytes]:
    """A log may be cut anywhere, so that it has no end. Raises OSError and zlib.error if it is damaged."""
    try:
        with gzip.GzipFile(fileobj=log) as packed:
            yield from iter(lambda: packed.read1(CHUNK), b"")
    except EOFError:
        pass


def check_readable(file: str) -> None:
    """Raises UserError if a log cannot be opened. A pipe is opened once, or who writes into it ends."""
    try:
        if not Path(file).is_fifo():
            Path(file).open("rb").close()
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(file: str, error: Exception) -> UserError:
    """The sentence about a log that cannot be read."""
    why = getattr(error, "strerror", None) or error
    return UserError(tr("The log {file} cannot be read: {strerror}.").format(file=file, strerror=why))
