"""What an experiment of the laboratory is asked, tells while it runs, and ends with: values that go between processes.

Everything here goes through `kvdesk.codec` without loss. Knows nothing of how an experiment is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from kvdesk.codec import decode_one_of
from kvdesk.errors import UserError
from kvdesk.protocol.experiment_cells import CellsSeen
from kvdesk.translation import tr
from kvdesk.values import dataclass, field, replace

Values = Mapping[str, float]
"""The value of each parameter by its key; whole numbers where the parameter is whole."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that can be chosen before an experiment runs. `short`: its value in the short form."""

    key: str
    title: str
    default: float
    low: float
    high: float
    short: float
    description: str
    whole: bool = True

    def check(self, value: float) -> float:
        """The value, a whole one as an int. Raises UserError outside the range."""
        if not self.low <= value <= self.high or (self.whole and value != int(value)):
            kind = tr("a whole number") if self.whole else tr("a number")
            raise UserError(
                tr("{key} takes {kind} from {low:g} to {high:g} (it is {value:g}).").format(
                    key=self.key, kind=kind, low=self.low, high=self.high, value=value
                )
            )
        return int(value) if self.whole else value


def chosen(parameters: Sequence[Parameter], given: Mapping[str, float], *, short: bool) -> dict[str, float]:
    """A value for every parameter: the given one, else that of the form. Raises UserError."""
    known = {parameter.key: parameter for parameter in parameters}
    for key in given:
        if key not in known:
            raise UserError(
                tr("There is no parameter {key}; there are {names}.").format(key=key, names=", ".join(known) or "none")
            )
    return {
        key: parameter.check(given.get(key, parameter.short if short else parameter.default))
        for key, parameter in known.items()
    }


@dataclass(frozen=True, slots=True)
class Request:
    """Run the experiment `experiment_id` on `model`. seed: of the token ids that are decoded; text_file: what those
    experiments read that take a text, "" for the text that comes with kvdesk; journal_file: whose history those take
    that take one, "" for a generated one.
    """

    experiment_id: str
    model: str
    values: dict[str, float]
    short: bool = False
    seed: int = 17
    text_file: str = ""
    journal_file: str = ""


