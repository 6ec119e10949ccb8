"""What the page of the laboratory shows, without Qt: questions, what a run takes, live curves, runs side by side."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Point,
    Record,
    Sample,
    Series,
    Table,
    number_text,
    series_title,
)
from kvdesk.quantities import size_text
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace
from kvdesk.viewmodel.cells.readout import duration

REPORT = "report.html"
RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class Question:
    """An experiment as far as one chooses it. supposed: what the question comes from, a sentence; stages: what x 0, 1,
    … of its samples are called, () if they are numbers.
    """

    id: str
    title: str
    question: str
    supposed: str
    parameters: tuple[Parameter, ...]
    takes_text: bool = False
    takes_journal: bool = False
    stages: tuple[str, ...] = ()


class ModelChoice(NamedTuple):
    """A model an experiment can run on. where: a word on where it comes from."""

    path: Path
    where: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run takes, known before it starts. memory_bytes: at most; read, written: tokens.

    seconds  at the speed of the last run on this model, None if there was none
    why_not  "" or, in a sentence, why it cannot run
    """

    memory_bytes: int = 0
    read: float = 0
    written: float = 0
    why_not: str = ""
    seconds: float | None = None

    def __str__(self) -> str:
        if self.why_not:
            return self.why_not
        return tr(
            "Takes at most {memory_bytes} of memory and one processor core (more if the question is about threads), "
            "in its own process. It reads about {read} tokens and writes {written}: {time}. Conversations continue, "
            "but an answer written meanwhile disturbs the timings."
        ).format(
            memory_bytes=size_text(self.memory_bytes),
            read=f"{self.read:,.0f}",
            written=f"{self.written:,.0f}",
            time=self._time,
        )

    @property
    def _time(self) -> str:
        if self.seconds is None:
            return tr("the time is measured when it starts")
        return tr("about {duration} at the speed of the last run on this model").format(duration=duration(self.seconds))


@dataclass(frozen=True, slots=True)
class PastResult:
    """A run that was kept: `folder` has its report."""

    folder: Path
    record: Record

    @property
    def when(self) -> str:
        """UTC, to the minute."""
        return self.record.at[:16].replace("T", " ")

    @property
    def form(self) -> str:
        return tr("short") if self.record.request.short else tr("long")

    @property
    def model(self) -> str:
        return Path(self.record.request.model).stem


class LiveCurves:
    """The samples of a run so far, as curves: for each series the median of the rounds at each x."""

    def __init__(self) -> None:
        self._values: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._units: dict[str, str] = {}
        self.n = 0

    def add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            name = series_title(sample.series)
            self._values[name][sample.x].append(sample.y)
            self._units[name] = sample.unit
            self.n += 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    @property
    def units(self) -> tuple[str, ...]:
        """Each unit once: series of different ones do not go on one axis."""
        return tuple(dict.fromkeys(self._units.values()))

    def unit_of(self, name: str) -> str:
        return self._units[name]

    def series(self, names: Iterable[str]) -> tuple[Series, ...]:
        """The range of the rounds in place of an interval."""
        return tuple(
            Series(name, tuple(Point(x, median(ys), min(ys), max(ys)) for x, ys in sorted(self._values[name].items())))
            for name in names
        )


def figures_table(figures: Sequence[Figure]) -> Table:
    """A row for each: its value, its interval, and the bars that judge it where any has some."""
    columns = tr("figure"), tr("median"), tr("95 % interval"), tr("judged by")
    n = len(columns) if any(figure.bars for figure in figures) else len(columns) - 1
    return Table(tr("Figures"), columns[:n], tuple(_figure_row(figure)[:n] for figure in figures))


def _figure_row(figure: Figure) -> tuple[str, ...]:
    unit, interval = f" {figure.unit}" if figure.unit else "", "–"
    if figure.low is not None and figure.high is not None:
        low, high = number_text(figure.low, 4), number_text(figure.high, 4)
        interval = tr("{low} to {high}{unit}").format(low=low, high=high, unit=unit)
    answers = tr("no"), tr("yes")
    judged = "; ".join(f"{bar}: {answers[bar.holds(figure.value)]}" for bar in figure.bars)
    return figure.name, f"{number_text(figure.value, 4)}{unit}", interval, judged or "–"


