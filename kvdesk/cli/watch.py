"""`kvdesk watch`: starts llama-server so that it prints its cells, passes its output on, and shows what that says."""

import argparse
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

from kvdesk.children import foreground
from kvdesk.cli.output import Log, tell
from kvdesk.cli.parser import Parser
from kvdesk.cli.window import can_open
from kvdesk.engine_log.lines import CHUNK, LogLine, read_lines
from kvdesk.engine_log.live import LiveLog
from kvdesk.errors import UserError
from kvdesk.translation import tr

CHEAP_CELLS: Final = 4096
"""Cells up to which a server that prints each of them keeps 0.95 of its speed: at 4,096 it keeps 0.96 with the window
and 0.97 with --text (Qwen 0.5B on two processors, beside a server that nobody watches).
"""
_DEBUG: Final = 5
_CONTEXT: Final = re.compile(r"(?:-c|--ctx-size)(?:=(\d+))?")
_VERBOSITY: Final = ("-lv", "--verbosity", "--log-verbosity")


def main(argv: Sequence[str]) -> int:
    """The exit code of the server. UserError if it cannot be started or the log cannot be written."""
    parser = Parser(
        "watch",
        tr(
            "Starts llama-server so that it prints its cells, passes its output to standard error, and shows each "
            "request and the cells in a window or on standard output. Both end together."
        ),
        usage="kvdesk watch [--text] [--cells N] [--log FILE] -- llama-server …",
    )
    parser.flag("--text", tr("in this terminal instead of a window"))
    parser.add_argument(
        "--cells",
        type=int,
        choices=(1, 2, 3),
        metavar="N",
        help=tr(
            "1: numbers and positions; 2: also cells of sliding windows; 3: all cells (default: by the size of -c)"
        ),
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help=tr("write the log, which only you can read"))
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=tr("the server and its options"))
    args = parser.parse_args(argv)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error(tr("COMMAND is missing"))
    is_text = args.text or not can_open("kvdesk.app.windows.attach")
    level = args.cells or default_level(command)
    tell(level_sentence(level))
    with closing(Log(args.log)) as log:
        return _watched(command, level, log, is_text)


def default_level(command: Sequence[str]) -> int:
    """3 for a context whose cells cost little to print, else 1."""
    for option, value in zip(command, [*command[1:], ""], strict=True):
        if found := _CONTEXT.fullmatch(option):
            cells = found[1] or value
            return 3 if cells.isdecimal() and 0 < int(cells) <= CHEAP_CELLS else 1
    return 1


def level_sentence(level: int) -> str:
    """What the level shows and costs."""
    return {
        1: tr(
            "Level 1: numbers and positions of each sequence. The server keeps 95 to 99% of its speed. --cells 3 shows "
            "each cell."
        ),
        2: tr("Level 2: also the cells of sliding windows. It costs more than level 1 and less than level 3."),
        3: tr(
            "Level 3: each cell. The server keeps 96% of its speed at 4,096 cells and three quarters at 32,768. "
            "--cells 1 costs less."
        ),
    }[level]


def _watched(command: Sequence[str], level: int, log: Log, is_text: bool) -> int:
    environment = {
        "LLAMA_SERVER_SLOTS_DEBUG": "1",
        "LLAMA_SERVER_SLOTS_N_DIFF": "24",
        **os.environ,
        "LLAMA_KV_CACHE_DEBUG": str(level),
    }
    over = threading.Event()  # a signal asks the server and this command to end
    with ExitStack() as ending:
        try:
            started = [*command, "-lv", str(_DEBUG)]
            server = ending.enter_context(foreground.running(started, environment, piped=True, on_signal=over.set))
        except OSError as error:
            said = tr("{command} cannot be started: {strerror}.")
            raise UserError(said.format(command=command[0], strerror=error.strerror or error)) from error
        passed = _PassedOn(all_of_it=_asks_for_all(command))
        if is_text:
            live = LiveLog(tell, asks=lambda: True)
            for line in passed.on(read_lines(_output(server.stdout, log))):
                live.feed(line)
            live.close()
        else:
            from kvdesk.app.windows import attach

            def lines() -> Iterator[LogLine]:
                return passed.on(read_lines(_output(server.stdout, log)))

            attach.run(attach.Log(Path(command[0]).name, lines, server.terminate, is_over=over.is_set))
        return foreground.exit_code(server)


def _output(pipe: IO[bytes] | None, log: Log) -> Iterator[bytes]:
    assert pipe is not None
    while chunk := os.read(pipe.fileno(), CHUNK):
        log.write(chunk)
        yield chunk


class _PassedOn:
    """Writes the server's lines to standard error, without those that only watching has made it print."""

    def __init__(self, all_of_it: bool) -> None:
        self._all = all_of_it
        self._is_debug = False

    def on(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """The lines, each passed on."""
        for line in lines:
            if line.level:
                self._is_debug = line.level == _DEBUG
            if self._all or not self._is_debug:
                letter = {1: "E ", 2: "W ", 3: "I ", 5: "D "}.get(line.level, "")
                clock = f"{line.clock} " if line.clock else ""
                sys.stderr.write(f"{clock}{letter}{line.text}\n")
            yield line


def _asks_for_all(command: Sequence[str]) -> bool:
    """Whether the server was to print everything anyway."""
    levels = [value for option, value in pairwise(command) if option in _VERBOSITY]
    asked = {"-v", "--verbose", "--log-verbose"} & set(command)
    return bool(asked) or any(level.isdecimal() and int(level) >= _DEBUG for level in levels)