# --- what is reported while it runs ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The model is loaded and its speed known. memory_bytes: weights and contexts at most; seconds: at about.

    read_s, written_s: seconds for a token that is read in a batch, and for one that is written; 0 in results of kvdesk
    0.1.0, which did not keep them
    """

    machine: dict[str, str]
    memory_bytes: int
    seconds: float
    read_s: float = 0.0
    written_s: float = 0.0
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` steps; what is done now."""

    done: int
    total: int
    what: str
    kind: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured value: `y` at `x` of `series` in one round; `note`: what the engine said, or a word on it; `unit`:
    of `y`.
    """

    series: str
    x: float
    y: float
    round: int = 0
    note: str = ""
    unit: str = ""
    kind: Literal["sample"] = "sample"


def series_title(series: str) -> str:
    """The name of a series in the user's language. Series are keys of samples, the same in every language: words of
    the experiment, some joined by ": " or ", ".
    """
    for joint in ("", ": ", ", "):
        parts = series.split(joint) if joint else [series]
        if (told := joint.join(map(tr, parts))) != series:
            return told if joint != ": " else joint.join(map(series_title, parts))
    return series


# --- what it ends with ------------------------------------------------------------------------------------------------


LONGEST: Final = 1e15
"""From here on a number has an exponent: nobody reads more digits."""


def number_text(value: float, digits: int = 3) -> str:
    """With that many significant digits, whole numbers in full, thousands grouped: 0.0123, 1,024, 12,345."""
    if abs(value) < LONGEST and (value == int(value) or abs(value) >= 10**digits - 0.5):
        return f"{value or 0:,.0f}"  # no "-0"
    return f"{value:.{digits}g}"


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure is judged by: at least, or at most, so much, give or take the noise it was measured with."""

    limit: float
    at_least: bool
    noise: float = 0.0

    def holds(self, value: float) -> bool:
        return value + self.noise >= self.limit if self.at_least else value - self.noise <= self.limit

    def __str__(self) -> str:
        said = tr("at least {limit}") if self.at_least else tr("at most {limit}")
        return said.format(limit=number_text(self.limit))


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number: its unit, its 95 % confidence interval if it has one, and the bars that judge it.

    A benchmark must reach its bars. In an experiment they are the values from which the answer is another one.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    bars: tuple[Bar, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every bar is reached."""
        return all(bar.holds(self.value) for bar in self.bars)

    @property
    def uncertain(self) -> tuple[Bar, ...]:
        """The bars inside the interval: another run may come out on the other side."""
        if self.low is None or self.high is None:
            return ()
        return tuple(bar for bar in self.bars if self.low < bar.limit < self.high)

    def at_least(self, *limits: float, noise: float = 0.0) -> Figure:
        """The same, to be at least so much too."""
        return replace(self, bars=(*self.bars, *(Bar(limit, True, noise) for limit in limits)))

    def at_most(self, *limits: float, noise: float = 0.0) -> Figure:
        """The same, to be at most so much too."""
        return replace(self, bars=(*self.bars, *(Bar(limit, False, noise) for limit in limits)))

    def __str__(self) -> str:
        interval = ""
        if self.low is not None and self.high is not None:
            interval = tr(" (95 %: {low} to {high})").format(low=number_text(self.low), high=number_text(self.high))
        return f"{number_text(self.value)}{' ' if self.unit else ''}{self.unit}{interval}"


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, name: str, points: Iterable[tuple[float, float]]) -> Series:
        """Each x with its y, without intervals."""
        return cls(name, tuple(Point(x, y) for x, y in points))


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over one x axis; `log`: both axes are logarithmic; `x_names`: what x 0, 1, … are called, () for numbers."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log: bool = False
    x_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, title: str, rows: Iterable[Mapping[str, str]]) -> Table:
        """At least one row; each has a value for every column, in the same order."""
        found = list(rows)
        return cls(title, tuple(found[0]), tuple(tuple(row.values()) for row in found))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. key: the same for the same answer, whatever the numbers; sentence: with the numbers it rests on;
    answer: in one short sentence, without intervals, "" in results that were kept before there was one.
    """

    key: str
    sentence: str
    answer: str = ""

    @property
    def short(self) -> str:
        return self.answer or self.sentence


@dataclass(frozen=True, slots=True)
class Result:
    """What an experiment found. remarks: what it rests on and what stays open, a sentence each."""

    verdict: Verdict
    figures: tuple[Figure, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def series_names(self) -> tuple[str, ...]:
        """Of all plots, each once: a series has the colour of its place in every one of them."""
        return tuple(dict.fromkeys(series.name for plot in self.plots for series in plot.series))


@dataclass(frozen=True, slots=True)
class Load:
    """What else the machine did. cores: processor time others took, as a number of cores, the median round first and
    the worst second; n_repeated: rounds added because others computed; n_rounds: all of them, 0 if nothing is timed.
    """

    cores: float = 0.0
    worst: float = 0.0
    n_repeated: int = 0
    n_rounds: int = 0

    @property
    def disturbed(self) -> bool:
        return self.worst > MOST_OTHERS

    def __str__(self) -> str:
        if not self.n_rounds:
            return tr("Nothing is timed, so the load of the machine does not matter.")
        said = tr("Other processes took {median:.2f} cores in the median round and {worst:.2f} in the worst: {rest}")
        rest = tr("the machine was quiet.")
        if self.disturbed:
            rest = tr("{n} rounds were added, and the intervals are as wide as that made them.")
        return said.format(median=self.cores, worst=self.worst, rest=rest.format(n=self.n_repeated))


MOST_OTHERS = 0.15
"""Cores taken by other processes above which a round counts as disturbed."""


@dataclass(frozen=True, slots=True)
class Finished:
    result: Result
    load: Load = field(default_factory=Load)
    seconds: float = 0.0
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not end well: one sentence, and what is for the log."""

    sentence: str
    detail: str = ""
    kind: Literal["failed"] = "failed"


ExperimentEvent = Started | Progress | Sample | CellsSeen | Finished | Failed


_EVENTS: Final[Mapping[str, type[ExperimentEvent]]] = {
    "started": Started,
    "progress": Progress,
    "sample": Sample,
    "cells": CellsSeen,
    "finished": Finished,
    "failed": Failed,
}


def event_from_json(line: bytes) -> ExperimentEvent:
    """The event that `encode` was given. Raises CodecError."""
    return decode_one_of(_EVENTS, line)


@dataclass(frozen=True, slots=True)
class Record:
    """A whole run, as the report and its JSON hold it. at: UTC, ISO 8601."""

    request: Request
    title: str
    question: str
    at: str
    started: Started
    samples: tuple[Sample, ...]
    finished: Finished
    format: Literal["kvdesk-experiment-1"] = "kvdesk-experiment-1"
