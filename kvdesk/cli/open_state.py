"""`kvdesk open`: what is in a saved KV cache, whether it can be restored into a model, and how two differ."""

import json
from collections.abc import Sequence
from pathlib import Path

from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.cli.window import can_open
from kvdesk.codec import to_builtins
from kvdesk.state_files import report
from kvdesk.state_files.reader import read_state_file
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0; 1 if the text is that the file would not be restored into the model. Raises UserError."""
    parser = Parser(
        "open",
        tr(
            "Shows what is in a slot file of llama-server, a session of llama.cpp, a Llama.save_state of "
            "llama-cpp-python or a saved state of kvdesk: tokens, positions, cells, types and numbers of K and V. "
            "With OTHER, how they differ. With --model, whether it can be restored into a context of that model, or "
            "why not."
        ),
    )
    parser.add_argument("file", metavar="FILE", type=Path, help=tr("the saved KV cache"))
    parser.add_argument("other", metavar="OTHER", type=Path, nargs="?", help=tr("another one to compare with"))
    parser.add_argument(
        "--model", metavar="MODEL", type=Path, help=tr("GGUF file: would FILE be restored, and the text of its tokens")
    )
    parser.flag("--text", tr("in this terminal instead of a window"))
    parser.flag("--tokens", tr("as text, with each token on a line"))
    parser.flag("--json", tr("one JSON object"))
    options.add_context(parser)
    args = parser.parse_args(argv)
    settings = options.context_settings(args)
    if not (args.text or args.tokens or args.json) and can_open("kvdesk.app.windows.saved_state"):
        from kvdesk.app.windows.saved_state import Question, run

        return run(Question(args.file, args.other, args.model, settings))
    found = read_state_file(args.file, args.other, args.model, settings)
    if args.json:
        names = ("file", "other")
        value = dict(zip(names, map(to_builtins, found.files), strict=False))
        value |= {"fit": to_builtins(found.fit), "difference": to_builtins(found.difference)}
        print(json.dumps(value))
    else:
        for file in found.files:
            print("\n".join(report.file_lines(file, by_layer=args.other is None)))
            if args.tokens:
                print("\n".join(report.token_lines(file)))
        if found.difference is not None:
            print("\n".join(report.difference_lines(found.difference, found.files)))
        if found.fit is not None:
            print("\n".join(report.fit_lines(found.fit)))
    return int(found.fit is not None and found.fit.fits is False)
