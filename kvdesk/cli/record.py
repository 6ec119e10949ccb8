"""`kvdesk record`: what happens to a cache from now on, as a journal: of a kvdesk that serves, or by a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk import __version__
from kvdesk.cache.journal.file import GrowingJournal, JournalHeader
from kvdesk.cache.journal.recording import Recording
from kvdesk.cli.doctor import check_readable, chunks_of
from kvdesk.cli.ending import as_interrupt
from kvdesk.cli.output import new_file, private_file, say
from kvdesk.cli.parser import Parser
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import follow
from kvdesk.engine_log.reading import LogRecorder
from kvdesk.errors import UserError
from kvdesk.protocol.servers import server_url
from kvdesk.translation import plural, tr

if TYPE_CHECKING:
    from kvdesk.protocol.messages import Event


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when the source ends or at Ctrl+C. UserError if it cannot be read or the file not be written."""
    parser = Parser(
        "record",
        tr(
            "Records what happens to a cache to one file, until Ctrl+C: of a kvdesk that serves, by its address; of "
            "a llama-server, from the log of kvdesk watch or another log with its cells; of requests that pass a "
            "kvdesk proxy, from its log. The file contains no texts and no token ids. kvdesk replay opens it, and "
            "makes a trace or a page of it."
        ),
    )
    parser.add_argument("source", metavar="SOURCE", help=tr("a URL, a growing log, or - for a log from standard input"))
    parser.add_argument("file", metavar="FILE", type=Path, help=tr("the new file"))
    parser.flag("--texts", tr("with token ids and quoted prompts; only you can read the file"))
    parser.add_argument("--key", default="", help=tr("a key of the served kvdesk that may inspect its cache"))
    parser.flag("--no-follow", tr("only what is in the log now"))
    args = parser.parse_args(argv)
    is_url = args.source.startswith(("http://", "https://"))
    url = server_url(args.source) if is_url else ""
    if not is_url and args.source != "-":
        check_readable(args.source)
    with (private_file if args.texts else new_file)(args.file) as out:
        name = "" if url or args.source == "-" else Path(args.source).name
        journal = _Journal(GrowingJournal(out, JournalHeader(name, {"kvdesk": __version__}), with_tokens=args.texts))
        try:
            with as_interrupt():
                if is_url:
                    asyncio.run(_far(url, args.key, journal.take))
                else:
                    _log(args.source, journal.take, is_over=lambda: args.no_follow)
        except KeyboardInterrupt:
            pass
        except _IsOver:
            say(tr("The recording ends here: the cache was created again, or the journal is full."))
        finally:
            journal.close()
            if not journal.is_begun:
                args.file.unlink()
    if not journal.is_begun:
        raise UserError(
            tr("Nothing was recorded: {source} contains no cells and no requests.").format(source=args.source)
        )
    said = plural("1 operation was saved to {name}.", "%n operations were saved to {name}.", journal.n_operations)
    print(said.format(name=args.file))
    return 0


class _IsOver(Exception):
    """The recording cannot go on in its file."""


class _Journal:
    def __init__(self, file: GrowingJournal) -> None:
        self._file = file
        self.is_begun = False

    @property
    def n_operations(self) -> int:
        return self._file.n_operations

    def take(self, recording: Recording | None) -> None:
        """Raises _IsOver."""
        if recording is None:
            return
        if not self._file.take(recording):
            raise _IsOver
        self.is_begun = True

    def close(self) -> None:
        self._file.close()


def _log(source: str, take: Callable[[Recording | None], None], is_over: Callable[[], bool]) -> None:
    """A log from its beginning on, while it is not over. Raises _IsOver."""
    is_live = source == "-"

    def caught_up() -> None:
        nonlocal is_live
        is_live = True

    recorder = LogRecorder(lambda _text: None, lambda: is_live, with_requests=True)
    chunks = chunks_of(source) if source == "-" else follow(Path(source), caught_up, is_over)
    n_taken = 0
    try:
        for line in read_lines(chunks):
            recorder.feed(line)
            if recorder.n_operations != n_taken:
                n_taken = recorder.n_operations
                take(recorder.recording(latest=False))
    finally:
        recorder.close()
        take(recorder.recording())


async def _far(url: str, key: str, take: Callable[[Recording | None], None]) -> None:
    """The cache of a kvdesk that serves, until this is cancelled. Raises UserError if it does not show it."""
    import httpx2

    from kvdesk.backends.openai.client import CONNECT_S, client_of, read_ok
    from kvdesk.backends.openai.far_cache import SILENT_S, FarCache
    from kvdesk.backends.openai.problems import ServerError, problem_of
    from kvdesk.protocol.cache import CacheView, ContextReady
    from kvdesk.protocol.chat import LogLine

    n_contexts = 0

    def put(event: Event) -> None:
        nonlocal n_contexts
        match event:
            case ContextReady():
                n_contexts += 1
                if n_contexts > 1:
                    raise _IsOver
            case CacheView():
                known = far.recording()
                take(known.recording if known else None)
            case LogLine():
                say(event.text)

    far = FarCache(put, url)
    async with client_of(url, key) as client:
        try:
            timeout = httpx2.Timeout(SILENT_S, connect=CONNECT_S)
            async with client.stream("GET", "/kv/events", timeout=timeout) as response:
                if response.status_code != 200:
                    await read_ok(response)
        except (ServerError, httpx2.HTTPError) as error:
            raise UserError(str(problem_of(error, SILENT_S)), repr(error)) from error
        await far.follow(client, shown=True)
