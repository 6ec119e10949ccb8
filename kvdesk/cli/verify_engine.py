"""`kvdesk verify-engine`: the audit over another libllama, and a report for its authors."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kvdesk import paths
from kvdesk.backends.local.llama.other_library import folder_of
from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.errors import UserError
from kvdesk.experiments.other_engine import report
from kvdesk.experiments.other_engine.run import Played, verify
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0 if nothing differs, 1 if something does. Raises UserError."""
    parser = Parser(
        "verify-engine",
        tr(
            "Runs random operations on another libllama of the same ABI, in its own process, and compares each cell "
            "by cell with the rules of llama.cpp that kvdesk mirrors. Writes a Markdown report for llama.cpp's "
            "issues."
        ),
    )
    parser.add_argument(
        "library", metavar="LIBRARY", type=Path, help=tr("libllama.so, .dylib or llama.dll, or its folder")
    )
    parser.add_argument(
        "--models",
        metavar="DIR",
        type=Path,
        help=tr("GGUF files, such as those of llama.cpp's `test-llama-archs -o DIR` (default: the embedded model)"),
    )
    parser.add_argument("--only", metavar="FILE", help=tr("only the model with this name"))
    parser.add_argument("--ops", type=int, default=150, metavar="N", help=tr("operations per case (default 150)"))
    parser.add_argument("--seed", type=int, default=1, metavar="S", help=tr("same seed, same operations (default 1)"))
    options.add_report(parser, tr("write the Markdown here instead of to standard output"))
    parser.flag("--json", tr("one JSON object on standard output"))
    args = parser.parse_args(argv)
    if args.ops < 1:
        parser.error(tr("--ops: at least one operation"))
    options.check_report(parser, args)
    models = _models(args.models, args.only)

    def say(played: Played) -> None:
        if not played.outcome.not_played:
            end = played.outcome.difference or tr("{n} operations agree").format(n=played.outcome.n_ops)
            print(f"{played.model}, {played.layout}: {end}", file=sys.stderr, flush=True)

    found = verify(folder_of(args.library), models, args.ops, args.seed, say)
    if args.report is not None:
        args.report.write_text(report.markdown(found), encoding="utf-8")
    if args.json:
        print(json.dumps(report.as_json(found)))
    elif args.report is None:
        print(report.markdown(found))
    return int(bool(found.findings))


def _models(folder: Path | None, only: str | None) -> list[Path]:
    """Raises UserError if there is none."""
    embedded = paths.embedded_model()
    models = sorted(folder.glob("*.gguf")) if folder is not None else [embedded] if embedded else []
    if only is not None:
        models = [model for model in models if model.name == only]
    if not models:
        raise UserError(tr("There is no GGUF file in {folder}.").format(folder=folder or "kvdesk"))
    return models
