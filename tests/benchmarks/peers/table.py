"""The table of `kvdesk bench peers`: each value of kvdesk over that of a peer, with its interval. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvdesk.experiments.statistics import figure
from kvdesk.protocol.experiment import Figure
from tests.benchmarks.peers.rows import Measured

LOADS = ("quiet", "one busy process", "two busy processes")
PRIMARY = "kvdesk"


@dataclass(slots=True)
class Line:
    """One value under one load, of every peer, by its round. problems: why a peer has none, a sentence each."""

    load: int
    name: str
    unit: str = ""
    values: dict[str, dict[int, Measured]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def add(self, peer: str, number: int, measured: Measured) -> None:
        self.unit = measured.unit
        self.values.setdefault(peer, {})[number] = measured

    def median(self, peer: str) -> float:
        return statistics.median(measured.value for measured in self.values[peer].values())

    def times_as_fast(self, peer: str) -> Figure | None:
        """How many times as fast kvdesk is, from the rounds that both have; None if there are none."""
        ours, theirs = self.values.get(PRIMARY, {}), self.values.get(peer, {})
        both = sorted(ours.keys() & theirs.keys())
        if not both:
            return None
        ratios = [ours[n].value / theirs[n].value for n in both]
        if self.unit == "s":
            ratios = [1 / ratio for ratio in ratios]
        return figure(f"{LOADS[self.load]}: {self.name}, times as fast as {peer}", ratios)

    def behind(self, peer: str) -> str:
        """Where kvdesk is slower beyond the interval: by how much, and what is known of why; "" if it is not."""
        ratio = self.times_as_fast(peer)
        if ratio is None or ratio.high is None or ratio.high >= 1:
            return ""
        said = f"kvdesk is behind {peer} by {100 * (1 - ratio.value):.0f} %"
        how = [f"{name} {told}" for name in (PRIMARY, peer) if (told := self._how(name))]
        known = [part for part in (self._read(peer), *how) if part]
        return f"{said}: {'; '.join(known)}." if known else f"{said}; nothing that was measured tells why."

    def _read(self, peer: str) -> str:
        """The tokens of prompts that were computed, where kvdesk's are known."""
        ours, theirs = self._n_read(PRIMARY), self._n_read(peer)
        if ours is None:
            return ""
        read = f"it computed {ours:,} tokens of the prompt"
        if theirs is None:
            return f"{read}; {peer} does not tell how many it did"
        if ours > theirs:
            return f"{read}, {peer} {theirs:,}"
        return f"{read}, {peer} {theirs:,}, so each token took longer, or what comes before and after"

    def _how(self, peer: str) -> str:
        """What is known of the value in the middle."""
        median = self.median(peer)
        return min(self.values[peer].values(), key=lambda measured: abs(measured.value - median)).how

    def _n_read(self, peer: str) -> int | None:
        told = [m.n_read for m in self.values.get(peer, {}).values() if m.n_read is not None]
        return round(statistics.median(told)) if told else None


def as_json(lines: Sequence[Line], peers: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines with everything that was measured."""
    return [
        {
            "load": LOADS[line.load],
            "what": line.name,
            "unit": line.unit,
            PRIMARY: _values(line, PRIMARY),
            "peers": {peer: _compared(line, peer) for peer in peers if peer != PRIMARY},
        }
        for line in lines
    ]


def _compared(line: Line, peer: str) -> dict[str, Any]:
    ratio = line.times_as_fast(peer)
    if ratio is None:
        return {"problem": line.problems.get(peer) or line.problems.get(PRIMARY, "")}
    told = {"times_as_fast": _rounded(ratio.value), "low": _rounded(ratio.low), "high": _rounded(ratio.high)}
    behind = line.behind(peer)
    return {**told, **_values(line, peer), **({"behind": behind} if behind else {})}


def _values(line: Line, peer: str) -> dict[str, Any]:
    measured = [line.values.get(peer, {})[n] for n in sorted(line.values.get(peer, {}))]
    read = [m.n_read for m in measured if m.n_read is not None]
    how = [m.how for m in measured if m.how]
    return {
        "values": [_rounded(m.value) for m in measured],
        **({"computed_tokens": read} if read else {}),
        **({"how": how} if how else {}),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def text(lines: Sequence[Line], peers: Mapping[str, str]) -> Iterator[str]:
    """The table as lines: what kvdesk takes, and how many times as fast it is as each peer, with 95 % intervals."""
    others = [peer for peer in peers if peer != PRIMARY]
    head = ("", PRIMARY, *(f"times as fast as {peer}" for peer in others))
    notes: dict[str, int] = {}
    for load in sorted({line.load for line in lines}):
        own = [line for line in lines if line.load == load]
        rows = [(LOADS[load], *head[1:])]
        rows += [(line.name, _own(line), *(_cell(line, peer, notes) for peer in others)) for line in own]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        yield from ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        yield ""
    yield from (f"[{number}] {sentence}" for sentence, number in notes.items())


def _own(line: Line) -> str:
    if PRIMARY not in line.values:
        return "–"
    value = line.median(PRIMARY)
    return f"{value * 1e3:,.0f} ms" if line.unit == "s" else f"{value:.1f} {line.unit}"


def _cell(line: Line, peer: str, notes: dict[str, int]) -> str:
    ratio = line.times_as_fast(peer)
    note = line.problems.get(peer) or line.problems.get(PRIMARY, "") if ratio is None else line.behind(peer)
    mark = f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""
    return f"{'–' if ratio is None else ratio}{mark}"
