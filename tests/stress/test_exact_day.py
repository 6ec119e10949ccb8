"""With *Exact answers* each answer of a day of chats is that of an empty cache."""

from pathlib import Path

import pytest

from tests.stress.exact_day import Day


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_a_day_has_the_answers_of_empty_caches(talking_file: Path, tmp_path: Path) -> None:
    day = Day(talking_file, tmp_path)
    day.live(60)
    assert [pair for pair in day.pairs if pair[0] != pair[1]] == []
    assert len({text for text, _ in day.pairs}) > len(day.pairs) / 2, "a day of other answers"
