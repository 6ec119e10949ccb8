"""The report of a run: one HTML file that needs nothing else, with JSON and the samples as CSV beside it."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

from kvdesk import paths
from kvdesk.codec import decode, encode
from kvdesk.experiments.plot import svg
from kvdesk.experiments.statistics import median
from kvdesk.protocol.experiment import Record, Sample, Table, number_text, series_title
from kvdesk.translation import installed, tr
from kvdesk.values import replace
from kvdesk.viewmodel.lab import REPORT, RESULT, conditions, figures_table
from kvdesk.whole_file import write_whole

MOST_RESULT = 64 << 20
"""Bytes of a result.json that is read: twice as many as the longest runs write."""
_TIME, _STAMP, _STAMP_LENGTH = "%Y%m%d-%H%M%S", re.compile(r"\d{8}-\d{6}", re.ASCII), 15
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 Inter, system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .25rem .6rem; text-align: left; }
th { border-bottom: 1px solid currentColor; } tr + tr td { border-top: 1px solid #8884; }
.verdict { border-left: 4px solid #4c8bf5; padding: .4rem 1rem; font-size: 1.05rem; } .scroll { overflow-x: auto; }
"""


def folder_for(experiment_id: str, at: datetime) -> Path:
    """Where the report of a run goes that ended at `at` (UTC), in kvdesk's own folder: its name comes after all others,
    also if the clock was ahead and has been set right.
    """
    folder = paths.data_dir() / "lab"
    last = max(
        (stamp for run in folder.glob("*-*") if _STAMP.fullmatch(stamp := run.name[-_STAMP_LENGTH:])), default=""
    )
    if f"{at:{_TIME}}" <= last:
        with suppress(ValueError, OverflowError):  # 20261399-999999 is no time
            at = datetime.strptime(last, _TIME).replace(tzinfo=UTC) + timedelta(seconds=1)
    return folder / f"{experiment_id}-{at:{_TIME}}"


def write(record: Record, folder: Path) -> Path:
    """Write report.html, samples.csv and at the end result.json, by which the run is found, into `folder`, which is
    made. Returns the HTML file.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "samples.csv", _csv(record.samples))
    for i, plot in enumerate(record.finished.result.plots):
        _write(folder / f"plot-{i + 1}.svg", svg(plot, record.finished.result.series_names))
    page = _write(folder / REPORT, html(record))
    write_whole(folder / RESULT, encode(record, indent=1))
    return page


def _write(file: Path, text: str) -> Path:
    """In UTF-8; what that lacks is written as an escape: the name of a model's file may have bytes that are no text."""
    write_whole(file, text.encode("utf-8", "backslashreplace"))
    return file


def read(file: Path) -> Record:
    """The record in a result.json. Raises OSError, also if it is larger than `MOST_RESULT`, and CodecError for another
    content.
    """
    return decode(Record, paths.read_regular(file, MOST_RESULT))


def html(record: Record) -> str:
    """The whole page."""
    return page(f"{record.title} — kvdesk", _body(record))


def page(title: str, body: Iterable[str]) -> str:
    """An HTML page that needs nothing else."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    parts, language = "\n".join(body), installed().replace("_", "-")
    return f"""<!doctype html>
<html lang="{language}"><head>{head}<style>{_STYLE}</style></head>
<body>
{parts}
</body></html>
"""


def _body(record: Record) -> Iterator[str]:
    result, request = record.finished.result, record.request
    yield f"<h1>{escape(record.title)}</h1><p>{escape(record.question)}</p>"
    yield f'<p class="verdict">{escape(result.verdict.short)}</p>'
    if result.verdict.answer:
        yield f"<p>{escape(result.verdict.sentence)}</p>"
    for plot in result.plots:
        yield f'<div class="scroll">{svg(plot, result.series_names)}</div>'
    for table in result.tables:
        yield _table(table)
    if result.figures:
        yield _table(figures_table(result.figures))
    if result.remarks:
        yield _heading(tr("Remarks")) + "<ul>"
        yield "".join(f"<li>{escape(remark)}</li>" for remark in result.remarks) + "</ul>"
    yield _heading(tr("How it was measured")) + f"<p>{escape(str(record.finished.load))}</p>"
    facts = {tr("experiment"): request.experiment_id, tr("at"): record.at}
    how = conditions(record)
    yield _table(replace(how, rows=(*facts.items(), *how.rows)))
    yield _table(_spread(record.samples))
    values = tr("{n:,} values").format(n=len(record.samples))
    yield _heading(tr("Samples")) + f"<details><summary>{values}</summary><pre>"
    yield escape(_csv(record.samples)) + "</pre></details>"


def _heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _spread(samples: Iterable[Sample]) -> Table:
    groups: dict[tuple[str, float], list[float]] = defaultdict(list)
    for sample in samples:
        groups[sample.series, sample.x].append(sample.y)
    rows = tuple(
        (
            series_title(series),
            number_text(x, 6),
            f"{len(ys):,}",
            *(number_text(y, 4) for y in (min(ys), median(ys), max(ys))),
        )
        for (series, x), ys in groups.items()
    )
    return Table(tr("Medians and spread"), (tr("series"), "x", "n", tr("least"), tr("median"), tr("most")), rows)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<h2>{escape(table.title)}</h2><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def _csv(samples: Iterable[Sample]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("series", "x", "y", "round", "note", "unit"))
    rows.writerows((s.series, f"{s.x:g}", repr(s.y), s.round, s.note, s.unit) for s in samples)
    return text.getvalue()
