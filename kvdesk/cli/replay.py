"""`kvdesk replay`: a journal that was exported, operation by operation, without any model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.parser import Parser
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 with one sentence on standard error where the file is no journal or there is no display."""
    parser = Parser(
        prog="kvdesk replay", description=tr("A journal that was exported, operation by operation, without any model.")
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=tr("a journal, exported from the Timeline"))
    args = parser.parse_args(argv)
    from kvdesk.app.replay import run
    from kvdesk.errors import UserError

    try:
        return run(args.file)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