def comparison(first: Record, second: Record) -> Table:
    """The figures that both have, side by side."""
    others = {figure.name: figure for figure in second.finished.result.figures}
    rows = []
    for figure in first.finished.result.figures:
        if other := others.get(figure.name):
            ratio = number_text(other.value / figure.value) if figure.value else "–"
            rows.append((figure.name, ratio, str(figure), str(other)))
    return Table(tr("Figures of both"), (tr("figure"), tr("B over A"), "A", "B"), tuple(rows))


def same_verdict(first: Record, second: Record) -> str:
    """A sentence on whether two runs came to the same answer."""
    same = first.finished.result.verdict.key == second.finished.result.verdict.key
    return tr("The verdicts are the same.") if same else tr("The verdicts differ.")


def differences(first: Record, second: Record, parameters: Sequence[Parameter] = ()) -> Table:
    """What was not the same when they ran: model, parameters (named as in the form), machine, load."""
    facts = _facts(first, parameters), _facts(second, parameters)
    files = _files(first), _files(second)
    for what, file in files[0].items():
        other = files[1].get(what, file)
        if file != other and Path(file).name == Path(other).name:  # of different folders
            facts[0][what], facts[1][what] = file, other
    keys = dict.fromkeys((*facts[0], *facts[1]))
    rows = tuple((key, *(f.get(key, "–") for f in facts)) for key in keys if facts[0].get(key) != facts[1].get(key))
    return Table(tr("What differs between the runs"), ("", "A", "B"), rows)


def both(first: Plot, second: Plot) -> Plot:
    """The same plot of two runs on one pair of axes, each series twice."""
    series = tuple(
        Series(f"{name}: {one.name}", one.points) for name, plot in (("A", first), ("B", second)) for one in plot.series
    )
    return replace(first, series=series)


def conditions(record: Record, parameters: Sequence[Parameter] = ()) -> Table:
    """How it was run, and where."""
    return Table(tr("Parameters and machine"), ("", ""), tuple(_facts(record, parameters).items()))


def result_names(results: Sequence[PastResult], parameters: Sequence[Parameter] = ()) -> tuple[str, ...]:
    """A name for each: when it ran, and what is not the same in all of them. Of one alone: its form."""
    chosen = [_chosen(past.record, parameters) for past in results]
    keys = dict.fromkeys(key for facts in chosen for key in facts)
    differ = [key for key in keys if len({facts.get(key) for facts in chosen}) > 1]
    names = []
    for past, facts in zip(results, chosen, strict=True):
        told = [past.form] if len(results) == 1 else [f"{k} {facts[k]}" for k in differ if k in facts]
        names.append(" · ".join((past.when, *told)))
    return tuple(names)


def _chosen(record: Record, parameters: Sequence[Parameter]) -> dict[str, str]:
    """What a user has chosen for a run."""
    request = record.request
    titles = {parameter.key: tr(parameter.title) for parameter in parameters}
    chosen = {
        tr("model"): Path(request.model).stem,
        tr("form"): tr("short") if request.short else tr("long"),
        **{titles.get(key, key): number_text(value) for key, value in request.values.items()},
    }
    return chosen | {what: Path(file).name for what, file in _files(record).items() if what not in chosen}


def _files(record: Record) -> dict[str, str]:
    """What was read: the model, and files of the user."""
    request = record.request
    files = {tr("model"): request.model, tr("text"): request.text_file, tr("history"): request.journal_file}
    return {what: file for what, file in files.items() if file}


def _facts(record: Record, parameters: Sequence[Parameter]) -> dict[str, str]:
    request = record.request
    titles = {parameter.key: tr(parameter.title) for parameter in parameters}
    return {
        **{what: Path(file).name for what, file in _files(record).items()},
        **{titles.get(key, key): number_text(value) for key, value in request.values.items()},
        tr("form"): tr("short") if request.short else tr("long"),
        tr("seed"): str(request.seed),
        tr("duration"): f"{record.finished.seconds:g} s",
        **record.started.machine,
    }
