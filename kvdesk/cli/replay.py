"""`kvdesk replay`: a journal that was exported, operation by operation, without any model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.parser import Parser
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises UserError if the file is no journal or there is no display."""
    parser = Parser(
        prog="kvdesk replay", description=tr("A journal that was exported, operation by operation, without any model.")
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=tr("a journal, exported from the Timeline"))
    args = parser.parse_args(argv)
    from kvdesk.app.replay import run

    return run(args.file)
