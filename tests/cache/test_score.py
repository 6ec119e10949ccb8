"""A score is the sum of what the engine counted of each request."""

import json
from collections.abc import Iterable

import pytest

from kvdesk.cache.reuse.explain import Cause
from kvdesk.cache.reuse.prefix import read_again
from kvdesk.cache.reuse.prompt_change import Change
from kvdesk.cache.reuse.score import NOT_KEPT, NOT_SHARED, Misses, Score, from_json, label_of, total
from kvdesk.cache.reuse.usual_causes import UsualCause
from kvdesk.message import TurnStats


def request(prompt: int, reused: int, again: int = 0, miss: str = "") -> TurnStats:
    read = prompt - reused
    return TurnStats(prompt, reused, read, 5, 1.0, 100.0, 10.0, reread_tokens=again, miss=miss)


def score_of(requests: Iterable[TurnStats]) -> Score:
    return total(Score().with_request(stats) for stats in requests)


RUN = (
    request(1000, 0),
    request(1100, 1000),
    request(1200, 100, 1000, UsualCause.DATE),
    request(1300, 100, 1100, UsualCause.DATE),
    request(1400, 900, 300, UsualCause.TOOLS),
)


def test_a_score_counts_tokens_misses_and_seconds_by_cause() -> None:
    score = score_of(RUN)
    assert (score.requests, score.prompt_tokens, score.reused_tokens) == (5, 6000, 2100)
    assert score.misses == {UsualCause.DATE: Misses(2, 2100, 21.0), UsualCause.TOOLS: Misses(1, 300, 3.0)}
    assert score.sentence == (
        "35 % reused; 3 misses: date or time in the system prompt (2), tools reordered or changed (1)"
    )
    assert score.lines == [
        "6,000 prompt tokens in 5 requests, 2,100 reused",
        "date or time in the system prompt: 2,100 tokens read again, 21.0 s",
        "tools reordered or changed: 300 tokens read again, 3.0 s",
    ]


def test_what_never_began_counts_for_nothing() -> None:
    assert score_of([request(0, 0)]) == Score()
    assert Score().sentence == "No request came."


def test_only_what_is_whole_is_a_hundred() -> None:
    assert score_of([request(1000, 999)]).sentence == "99 % reused; no misses"
    whole = score_of([request(1000, 1000)])
    assert (whole.share, whole.lines) == (100, ["1,000 prompt tokens in 1 request, 1,000 reused"])


def test_a_speed_that_was_not_measured_costs_no_seconds() -> None:
    stats = TurnStats(10, 0, 10, 1, 0.0, 0.0, 0.0, reread_tokens=9, miss=NOT_SHARED)
    assert score_of([stats]).misses == {NOT_SHARED: Misses(1, 9, 0.0)}


def test_json_brings_it_back() -> None:
    score = score_of(RUN)
    assert from_json(json.loads(json.dumps(score.as_json()))) == score
    for damaged in ({}, {**score.as_json(), "misses": {"date": {}}}, {**score.as_json(), "requests": "many"}):
        with pytest.raises((KeyError, ValueError)):
            from_json(damaged)


def test_every_cause_that_can_miss_has_a_label_of_its_own() -> None:
    never = {Cause.FIRST, Cause.CONTINUED, Cause.REGENERATED, Cause.TAKEN, Cause.TEMPLATE, Cause.UNKNOWN}
    changes = [change for change in Change if change not in (Change.NOTHING, Change.USUAL)]
    causes = [*UsualCause, *changes, *(cause for cause in Cause if cause not in never), NOT_SHARED, NOT_KEPT]
    assert "prompt changed" not in map(label_of, causes)
    assert label_of(Cause.UNKNOWN) == label_of("of a later version") == "prompt changed"


HEAD, TAIL = list(range(100)), list(range(200, 300))


@pytest.mark.parametrize(
    ("held", "prompt", "reused", "n"),
    [
        pytest.param([*HEAD, 1000, *TAIL], [*HEAD, 1001, *TAIL, 7, 8, 9], 100, 100, id="one token changed"),
        pytest.param([*HEAD, *TAIL], [*TAIL, *HEAD], 0, 200, id="two blocks in another order"),
        pytest.param(HEAD, [*HEAD, *TAIL], 100, 0, id="continued"),
        pytest.param(HEAD, [*HEAD, *HEAD], 100, 0, id="the same text once more is new"),
        pytest.param([*HEAD, *TAIL], [*HEAD, *range(500, 600)], 100, 0, id="another question"),
        pytest.param([*HEAD, *TAIL], [*HEAD, 1, *range(200, 207), 2], 100, 0, id="seven alike are an accident"),
        pytest.param([*HEAD, *TAIL], [*HEAD, *TAIL], 199, 0, id="the last token again"),
        pytest.param([*HEAD, *TAIL], [*HEAD, *TAIL, 5], 0, 200, id="not shared"),
        pytest.param([], HEAD, 0, 0, id="nothing was held"),
        pytest.param([*HEAD, 1000, *TAIL[:20]], [*HEAD, *TAIL, *TAIL], 100, 21, id="no more than was lost"),
    ],
)
def test_tokens_that_are_read_again_were_held_in_runs(held: list[int], prompt: list[int], reused: int, n: int) -> None:
    assert read_again(held, prompt, reused) == n
