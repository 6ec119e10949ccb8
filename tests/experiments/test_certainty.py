"""A figure whose interval has its bar inside is not certain."""

from collections.abc import Callable

import pytest

from kvdesk.experiments.questions import context_size, documents, fragmentation, kv_types
from kvdesk.protocol.experiment import Result
from tests.experiments.test_conclusions import (
    documents_said,
    forgetting_result,
    kv_types_result,
    requantization_said,
    seq_ids_result,
    seq_rm_result,
)
from tests.experiments.test_time_conclusions import (
    context_size_said,
    fragmentation_said,
    no_cache_said,
    rebuild_said,
    threads_result,
)

Q8, Q4 = (kv_types.Pair(kind, kind) for kind in kv_types.QUANTIZED)
DIVERGENCES = {kv_types.ROUNDING: 0.001, Q8: 0.009, Q4: 0.05, kv_types.Pair(Q4.k, kv_types.F16): 0.04}
NEAR = {
    "ids recycled, cleaned over one id, cleaned, 1.26 (95 %: ": lambda: seq_ids_result(1.25, 1.27, refused=True),
    "given back by removal, 5 MB ": lambda: seq_rm_result(0.0, 5.0, 8.0),
    "without over with, 64 tokens, 1.06 (95 %: ": lambda: no_cache_said(1, 1.5, 0.12, unsteady=0.2),
    "KL divergence, K q8_0, V q8_0, 0.00904 nats (95 %: ": lambda: kv_types_result(DIVERGENCES, unsteady=0.6),
    "one token, beside one busy process, 2 threads over the best, 1.17 (95 %: ": lambda: threads_result(
        3.0, 1.17, spread=0.01
    ),
    "one token, 8,192 over 1,024 cells": lambda: context_size_said(context_size.MUCH, 1.2, 1.0, noise=0.1),
    "a token, compacted over before, 0.87 (95 %: ": lambda: rebuild_said(0.87, 0.87, spread=0.005),
    "KL of q4_0, converted over read again, 1.09 (95 %: ": lambda: requantization_said(100, 1.09, unsteady=0.2),
    "ghost share, with an erratum over without, 0.939 (95 %: ": lambda: forgetting_result(4.0, 1.0, 0.95, unsteady=0.3),
    "a token, rebuilt, text read again over before, 0.62 (95 %: ": lambda: rebuild_said(0.5, 0.62, spread=0.005),
}
"""What is said of the one figure of a result whose interval has its bar inside."""
FAR = (
    lambda: seq_ids_result(1.0, 1.01, refused=True),
    lambda: seq_rm_result(0.0, 0.1, 0.0),
    lambda: no_cache_said(1, 2, 1),
    lambda: kv_types_result(DIVERGENCES),
    lambda: threads_result(3.0, 2.0),
    lambda: context_size_said(1.0, 1.2, 1.0),
    lambda: rebuild_said(0.5, 0.5, spread=0.005),
    lambda: fragmentation_said(3, 1),
)


def not_certain(result: Result) -> list[str]:
    return [remark for remark in result.remarks if remark.startswith("Not certain: ")]


@pytest.mark.parametrize("said", NEAR)
def test_a_figure_near_its_bar_is_not_certain(said: str) -> None:
    (remark,) = not_certain(NEAR[said]())
    assert remark.startswith(f"Not certain: {said}")
    assert remark.endswith("which is within its interval.")


@pytest.mark.parametrize("result", FAR)
def test_what_is_far_from_its_bar_is_certain(result: Callable[[], Result]) -> None:
    assert not_certain(result()) == []


def test_each_layout_near_the_bar_is_named() -> None:
    remarks = not_certain(fragmentation_said(fragmentation.SLOWER, 1, noise=0.1))
    assert [remark.split(": ")[1] for remark in remarks] == ["no flash attention, f16", "no flash attention, K q8_0"]


def test_a_single_fact_has_no_interval() -> None:
    alone = forgetting_result(4.0, 0.1, 0.05, n=1)
    assert alone.verdict.key == "removed is forgotten; an erratum helps"
    first, *_ = not_certain(alone)
    assert first == "Not certain: ghost share, 0.025, was measured once and judged by 0.1."


def test_fifty_answers_do_not_show_that_all_but_few_are_the_same() -> None:
    remarks = not_certain(documents_said(20, {}))
    assert len(remarks) == len(documents.READ_AGAIN) + 1
    assert remarks[0].startswith("Not certain: 0 read again: same answers, 1 (95 %: 0.929 to 1), was judged by 0.96")
