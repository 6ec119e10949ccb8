"""A plot as SVG text: lines with markers and confidence intervals, in colours that follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

from kvdesk.protocol.experiment import Plot, Point, Series, number_text
from kvdesk.viewmodel.graphs.ticks import log_ticks

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 34, 48
LINE = 18  # of the legend
N_COLOURS = 8
NAME_CHARS = 16  # of a name on the axis, in a line

STYLE = """
.plot { font: 12px Inter, system-ui, sans-serif; max-width: 100%; height: auto; }
.plot text { fill: #202124; } .plot .grid { stroke: #e4e6ea; } .plot .axis { stroke: #9aa0a6; }
.plot path { fill: none; stroke-width: 2; } .plot circle { fill: none; } .plot .title { font-weight: 600; }
.plot .c0 { stroke: #4c8bf5; } .plot .c1 { stroke: #e8710a; } .plot .c2 { stroke: #1e9e75; }
.plot .c3 { stroke: #d93a74; } .plot .c4 { stroke: #9566e0; } .plot .c5 { stroke: #b8860b; }
.plot .c6 { stroke: #2aa7b8; } .plot .c7 { stroke: #8d6e63; } .plot .again { stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
.plot text { fill: #e8eaed; } .plot .grid { stroke: #3c4043; } .plot .axis { stroke: #80868b; }
}
"""


def svg(plot: Plot, names: Sequence[str] = ()) -> str:
    """The plot, self-contained: its style is inside. `names`: of the series of all plots that belong together, so that
    one has the same colour in each.
    """
    height = HEIGHT + LINE * len(plot.series)
    body = "\n".join(_body(plot, names or [series.name for series in plot.series]))
    return (
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img"><title>{escape(plot.title)}</title><style>{STYLE}</style>\n{body}\n</svg>'
    )


def _body(plot: Plot, names: Sequence[str]) -> Iterator[str]:
    points = [point for series in plot.series for point in series.points]
    if not points:
        return
    x = _Scale([point.x for point in points], LEFT, WIDTH - RIGHT, log=plot.log)
    edges = [edge for point in points for edge in (point.y, point.low, point.high) if edge is not None]
    y = _Scale(edges if plot.log else [0.0, *edges], HEIGHT - BOTTOM, TOP, log=plot.log)
    yield _text(LEFT, TOP - 14, plot.title, "start", ' class="title"')
    for tick in y.ticks():
        yield _line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid")
        yield _text(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "end")
    named = {float(i): name for i, name in enumerate(plot.x_names)}
    for tick in named or x.ticks():
        yield _line(x(tick), HEIGHT - BOTTOM, x(tick), HEIGHT - BOTTOM + 5, "axis")
        for n, part in enumerate(wrap(named.get(tick, f"{tick:,.6g}"), NAME_CHARS)[:2]):
            yield _text(x(tick), HEIGHT - BOTTOM + 18 + 12 * n, part, "middle")
    yield _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")
    if not named:
        yield _text((LEFT + WIDTH) / 2, HEIGHT - 12, plot.x_label, "middle")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield _text(16, middle, plot.y_label, "middle", f' transform="rotate(-90 16 {middle:.0f})"')
    for i, series in enumerate(plot.series):
        place = names.index(series.name)
        colour = f"c{place % N_COLOURS}{' again' if place >= N_COLOURS else ''}"
        yield from _series(series, x, y, colour)
        at = HEIGHT + LINE * i + 6
        yield _line(LEFT, at - 4, LEFT + 24, at - 4, colour, ' stroke-width="2"')
        yield _text(LEFT + 32, at, series.name, "start")


def _series(series: Series, x: _Scale, y: _Scale, colour: str) -> Iterator[str]:
    path = " ".join(f"{'M' if not i else 'L'}{x(p.x):.1f} {y(p.y):.1f}" for i, p in enumerate(series.points))
    yield f'<path class="{colour}" d="{path}"/>'
    for point in series.points:
        if point.low is not None and point.high is not None:
            yield _line(x(point.x), y(point.low), x(point.x), y(point.high), colour)
        place = f'cx="{x(point.x):.1f}" cy="{y(point.y):.1f}" r="3"'
        yield f'<circle class="{colour}" {place}>{_hint(point)}</circle>'


def _hint(point: Point) -> str:
    return f"<title>{number_text(point.x, 6)}: {number_text(point.y, 4)}</title>"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{more}/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


class _Scale:
    """From values to pixels between `start` and `end`."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, log: bool) -> None:
        self._log = log
        self._low, self._high = min(values), max(values)
        if self._low == self._high:
            self._low, self._high = (self._low / 2, self._high * 2) if log else (self._low - 0.5, self._high + 0.5)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        low, high = self._place(self._low), self._place(self._high)
        return self._start + (self._place(value) - low) / (high - low) * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Round numbers inside."""
        if self._log:
            return log_ticks(self._low, self._high)
        raw = (self._high - self._low) / 6
        power = 10 ** math.floor(math.log10(raw))
        step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw)
        first = math.ceil(self._low / step)
        return [i * step for i in range(first, math.floor(self._high / step + 1e-9) + 1)]

    def _place(self, value: float) -> float:
        return math.log10(value) if self._log else value
