"""What the system refuses becomes a sentence, with all that it said as the detail."""

from pathlib import Path

import pytest

from kvdesk.errors import StoreError, UserError, explained

SAID = "{name} cannot be read: {why}."


def test_the_detail_has_the_whole_path(tmp_path: Path) -> None:
    file = tmp_path / "none.jsonl"
    with pytest.raises(UserError) as refused, explained(SAID, name=file.name):
        file.read_bytes()
    assert str(refused.value).startswith("none.jsonl cannot be read: ")
    assert repr(str(file)) in refused.value.detail
    assert "FileNotFoundError" in refused.value.detail


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space."), "No space"),
        (OSError("it is strange"), "it is strange"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_there_is_always_a_reason(error: OSError, why: str) -> None:
    with pytest.raises(StoreError) as refused, explained(SAID, StoreError, name="x"):
        raise error
    assert str(refused.value) == f"x cannot be read: {why}."


def test_another_error_stays_itself() -> None:
    with pytest.raises(ValueError, match="no JSON"), explained(SAID, name="x"):
        raise ValueError("no JSON")
