"""`kvdesk attach`: another program's cache by its log, live: cells as its engine printed them, requests explained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.doctor import chunks_of
from kvdesk.cli.parser import Parser
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog, follow
from kvdesk.errors import UserError
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when the log ends, 130 at Ctrl+C. UserError for a log that cannot be read."""
    parser = Parser(
        prog="kvdesk attach",
        description=tr(
            "The cache of a llama-server that runs, by its log: each request explained as it ends, and the cells as "
            "the engine printed them last. They need LLAMA_KV_CACHE_DEBUG=1, 2 or 3 in its environment and -lv 5; "
            "such a log holds prompts."
        ),
    )
    parser.add_argument("file", metavar="LOG", help=tr("a file that grows; - reads standard input"))
    parser.add_argument("--text", action="store_true", help=tr("in this terminal, which is the only form"))
    parser.add_argument("--no-follow", action="store_true", help=tr("end at the end of the file"))
    args = parser.parse_args(argv)
    live = LiveLog(lambda text: print(text, flush=True))

    def caught_up() -> None:
        if live.is_quiet:
            said = tr("{n:,} requests were in the log already (kvdesk doctor explains them). Ctrl+C ends.")
            print(said.format(n=live.totals.n), flush=True)
            live.say_cells()
        live.is_quiet = False

    try:
        if args.file == "-":
            chunks = chunks_of(args.file)
        else:
            live.is_quiet = not args.no_follow
            chunks = follow(Path(args.file), caught_up, lambda: args.no_follow)
        for line in read_lines(chunks):
            live.feed(line)
    except OSError as error:
        said = tr("The log {file} cannot be read: {strerror}.")
        raise UserError(said.format(file=args.file, strerror=error.strerror or error)) from error
    finally:
        live.close()
    return 0
