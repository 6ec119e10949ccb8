"""`kvdesk replay`: a journal that was exported, operation by operation, without any model; or as a trace or a page."""

from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli.parser import Parser
from kvdesk.errors import explained
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises UserError if the file is no journal, another cannot be written, or there is no display."""
    parser = Parser("replay", tr("A journal that was exported, operation by operation, without any model."))
    parser.add_argument("file", type=Path, metavar="FILE", help=tr("a journal, exported from the Timeline"))
    for option, text in (
        ("--trace", tr("write its calls as a trace for Chrome or Perfetto, without texts and token ids; no window")),
        ("--html", tr("write its map with a slider as one page, without texts and token ids; no window")),
    ):
        parser.add_argument(option, type=Path, metavar="OUT", help=text)
    args = parser.parse_args(argv)
    if args.trace or args.html:
        return _written(args.file, args.trace, args.html)
    from kvdesk.app.windows.replay import run

    return run(args.file)


def _written(file: Path, trace: Path | None, html: Path | None) -> int:
    """Exit code 0. Raises UserError."""
    from kvdesk.cache.journal.file import load_journal
    from kvdesk.notebook import recording_page
    from kvdesk.notebook.trace import trace_text
    from kvdesk.whole_file import replacing

    header, recording = load_journal(file)
    for path, text_of in ((trace, trace_text), (html, recording_page.page)):
        if path is None:
            continue
        text = text_of(recording, header)
        with explained(tr("{file} cannot be written: {why}."), file=path), replacing(path) as part:
            part.write_text(text, encoding="utf-8")
    return 0
