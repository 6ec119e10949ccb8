"""Which tier a test belongs to. This is the only place that says so; docs/tests.md says what each tier is for.

A test of `tests/stress` is in its own tier by its mark. Any other test has the tier of its own mark `matrix` (on a
module, a test or one of its parameters), else that of the nearest entry of `PLACES` above it. `tests` itself is an
entry, so that no test is without a tier.
"""

from functools import cache
from pathlib import PurePosixPath
from typing import Final

import pytest

UNIT, INTEGRATION, MATRIX, REAL = "unit", "integration", "matrix", "real"
TIERS: Final = (UNIT, INTEGRATION, MATRIX, REAL, "stress", "soak")
"""From the one that runs first to the one that runs least."""

PLACES: Final = {
    "tests": UNIT,
    "tests/app": INTEGRATION,
    "tests/backends/local": INTEGRATION,
    "tests/backends/process": INTEGRATION,
    "tests/benchmarks": MATRIX,
    "tests/cache/test_blob.py": INTEGRATION,
    "tests/cache/test_breakages.py": MATRIX,
    "tests/cache/test_compaction.py": INTEGRATION,
    "tests/cache/test_excerpt.py": INTEGRATION,
    "tests/cache/test_spread.py": INTEGRATION,
    "tests/cli": INTEGRATION,
    "tests/dev": MATRIX,
    "tests/experiments": INTEGRATION,
    "tests/library/test_preflight.py": INTEGRATION,
    "tests/packaging/test_translations.py": INTEGRATION,
    "tests/real": REAL,
    "tests/server": INTEGRATION,
    "tests/state_files": INTEGRATION,
    "tests/stress": MATRIX,
    "tests/stress/test_kill.py": INTEGRATION,
    "tests/notebook/test_watch.py": INTEGRATION,
    "tests/terminal/test_chat.py": INTEGRATION,
    "tests/testing/test_engine.py": INTEGRATION,
    "tests/testing/test_plugin.py": INTEGRATION,
    "tests/ui": INTEGRATION,
}
"""The tier of files and folders. What is deeper counts."""

WINDOW_FIXTURES: Final = frozenset({"qapp", "qtbot"})


def tier_of(item: pytest.Item) -> str:
    """The tier of a collected test."""
    marks = {mark.name for mark in item.iter_markers()}
    own = next((tier for tier in reversed(TIERS) if tier in marks), None)
    return own or _tier_of_place(item.nodeid.partition("::")[0])


@cache
def _tier_of_place(file: str) -> str:
    place = PurePosixPath(file)
    return next(PLACES[str(above)] for above in (place, *place.parents) if str(above) in PLACES)


def mark_tiers(items: list[pytest.Item]) -> None:
    """Give each test the mark of its tier. Raises UsageError where a unit test asks for a window."""
    for item in items:
        tier = tier_of(item)
        item.add_marker(tier)
        asked = WINDOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if tier == UNIT and asked:
            raise pytest.UsageError(f"{item.nodeid} is a unit test and asks for {min(asked)}: see tests/tiers.py")
