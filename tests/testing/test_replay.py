"""What a replay says of its turns, and budgets in a file."""

from pathlib import Path

import pytest

from kvdesk.errors import UserError
from kvdesk.testing import CacheMiss
from kvdesk.testing.replay import Budget, Replay, Turn, budget_of

BUDGETS = """
[lighthouse]
least_share = 0.9
most_read = 150

[light]
most_read = 149

[strict]
least_share = 1
"""


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    file = tmp_path / "kv-budget.toml"
    file.write_text(BUDGETS, encoding="utf-8")
    turns = Turn(100, 0, 0), Turn(120, 95, 100, 95, "'noon'", "'one'"), Turn(121, 96, 100)
    return Replay(turns, "tiny.gguf", file)


def test_shares_are_of_what_could_be_reused(replay: Replay) -> None:
    assert [turn.share for turn in replay.turns] == [1.0, 0.95, 0.96]
    assert Turn(120, 119, 110).share == 1.0, "the beginning came from another conversation"
    replay.assert_reused(2)
    replay.assert_reused(2, at_least=0.95)


def test_a_miss_names_the_first_token_that_differs(replay: Replay) -> None:
    with pytest.raises(CacheMiss) as found:
        replay.assert_reused(2, at_least=0.96)
    assert str(found.value) == (
        "Turn 2 reused 95% of what it could (95 of 100 tokens), not 96%.\n"
        "It read 25 of its 120 tokens (tiny.gguf).\n"
        "The first token that differs is number 95 of the prompt:\n"
        "  turn 1: 'noon'\n"
        "  turn 2: 'one'"
    )
    with pytest.raises(CacheMiss, match="No token differs from the previous turn"):
        replay.assert_reused(3, at_least=1)


@pytest.mark.parametrize("turn", [0, 1, 4])
def test_only_turns_that_can_reuse_are_asked(replay: Replay, turn: int) -> None:
    with pytest.raises(UserError, match=rf"There is no turn {turn}: .* the last is 3\."):
        replay.assert_reused(turn)


def test_budgets_hold_for_all_turns(replay: Replay) -> None:
    replay.assert_budget("lighthouse")
    with pytest.raises(CacheMiss, match="All turns read 150 tokens; the budget “light” has 149"):
        replay.assert_budget("light")
    with pytest.raises(CacheMiss, match="Turn 2 reused 95%"):
        replay.assert_budget("strict")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[other]\nmost_read = 1", "kv-budget.toml has no budget “a”; it has other."),
        ("a = 3", "has least_share"),
        ("[a]", "has least_share"),
        ("[a]\nleast_share = 1.2", "has least_share"),
        ("[a]\nmost_read = true", "has least_share"),
        ("[a]\nmost_tokens = 3", "has least_share"),
        ("[a", "kv-budget.toml cannot be read"),
    ],
)
def test_a_budget_that_cannot_be_read_is_no_budget(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "kv-budget.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        budget_of(file, "a")


def test_a_file_that_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        budget_of(tmp_path / "none.toml", "a")


def test_one_of_both_limits_will_do(replay: Replay) -> None:
    assert budget_of(replay.budgets, "light") == Budget(0.0, 149)
    assert budget_of(replay.budgets, "strict") == Budget(1.0, -1)
