"""The rows of the page of models."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from kvdesk.library.catalogue import Fit, ModelFacts, expected_tok_s, layer_seconds
from kvdesk.library.find import FoundModel
from kvdesk.settings import CacheType, UsedModel
from kvdesk.values import replace
from kvdesk.viewmodel.models import (
    MOST_REMEMBERED,
    Machine,
    ModelRow,
    columns,
    in_order,
    measured_layer_s,
    remembered,
    row_of,
    summary,
)

MACHINE = Machine(20e9, measured=True, available=8_000_000_000, layer_s=0.0)
FOUND = FoundModel("tiny", Path("/m/tiny.gguf"), 500_000_000, "Jan")
FACTS = ModelFacts(FOUND, "Tiny", "llama", "Q4_K", 900_000_000, 8192, 16, 400_000_000)


def texts(row: ModelRow) -> dict[str, str]:
    return {caption: cell.text for (caption, _), cell in zip(columns(), row.cells, strict=True)}


def test_a_row_says_what_it_takes_and_how_fast_it_should_be() -> None:
    row = row_of(FACTS, Fit(8192, CacheType.Q8_0, 1_200_000_000), None, MACHINE)
    said = texts(row)
    assert said["Parameters"] == "900 M"
    assert said["Size"] == "500 MB"
    assert said["Fits here"] == "8,192, q8_0"
    assert said["Speed here"] == "≈ 50 tok/s"
    assert said["Last used"] == "–"
    assert "8,192 tokens of context with K and V in q8_0 take 1.2 GB; 8.0 GB are free." in row.cells[6].tip
    assert row.matches("tiny q4 jan")
    assert not row.matches("tiny q8_1")


def test_what_was_measured_stands_in_place_of_what_is_expected() -> None:
    row = row_of(FACTS, Fit(0, CacheType.F16, 9_000_000_000), UsedModel(path="/m/tiny.gguf", tok_s=7.25), MACHINE)
    assert texts(row)["Speed here"] == "7.2 tok/s"
    assert texts(row)["Fits here"] == "no"
    assert row.cells[6].tip == "It needs 9.0 GB, and 8.0 GB are free."


def test_the_last_time_that_the_settings_may_have_is_a_day_everywhere() -> None:
    used = UsedModel(used_ms=32_503_680_000_000)
    assert texts(row_of(FACTS, None, used, MACHINE))["Last used"] in ("2999-12-31", "3000-01-01")
    with pytest.raises(ValidationError, match="used_ms"):
        UsedModel(used_ms=used.used_ms + 1)


def test_favourites_come_first_and_what_cannot_be_opened_last() -> None:
    def row(title: str, *, favourite: bool = False, problem: str = "") -> ModelRow:
        return ModelRow(Path(title), title, favourite, True, problem, ())

    rows = [row("b"), row("a"), row("later"), row("new"), row("broken", problem="Cut off."), row("z", favourite=True)]
    assert [one.title for one in in_order(rows)] == ["z", "a", "b", "later", "new", "broken"]
    used = [UsedModel(path="new", used_ms=5), UsedModel(path="later", used_ms=7), UsedModel(path="b")]
    assert [one.title for one in in_order(rows, used)] == ["z", "new", "later", "a", "b", "broken"]


def test_the_model_that_ran_last_says_what_a_layer_costs() -> None:
    assert measured_layer_s([FACTS], {}, 20e9) is None
    used = {"/m/tiny.gguf": UsedModel(path="/m/tiny.gguf", tok_s=10, used_ms=3)}
    assert measured_layer_s([FACTS], used, 20e9) == pytest.approx((0.1 - 0.02) / 16)
    assert measured_layer_s([FACTS], used, 1e9) == 0  # it was faster than the memory is now


@pytest.mark.parametrize(("known", "asked"), [(0, 1), (1, 0)])
def test_the_speed_of_one_model_tells_that_of_another(known: int, asked: int) -> None:
    """Measured on one machine: a bandwidth of 44.5 GB/s, models of 135 M and 1 B."""
    bytes_s = 0.9 * 44.5e9
    models = (
        (replace(FACTS, n_layer=30, bytes_a_token=96_576_768), 185.6),
        (replace(FACTS, n_layer=16, bytes_a_token=462_692_352), 76.6),
    )
    layer_s = layer_seconds(models[known][0], bytes_s, models[known][1])
    assert expected_tok_s(models[asked][0], bytes_s, layer_s) == pytest.approx(models[asked][1], rel=0.1)


def test_the_oldest_is_forgotten_but_no_favourite() -> None:
    models: tuple[UsedModel, ...] = (UsedModel(path="kept", favourite=True),)
    for n in range(MOST_REMEMBERED + 5):
        models = remembered(models, UsedModel(path=str(n), used_ms=n + 1))
    assert len(models) == MOST_REMEMBERED + 1
    assert models[0].path == str(MOST_REMEMBERED + 4)
    assert models[-1].path == "kept"
    changed = remembered(models, models[3].model_copy(update={"tok_s": 5.0}))
    assert len(changed) == len(models)
    assert changed[3].tok_s == 5.0


def test_the_order_of_use_is_that_of_the_openings_not_of_the_clock() -> None:
    models = tuple(UsedModel(path=f"ahead{n}", used_ms=10**13 - n, tok_s=1.0) for n in range(MOST_REMEMBERED))
    for n in range(3):
        models = remembered(models, UsedModel(path=f"now{n}", used_ms=10**12 + n))
    assert [model.path for model in models[:4]] == ["now2", "now1", "now0", "ahead0"]
    assert len(models) == MOST_REMEMBERED
    again = remembered(models, models[3].model_copy(update={"used_ms": 10**12 + 9}))
    assert [model.path for model in again[:2]] == ["ahead0", "now2"]


def test_one_line_says_how_many_fit() -> None:
    rows = [row_of(FACTS, Fit(8192, CacheType.F16, 1), None, MACHINE), row_of(FACTS, None, None, MACHINE)]
    said = summary(rows, MACHINE)
    assert said.startswith(
        "Models that fit into the 8.0 GB of memory that are free now: 1 of 2; decoding reads 20.0 GB/s"
    )
    assert said.endswith("measured with a model that ran here")
    assert summary(rows, Machine(0, measured=False, available=8_000_000_000)).endswith("free now: 1 of 2")
