"""`kvdesk attach`: another program's cache by its log, live: cells as its engine printed them, requests explained."""

import threading
from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.doctor import check_readable, chunks_of, unreadable
from kvdesk.cli.output import tell
from kvdesk.cli.parser import Parser
from kvdesk.cli.window import can_open
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog, follow
from kvdesk.translation import plural, tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when the log ends, 130 at Ctrl+C. UserError for a log that cannot be read."""
    parser = Parser(
        "attach",
        tr(
            "The cache of a running llama-server, from its log: each request explained as it ends, and the cells as "
            "the engine last printed them. Cells need LLAMA_KV_CACHE_DEBUG=1, 2 or 3 in its environment and -lv 5; "
            "such a log contains prompts."
        ),
    )
    parser.add_argument("file", metavar="LOG", help=tr("a growing file; - reads standard input"))
    parser.flag("--text", tr("in this terminal instead of a window"))
    parser.flag("--no-follow", tr("as text, to the end of the file"))
    args = parser.parse_args(argv)
    if args.file != "-":
        check_readable(args.file)
    if not (args.text or args.no_follow) and can_open("kvdesk.app.windows.attach"):
        return _window(args.file)
    live = LiveLog(tell, asks=lambda: not args.no_follow)

    def caught_up() -> None:
        if live.is_quiet:
            tell(
                plural(
                    "The log already had 1 request (kvdesk doctor explains it). Ctrl+C ends.",
                    "The log already had %n requests (kvdesk doctor explains them). Ctrl+C ends.",
                    live.totals.score.requests,
                )
            )
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
        raise unreadable(args.file, error) from error
    finally:
        live.close()
    return 0


def _window(file: str) -> int:
    from kvdesk.app.windows.attach import Log, run

    over, there = threading.Event(), threading.Event()
    if file == "-":
        return run(Log(tr("standard input"), lambda: read_lines(chunks_of(file)), over.set))
    path = Path(file)
    return run(Log(path.name, lambda: read_lines(follow(path, there.set, over.is_set)), over.set, there.is_set))
