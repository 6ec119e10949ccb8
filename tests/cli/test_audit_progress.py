import io

import pytest

from kvdesk.cli.audit import Progress
from kvdesk.experiments.benchmarks.audit import Tally


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(out: io.StringIO, times_s: list[float]) -> str:
    """What is written when a step ends at each of these times."""
    clock = iter([0.0, *times_s])
    progress = Progress(2000, out, lambda: next(clock))
    for n, time_s in enumerate(times_s, start=1):
        progress.say(Tally("m.gguf", {}, 1, "b1", ops=500 * n, seconds=time_s))
    progress.end()
    return out.getvalue()


def test_a_terminal_has_one_line_that_changes() -> None:
    assert told(Terminal(), [0.1, 0.3, 0.4, 0.6]) == (
        "\r1,000 of 2,000 operations, 0 mismatches, 0 s\033[K\r2,000 of 2,000 operations, 0 mismatches, 1 s\033[K\n"
    )


@pytest.mark.parametrize(("times_s", "lines"), [([1.0, 2.0, 3.0, 4.0], 0), ([4.0, 8.0, 11.0, 14.0], 2)])
def test_elsewhere_a_line_comes_every_few_seconds(times_s: list[float], lines: int) -> None:
    text = told(io.StringIO(), times_s)
    assert text.count("\n") == lines
    assert "\r" not in text
