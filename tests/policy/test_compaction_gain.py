"""Compaction pays where the span is dear, and never in the middle of an answer."""

from __future__ import annotations

import random

import pytest

from kvdesk.policy.compaction_gain import Fragmented, Moment, SpanCost, judge_compaction

IDLE = Moment(in_answer=False, idle=True, n_expected=300)
HOLES = Fragmented(n_kv=8192, n_kv_after=512, n_visible=500, blob_bytes=20_000_000)


def learned(per_span: float, per_visible: float) -> SpanCost:
    cost, draw = SpanCost(), random.Random(1)
    for n_kv, seen in [(256, 200), (512, 500), (1024, 900), (2048, 1900), (8192, 520), (4096, 520)]:
        for _ in range(6):
            ms = 8 + per_span * n_kv + per_visible * seen
            cost.learn(n_kv, seen, ms * draw.lognormvariate(0, 0.04) * (5 if draw.random() < 0.05 else 1))
    cost.learn_blob(10_000_000, 50.0)
    return cost


def test_without_flash_attention_it_pays() -> None:
    verdict = judge_compaction(learned(0.0022, 0.0), HOLES, IDLE)
    assert verdict.compact
    assert verdict.gain_ms == pytest.approx(0.0022 * (8192 - 512) * 300, rel=0.2)
    assert verdict.cost_ms == pytest.approx(100)
    assert "8,192 -> 512" in verdict.reason


def test_with_flash_attention_it_does_not() -> None:
    verdict = judge_compaction(learned(0.00001, 0.002), HOLES, Moment(in_answer=False, idle=False, n_expected=300))
    assert not verdict.compact


@pytest.mark.parametrize(
    ("moment", "word"),
    [
        (Moment(in_answer=True, idle=False, n_expected=10_000), "middle"),
        (Moment(in_answer=False, idle=True, n_expected=10_000, enabled=False), "off"),
        (Moment(in_answer=False, idle=True, n_expected=1), "not pay"),
    ],
)
def test_when_it_never_happens(moment: Moment, word: str) -> None:
    verdict = judge_compaction(learned(0.0022, 0.0), HOLES, moment)
    assert not verdict.compact
    assert word in verdict.reason


def test_a_large_gain_does_not_wait_for_idleness() -> None:
    busy = Moment(in_answer=False, idle=False, n_expected=300)
    assert judge_compaction(learned(0.0022, 0.0), HOLES, busy).compact


def test_a_compact_cache_is_left_alone() -> None:
    compact = Fragmented(n_kv=512, n_kv_after=512, n_visible=500, blob_bytes=1)
    assert not judge_compaction(learned(0.0022, 0.0), compact, IDLE).compact


def test_nothing_is_assumed_before_it_was_measured() -> None:
    cost = SpanCost()
    for _ in range(50):
        cost.learn(512, 400, 9.0)
    assert not judge_compaction(cost, HOLES, IDLE).compact
    assert cost.blob_ms(1000) is None
