"""What every row of `make stress` shares: how many rounds, from which seed, and what is shown meanwhile.

    KVDESK_STRESS_SHARE   this share of the rounds, such as 0.1 for trying
    KVDESK_STRESS_SEED    another seed than 0
    KVDESK_SOAK_MINUTES   how long `make soak` takes

A row is a file, `tests/stress/test_ROW.py`; `make stress ROW` runs it. Its long form has the marker `stress`, and a
short form with a small count is among the ordinary tests (`forms`).
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.stress.driven import RUNS

SHARE: Final = float(os.environ.get("KVDESK_STRESS_SHARE", "1"))
SEED: Final = int(os.environ.get("KVDESK_STRESS_SEED", "0"))
SOAK_MINUTES: Final = float(os.environ.get("KVDESK_SOAK_MINUTES", "30"))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: its rounds, each with random numbers of its own."""

    long: bool
    _config: pytest.Config

    def rounds(self, name: str, n: int, seed: int = SEED) -> Iterator[tuple[str, random.Random]]:
        """`n` rounds: what to call each one in a failure, such as "kill -9, seed 0:37", and its random numbers.

        A long form makes `SHARE` of them and shows where it is: "kill -9: 37 of 200".
        """
        n = max(1, round(SHARE * n)) if self.long else n
        for number in range(1, n + 1):
            self.say(f"{name}: {number} of {n}")
            yield f"{name}, seed {seed}:{number}", random.Random(f"{seed}:{number}")

    def say(self, line: str) -> None:
        """Show a line of progress at once, also where output is captured; the short forms are silent."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if not self.long or reporter is None:
            return
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(line, flush=True)


def forms(short: int, long: int) -> pytest.MarkDecorator:
    """The two forms of a row, a test with an argument `n`: how many rounds each has."""
    marks = pytest.mark.stress, pytest.mark.timeout(7200)
    return pytest.mark.parametrize("n", [pytest.param(short, id="short"), pytest.param(long, id="long", marks=marks)])


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The rounds of this test."""
    long = any(request.node.get_closest_marker(name) for name in ("stress", "soak"))
    return Row(long, request.config)


@pytest.fixture(autouse=True)
def no_run_left() -> Iterator[None]:
    """A test that fails leaves no application running."""
    yield
    while RUNS:
        run = RUNS.pop()
        if run.process.poll() is None:
            run.kill()
