"""Every test has a tier, and the table that gives it names what exists."""

import pytest

from tests.places import ROOT
from tests.tiers import PLACES, TIERS


def test_what_the_table_names_exists() -> None:
    assert [place for place in PLACES if not (ROOT / place).exists()] == []


def test_each_test_of_this_run_has_one_tier(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert any(item.get_closest_marker(tier) for tier in TIERS), item.nodeid
