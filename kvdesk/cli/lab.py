"""`kvdesk lab`: experiments that answer questions about the KV cache, each in its own process, with a report."""

import argparse
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from kvdesk.cli import options
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.codec import encode
from kvdesk.errors import UserError, explained
from kvdesk.experiments import EXPERIMENTS, experiment_by_id, report
from kvdesk.experiments.process import CANCELLED, ExperimentProcess, Recorder, experiment_command
from kvdesk.library.estimate import check_fits
from kvdesk.library.gguf_header import read_header
from kvdesk.protocol.experiment import Failed, Progress, Record, Request, Started, chosen
from kvdesk.translation import tr
from kvdesk.viewmodel.lab import RESULT, comparison, differences, same_verdict


def main(argv: Sequence[str]) -> int:
    """Exit code 0; 1 if the report of a result could not be written. Raises UserError."""
    parser = Parser(
        "lab", tr("Experiments that answer questions about the KV cache, each in its own process, with a report.")
    )
    parser.add_argument(
        "what",
        choices=["list", "run", "compare"],
        help=tr("list: the experiments and their parameters; run NAME: one of them; compare A B: two results of one"),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=tr("an experiment, or two result.json files"))
    options.add_model(parser)
    parser.several("--set", "KEY=VALUE", tr("a parameter; may be repeated"))
    parser.add_argument("--text", metavar="FILE", type=Path, help=tr("your own text, for experiments that read one"))
    parser.add_argument(
        "--journal", metavar="FILE", type=Path, help=tr("a saved journal, for experiments on a history")
    )
    parser.flag("--short", tr("the short form: within three minutes"))
    parser.flag("--json", tr("the result as one JSON object on standard output"))
    parser.add_argument("--out", metavar="DIR", type=Path, help=tr("folder for the report (default: in kvdesk's own)"))
    args = parser.parse_args(argv)
    wanted = {"list": 0, "run": 1, "compare": 2}[args.what]
    if len(args.names) != wanted:
        parser.error(f"{args.what} takes {('no name', 'one name', 'two names')[wanted]}")
    if args.what == "list":
        _list()
        return 0
    if args.out is not None:
        options.check_folder(parser, "--out", args.out)
    return _run(args) if args.what == "run" else _compare(*map(Path, args.names))


def _list() -> None:
    for experiment in EXPERIMENTS:
        print(f"{experiment.id}: {tr(experiment.question)}")
        for p in experiment.parameters:
            print(f"    {p.key}={p.default:g} ({p.low:g} to {p.high:g}, short {p.short:g})  {tr(p.description)}")


def _run(args: argparse.Namespace) -> int:
    experiment = experiment_by_id(args.names[0])
    values = chosen(experiment.parameters, dict(map(_pair, args.set)), short=args.short)
    model = options.model_path(args)
    needed = check_fits(read_header(model), experiment.context(values))
    if args.text is not None and not experiment.takes_text:
        raise UserError(tr("{id} reads no text: its tokens are drawn at random.").format(id=experiment.id))
    if args.journal is not None and not experiment.takes_journal:
        raise UserError(tr("{id} takes no journal: it makes what it measures.").format(id=experiment.id))
    text_file, journal_file = ("" if file is None else str(file.absolute()) for file in (args.text, args.journal))
    request = Request(experiment.id, str(model), values, args.short, text_file=text_file, journal_file=journal_file)
    say(
        tr("{question}\nIt takes {total:,.0f} MB of memory at most.").format(
            question=tr(experiment.question), total=needed.total / 1000000.0
        )
    )
    record, code = _record(request), 0
    try:
        with explained(tr("The report could not be written: {why}.")):
            folder = args.out or report.folder_for(experiment.id, datetime.fromisoformat(record.at))
            said = tr("The report is {page}").format(page=report.write(record, folder))
    except UserError as error:  # what was measured is not lost
        said, code = str(error), 1
    if args.json:
        print(encode(record, indent=1).decode())
    else:
        _tell(record)
    say(said)
    return code


def _record(request: Request) -> Record:
    """Run it to its end. Raises UserError with what went wrong."""
    recorder = Recorder(request)
    with ExperimentProcess(experiment_command(request)) as process, _interrupted(process.cancel):
        for event in process.events():
            match event:
                case Started():
                    say(
                        tr("It takes about {seconds:.0f} s at the speed measured just now.").format(
                            seconds=event.seconds
                        )
                    )
                case Progress():
                    say(f"{event.done}/{event.total} {event.what}")
                case Failed() if event.sentence == tr(CANCELLED):
                    raise KeyboardInterrupt
                case Failed():
                    raise UserError(event.sentence, event.detail)
                case _:
                    pass
            if (record := recorder.add(event, datetime.now(UTC))) is not None:
                return record
    raise AssertionError("events end with the end")


@contextmanager
def _interrupted(act: Callable[[], None]) -> Iterator[None]:
    """Ctrl+C calls `act`. An exception in its place can fall into a call that ignores it, and be lost."""
    before = signal.signal(signal.SIGINT, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(record: Record) -> None:
    result = record.finished.result
    for table in result.tables:
        print(f"\n{table.title}")
        widths = [max(len(row[i]) for row in (table.columns, *table.rows)) for i in range(len(table.columns))]
        for row in (table.columns, *table.rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for figure in result.figures:
        print(f"{figure.name}: {figure}")
    print("", *result.remarks, str(record.finished.load), "", sep="\n")
    print(*dict.fromkeys((result.verdict.short, result.verdict.sentence)), sep="\n")


def _compare(first: Path, second: Path) -> int:
    a, b = _read(first), _read(second)
    if a.request.experiment_id != b.request.experiment_id:
        raise UserError(
            tr("{first} is a result of {experiment_id}, {second} of {experiment_id2}.").format(
                first=first,
                experiment_id=a.request.experiment_id,
                second=second,
                experiment_id2=b.request.experiment_id,
            )
        )
    for name, ratio, *both in comparison(a, b).rows:
        print(f"{name}: {both[0]} | {both[1]} | second over first: {ratio}")
    parameters = next((e.parameters for e in EXPERIMENTS if e.id == a.request.experiment_id), ())
    apart = differences(a, b, parameters)
    if apart.rows:
        print(f"\n{apart.title}")
    for name, *both in apart.rows:
        print(f"{name}: {both[0]} | {both[1]}")
    print(f"\nA: {a.finished.result.verdict.short}\nB: {b.finished.result.verdict.short}")
    print(same_verdict(a, b))
    return 0


def _read(path: Path) -> Record:
    file = path / RESULT if path.is_dir() else path
    try:
        with explained(tr("{file} cannot be read: {strerror}."), file=file):
            return report.read(file)
    except ValueError as error:
        raise UserError(tr("{file} is no result of an experiment.").format(file=file), str(error)) from error


def _pair(text: str) -> tuple[str, float]:
    key, sign, value = text.partition("=")
    try:
        if sign:
            return key, float(value)
    except ValueError:
        pass
    raise UserError(tr("--set takes KEY=VALUE with a number (it is {dumps}).").format(dumps=json.dumps(text)))
