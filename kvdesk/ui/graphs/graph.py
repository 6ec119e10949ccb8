"""A graph over time: what it shows, its scale, the line of captions over it. `time_graph` has its plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QLabel

from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import NumberLabel, label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass
from kvdesk.viewmodel import palette
from kvdesk.viewmodel.graphs.graph_spec import GraphSpec
from kvdesk.viewmodel.graphs.idle import Fold
from kvdesk.viewmodel.graphs.series import FloatArray, round_up, visible

LEFT_PX: Final = 44  # for the numbers of a vertical axis
TICKS_PX: Final = 20  # for those of a time axis
BELOW_PX: Final = 4  # under a plot without one
WORD_PX: Final = 72  # from one word of a time axis to the next
_LOW_PX: Final = 40  # a lower plot has room for two numbers beside it


@dataclass(frozen=True, slots=True)
class Scale:
    """A vertical axis from 0. `top`: its last number; `end`: of the picture, so that half a number fits above its line.

    ticks    values and how they are written
    """

    top: float
    end: float
    ticks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, highest: float, height: float, top: float | None = None) -> Scale:
        """For values up to `highest` in a plot of `height` pixels without zoom; `top`: a fixed end."""
        top = round_up(highest) if top is None else top
        height = max(height, 16.0)
        shares = (0.0, 0.5, 1.0) if height >= _LOW_PX else (0.0, 1.0)
        ticks = tuple((top * share, f"{top * share:,.0f}") for share in shares)
        return cls(top, top * (1 + max(0.12, 8 / (height - 8))), ticks)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The data of a plot. Seconds are those of the axis.

    seconds    the first and the last
    curves     seconds and values of each
    highest    value that is seen; None while nothing is known: no numbers are written then
    marks      operations: a second and an ink for each
    ticks      words of the time axis
    gaps       pauses that are folded: their first and last second
    """

    seconds: tuple[float, float]
    curves: list[tuple[FloatArray, FloatArray]]
    highest: float | None
    marks: list[tuple[float, str]]
    ticks: list[tuple[float, str]]
    gaps: tuple[tuple[float, float], ...] = ()


def readings(
    spec: GraphSpec, start_s: float, begin: float, end: float, n_bins: int, fold: Fold | None = None
) -> tuple[list[tuple[FloatArray, FloatArray]], float | None]:
    """Every curve as (seconds of the axis, values), and the highest value that is seen; None: none was ever measured.

    `start_s`: second 0 of the axis; `begin` and `end` are on it. `n_bins`: as in `series.visible`. `fold`: of the axis.
    """
    fold = fold or Fold()
    first, last = fold.time(begin) + start_s, fold.time(end) + start_s
    curves, highest = [], 0.0
    for curve in spec.curves:
        times, values = visible(curve.series, first, last, n_bins)
        curves.append((fold.place(times - start_s), values))
        highest = max(highest, float(np.nan_to_num(values[times >= first]).max(initial=0.0)))
    return curves, highest if any(curve.series.last is not None for curve in spec.curves) else None


class Captions(QHBoxLayout):
    """Name and value of every curve in its own ink, and the unit, in one line over a graph."""

    def __init__(self, theme: Theme, spec: GraphSpec) -> None:
        super().__init__()
        self._theme, self._spec = theme, spec
        self.setSpacing(8)
        self.setContentsMargins(0, 4, 0, 0)
        self._values: list[QLabel] = []
        for n, curve in enumerate(spec.curves):
            self.addSpacing(8 if n else 0)
            self.addWidget(label(tr(curve.name), tone="secondary", scale="small"))
            value = NumberLabel("–", widest="8,888")
            theme.give_font(value, "mono_small")
            self._values.append(value)
            self.addWidget(value)
        self.addStretch(1)
        self.addWidget(label(tr(spec.unit), tone="secondary", scale="small"))

    @property
    def words(self) -> str:
        """The values that are known, as a phrase."""
        return tr(", ").join(value.accessibleName() for value in self._values if value.accessibleName())

    def set_colours(self) -> None:
        for curve, value in zip(self._spec.curves, self._values, strict=True):
            value.setStyleSheet(f"color: {text_ink(self._theme, curve.ink)}")

    def show_values(self, numbers: Sequence[float | None]) -> None:
        for curve, value, number in zip(self._spec.curves, self._values, numbers, strict=True):
            text = written(number, self._spec.unit)
            if value.text() != text:
                value.setText(text)
                value.setAccessibleName(f"{tr(curve.name)} {text} {tr(self._spec.unit)}")


def ink_of(theme: Theme, ink: tuple[str, str]) -> str:
    return ink[0] if theme.colours.dark else ink[1]


def text_ink(theme: Theme, ink: tuple[str, str]) -> str:
    """The curve's colour, mixed with text until it can be read."""
    colours = theme.colours
    mixed = ink_of(theme, ink)
    while palette.contrast(mixed, colours.panel) < 4.5:
        mixed = palette.mix(mixed, colours.text, 0.15)
    return mixed


def written(number: float | None, unit: str) -> str:
    """Cells are whole; other values have three digits as long as they are small."""
    if number is None:
        return "–"
    if unit == "cells" or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"
