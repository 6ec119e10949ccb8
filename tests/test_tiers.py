"""Every test has a tier, and the table that gives it names what exists."""

import pytest

from tests.places import ROOT
from tests.tiers import PLACES, TIERS, may_choose


def test_what_the_table_names_exists() -> None:
    assert [place for place in PLACES if not (ROOT / place).exists()] == []


def test_each_test_of_this_run_has_one_tier(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert any(item.get_closest_marker(tier) for tier in TIERS), item.nodeid


@pytest.mark.parametrize(
    ("expression", "file", "may"),
    [
        ("not matrix and not stress and not real and not soak", "tests/benchmarks/test_new.py", False),
        ("not matrix and not stress and not real and not soak", "tests/stress/test_kill.py", True),
        ("not matrix and not stress and not real and not soak", "tests/test_new.py", True),
        ("unit", "tests/ui/test_new.py", False),
        ("matrix and not stress", "tests/test_new.py", True),
        ("stress", "tests/backends/local/test_audit.py", True),
        ("hypothesis and not matrix", "tests/benchmarks/test_new.py", True),
        ("", "tests/real/test_answers.py", True),
    ],
)
def test_a_file_is_left_out_where_neither_its_place_nor_a_mark_can_be_chosen(
    expression: str, file: str, may: bool
) -> None:
    assert may_choose(expression, file) is may
