"""What each experiment says follows from the measured values: others lead to the opposite."""

import math
from itertools import pairwise

import pytest

from kvdesk.cache.geometry import ModelFacts
from kvdesk.experiments.experiment import Experiment
from kvdesk.experiments.questions import (
    documents,
    eviction,
    forgetting,
    fragmentation,
    kv_types,
    positions,
    requantization,
    seq_ids,
    seq_rm_memory,
    size_formula,
)
from kvdesk.experiments.questions.six_requests import EXPERIMENT as SIX_REQUESTS
from kvdesk.protocol.experiment import Result, Sample, chosen
from kvdesk.settings import CacheType
from kvdesk.values import replace


def concluded(experiment: Experiment, samples: list[Sample]) -> Result:
    result = experiment.conclude(chosen(experiment.parameters, {}, short=True), samples)
    answer = result.verdict.answer
    assert answer.endswith(".")
    assert len(answer) <= 120, answer
    assert "95 %" not in answer, "intervals are in the table of figures"
    return result


REFUSED = ("gap", "jump", "last again", "from 0 again", "gap inside", "back inside", "0 after the end was removed")


def positions_said(*, refused: tuple[str, ...] = REFUSED, difference: float = 0.0, cells: float = 16) -> str:
    samples = [
        Sample(case.id, i, -1 if case.id in refused else 0, note="Y = X + 1" if case.id in refused else "")
        for i, case in enumerate(positions.CASES)
    ]
    samples += [Sample(positions.DIFFERENCE, 0, difference), Sample(positions.CELLS, 16, cells)]
    return concluded(positions.EXPERIMENT, samples).verdict.key


def test_positions_follow_the_answers() -> None:
    assert positions_said() == "any start; no gaps; no going back; nothing stacks"
    assert positions_said(refused=()) == "any start; gaps are taken; going back is taken; nothing stacks"
    assert positions_said(refused=(*REFUSED, "start elsewhere")).startswith("not any start")


@pytest.mark.parametrize(("difference", "cells"), [(0.1, 16), (0, 32)])
def test_what_is_left_of_a_removed_text_is_stacking(difference: float, cells: float) -> None:
    assert positions_said(difference=difference, cells=cells).endswith("context stacks")


def seq_ids_result(*recycled: float, refused: bool) -> Result:
    """recycled: seconds of a request with recycled ids, in each round; of the others 1."""
    samples = []
    for number, of_recycled in enumerate(recycled):
        for policy in seq_ids.POLICIES:
            for request in range(1, 7):
                note = "code -1: invalid" if refused and policy.ids == "fresh" and request == 5 else ""
                seconds = of_recycled if policy is seq_ids.RECYCLED else 1.0
                samples.append(Sample(policy.name, request, seconds, number, note))
                if note:
                    break
    return concluded(seq_ids.EXPERIMENT, samples)


def test_ids_differ_when_their_times_do() -> None:
    assert seq_ids_result(1.05, refused=True).verdict.key == "ids do not differ; refused"
    assert seq_ids_result(2.0, refused=False).verdict.key == "ids differ; not refused"


def test_there_are_more_requests_than_ids() -> None:
    few = chosen(seq_ids.PARAMETERS, {"n_seq_max": 8}, short=True)
    enough = chosen(seq_ids.PARAMETERS, {"n_seq_max": 8, "requests": 9}, short=True)
    assert (few["requests"], seq_ids._requests(few)) == (6, 9)
    assert seq_ids.EXPERIMENT.work(few) == seq_ids.EXPERIMENT.work(enough)
    assert seq_ids.EXPERIMENT.settings(few) == seq_ids.EXPERIMENT.settings(enough)
    assert seq_ids._requests(chosen(seq_ids.PARAMETERS, {"requests": 24}, short=True)) == 24


def seq_rm_result(*freed_mb: float, cells: float = 0, kv_mb: float = 128.0) -> Result:
    """freed_mb: by removal, in each round; cells: still in use then. Before it 256 of 4,096 are, a 16th of K and V."""
    samples = []
    for number, freed in enumerate(freed_mb):
        resident = (10.0, 10.0 + kv_mb, 15.0 + kv_mb, 15.0 + kv_mb - freed, 15.0 + kv_mb - freed, 15.0 + kv_mb, 10.0)
        samples += [Sample(seq_rm_memory.BYTES, i, mb, number) for i, mb in enumerate(resident)]
        samples += [Sample(seq_rm_memory.CELLS, i, n, number) for i, n in ((2, 256), (3, cells), (5, 256))]
        samples.append(Sample(seq_rm_memory.KV, 0, kv_mb, number))
    return concluded(seq_rm_memory.EXPERIMENT, samples)


def test_memory_is_given_back_when_that_of_the_filled_cells_is() -> None:
    assert seq_rm_result(0).verdict.key == "frees cells, keeps memory"
    assert seq_rm_result(0, cells=256).verdict.key == "keeps cells, keeps memory"
    assert seq_rm_result(3).verdict.key == "frees cells, keeps memory"
    given = seq_rm_result(7.5)
    assert given.verdict.key == "frees cells, gives memory"
    assert "gives 7.5 MB back, of 8 MB" in given.verdict.sentence
    assert "belongs to the context" not in given.verdict.sentence


def test_too_little_memory_tells_nothing() -> None:
    for freed in (0.0, 0.5):
        result = seq_rm_result(freed, freed, kv_mb=8.0)
        assert result.verdict.key == "frees cells, too little memory to tell"
        assert "the 0.5 MB of K and V in the filled cells are too few" in result.verdict.sentence
        assert result.remarks == ()


def size_said(allocated: float, estimated: float = 100.0) -> str:
    samples = [Sample(name, 0, 3) for name in ("layers", "heads", "K/V heads", "head size")]
    for i in range(6):
        samples += [Sample(size_formula.ALLOCATED, i, allocated), Sample(size_formula.HIDDEN, i, 300)]
        samples += [Sample(size_formula.KV_HEADS, i, 100), Sample(size_formula.ESTIMATE, i, estimated)]
    return concluded(size_formula.EXPERIMENT, samples).verdict.key


def test_the_formula_is_held_against_what_was_allocated() -> None:
    assert size_said(100) == "right with K/V heads; the estimate is right"
    assert size_said(300) == "the formula is right; the estimate is wrong"
    assert size_said(50, 50) == "neither; the estimate is right"


def kv_types_result(
    kl: dict[kv_types.Pair, float], *, refused: tuple[kv_types.Pair, ...] = (), unsteady: float = 0.0
) -> Result:
    """unsteady: share by which the divergence of a block is above and below, in turn."""
    values = chosen(kv_types.PARAMETERS, {}, short=True)
    samples = []
    for pair in kv_types.PAIRS:
        if pair in refused:
            samples.append(Sample(f"{pair}: {kv_types.REFUSED}", 0, 1, note="V needs flash attention."))
            continue
        samples.append(Sample(f"{pair}: {kv_types.BYTES}", 0, 100.0))
        for number in range(2):
            samples.append(Sample(f"{pair}: {kv_types.FIRST}", number, 24, number))
            for i, (start, _) in enumerate(kv_types._blocks(int(values["chunk"]))):
                swing = 1 + unsteady * (-1) ** i
                samples.append(Sample(f"{pair}: {kv_types.NLL}", start, 1.0 + kl.get(pair, 0.0), number))
                samples.append(Sample(f"{pair}: {kv_types.KL}", start, kl.get(pair, 0.0) * swing, number))
                samples.append(Sample(f"{pair}: {kv_types.TOP}", start, 1.0, number))
        if pair != kv_types.ROUNDING:
            for depth in kv_types._depths(values):
                samples += [Sample(f"{pair}: {kv_types.SECONDS}", depth, 0.01, number) for number in range(2)]
    return kv_types.EXPERIMENT.conclude(values, samples)


def kv_types_said(q8: float, q4: float, k: float, v: float, rounding: float = 0.001) -> str:
    kinds = kv_types.QUANTIZED
    f16, (q8_0, q4_0) = kv_types.F16, kinds
    pair = kv_types.Pair
    kl = {pair(q8_0, q8_0): q8, pair(q4_0, q4_0): q4, pair(q4_0, f16): k, pair(f16, q4_0): v}
    return kv_types_result({**kl, kv_types.ROUNDING: rounding}).verdict.key


def test_types_lose_what_their_divergence_says() -> None:
    rounding = "changes at most twice as much as by rounding alone"
    assert kv_types_said(0.002, 0.05, 0.04, 0.01) == f"q8_0 {rounding}, q4_0 changes; K matters more"
    assert kv_types_said(0.005, 0.9, 0.01, 0.04) == "q8_0 hardly changes, q4_0 changes strongly; V matters more"
    assert kv_types_said(0.05, 0.05, 0.01, 0.04, rounding=0.03) == f"q8_0 {rounding}, q4_0 {rounding}; V matters more"


def test_the_mean_of_blocks_is_that_of_their_tokens() -> None:
    blocks = kv_types._blocks(256)
    assert (blocks[0], blocks[-1]) == ((128, 144), (240, 255))  # 127 tokens, as in perplexity.cpp
    result = kv_types_result({kv_types.Pair(*(kv_types.QUANTIZED[0],) * 2): 0.5})
    assert [f.value for f in result.figures if f.name == "KL divergence, K q8_0, V q8_0"] == [pytest.approx(0.5)]
    perplexity = next(f for f in result.figures if f.name == "perplexity over f16, K q8_0, V q8_0")
    assert perplexity.value == pytest.approx(math.exp(0.5))


def test_types_that_a_model_does_not_take_are_said() -> None:
    quantized = tuple(pair for pair in kv_types.PAIRS if kv_types.F16 not in (pair.k, pair.v))
    result = kv_types_result({}, refused=quantized)
    assert result.verdict.key == "not possible"
    assert result.remarks[0] == "K q8_0, V q8_0 is not possible with this model: V needs flash attention."


def test_a_recurrent_model_has_no_keys_to_measure() -> None:
    recurrent = ModelFacts("mamba", "recurrent")
    for experiment in (SIX_REQUESTS, seq_rm_memory.EXPERIMENT, fragmentation.EXPERIMENT):
        assert experiment.applies(recurrent).startswith("This model is recurrent")
        assert experiment.applies(replace(recurrent, kind="attention")) == ""
    window = replace(recurrent, kind="iswa")
    assert fragmentation.EXPERIMENT.applies(window).startswith("This model's cache is not one of plain attention")


def requantization_said(
    faster: float, more: float, *, differ: int = 0, refused: bool = False, unsteady: float = 0.0
) -> Result:
    """Reading again takes a second and has a divergence of 0.01. unsteady: share by which that of a converted block of
    q4_0 is above and below, in turn.
    """
    samples = []
    for kind in requantization.TARGETS:
        if refused:
            samples.append(Sample(f"{kind.value}: {requantization.REFUSED}", 0, 1, note="llama.cpp cannot."))
            continue
        again, converted = (f"{kind.value}: {name}" for name in (requantization.AGAIN, requantization.CONVERT))
        samples.append(Sample(f"{kind.value}: {requantization.OTHER}", 0, differ))
        for number in range(2):
            samples += [Sample(again, 0, 1.0, number), Sample(converted, 0, 1 / faster, number)]
        for i, at in enumerate(range(0, 64, 16)):
            swing = 1 + unsteady * (-1) ** i * (kind is CacheType.Q4_0)
            samples.append(Sample(f"{again}: {requantization.KL}", at, 0.01))
            samples.append(Sample(f"{converted}: {requantization.KL}", at, 0.01 * more * swing))
    return concluded(requantization.EXPERIMENT, samples)


def test_a_conversion_is_judged_by_its_time_and_its_loss() -> None:
    assert requantization_said(100, 1.0).verdict.key == "q8_0 pays and loses no more; q4_0 pays and loses no more"
    assert "q8_0 loses no more, and hardly pays" in requantization_said(10, 1.05).verdict.key
    assert "q4_0 pays and loses more" in requantization_said(100, 1.2).verdict.key
    assert "q8_0 does not pay" in requantization_said(2, 3).verdict.key
    assert "bit for bit" in requantization_said(100, 1.0).verdict.sentence
    assert "7 bytes of the first layer are not" in requantization_said(100, 1.0, differ=7).verdict.sentence
    none = requantization_said(1, 1, refused=True)
    assert (none.verdict.key, none.remarks[0]) == ("not possible", "llama.cpp cannot.")


def documents_said(sooner: float, same: dict[int, float]) -> Result:
    """Reading all takes a second; `same`: the share of equal answers with so many tokens read again."""
    samples = []
    for n in (documents.ALL, *documents.READ_AGAIN, documents.ROUNDED):
        share = same.get(n, 1.0)
        for number in range(50):
            samples.append(Sample(f"{n}: {documents.SAME}", number, float(number < round(50 * share))))
            samples.append(Sample(f"{n}: {documents.RIGHT}", number, 1.0))
        for number in range(2):
            seconds = 1.0 if n == documents.ALL else 1 / sooner
            samples.append(Sample(f"{n}: {documents.SECONDS}", 0, seconds, number))
            if n != documents.ALL:
                samples += [Sample(f"{n}: {documents.KL}", at, 0.1, number) for at in range(4)]
    return concluded(documents.EXPERIMENT, samples)


def test_a_document_is_read_once_only_where_answers_stay_and_it_is_quick() -> None:
    assert documents_said(20, {0: 1.0}).verdict.key == "holds with 0"
    assert documents_said(20, {0: 0.94, 8: 0.96}).verdict.key == "holds with 8"
    assert documents_said(20, {0: 0.5, 8: 0.9, 32: 0.94}).verdict.key == "does not hold"
    slow = documents_said(9, {}).verdict
    assert slow.key == "does not hold"
    assert slow.sentence.endswith("At least 10 times and 96% are needed."), "which of both fails can be seen"
    (table,) = documents_said(20, {}).tables
    ways = ["0 read again", "8 read again", "32 read again", "32 read again, kept as q8_0", "all read"]
    assert [row[0] for row in table.rows] == ways


def forgetting_result(
    untouched: float, edited: float, erratum: float, said: tuple[str, ...] = (), *, unsteady: float = 0.0, n: int = 6
) -> Result:
    """`n` facts with these divergences from what the recomputed cache says; `said`: by whom each was said. unsteady:
    share by which that after an erratum is above and below, in turn.
    """
    samples = []
    kls = dict(zip(forgetting.WAYS, (untouched, edited, erratum, 0.0), strict=True))
    for i in range(n):
        for way, kl in kls.items():
            swing = 1 + unsteady * (-1) ** i * (way == forgetting.ERRATA)
            samples.append(Sample(way, i, kl * (1 + i / 10) * swing, note=f"fact {i}"))
            samples.append(Sample(f"{way}: {forgetting.SAID}", i, float(way in said)))
            samples.append(Sample(f"{way}: {forgetting.READ}", i, {forgetting.ERRATA: 20.0}.get(way, 100.0)))
    return concluded(forgetting.EXPERIMENT, samples)


def test_what_stays_of_a_removed_fact_decides() -> None:
    assert forgetting_result(4.0, 0.1, 0.05).verdict.key == "removed is forgotten; an erratum helps"
    assert forgetting_result(4.0, 1.0, 1.0).verdict.key == "removed is half forgotten; an erratum does not help"
    kept = forgetting_result(4.0, 3.0, 0.4, (forgetting.UNTOUCHED, forgetting.EDITED))
    assert kept.verdict.key == "removed is not forgotten; an erratum helps"
    assert "says it in 6 of 6 cases, 6 before and 0 when it has never read it" in kept.verdict.sentence
    assert "costs 100 tokens and leaves nothing; an erratum costs 20, leaves 10%" in kept.verdict.sentence
    assert kept.figures[0].value == pytest.approx(0.75)
    beyond = forgetting_result(4.0, 6.0, 5.0)
    assert beyond.verdict.key == "removed is not forgotten; an erratum helps"
    assert "farther" in beyond.verdict.answer
    assert "the next token is 1.50 times as far" in beyond.verdict.sentence, "no effect stays by more than all of it"


def test_what_was_never_known_is_neither_forgotten_nor_remembered() -> None:
    assert forgetting_result(0.01, 0.01, 0.0).verdict.key == "nothing was known"


def test_facts_are_different_ones() -> None:
    known = forgetting.facts(40)
    assert len({(fact.name, fact.thing) for fact in known}) == 40
    assert all(a.value != b.value for a, b in pairwise(known))


def eviction_result(**lost: float) -> Result:
    """Eight questions; how much each way loses at 75 % of the cells, more below."""
    samples = [Sample(f"{eviction.UNTOUCHED}: {eviction.SAID}", 100, 1.0, i) for i in range(8)]
    for way in eviction.WAYS:
        kl = lost.get(way.partition(" ")[0].partition("-")[0], 1.0)
        for x in eviction.KEPT:
            samples.append(Sample(f"{way}: {eviction.MS}", x, 3.0))
            samples.append(Sample(f"{way}: {eviction.CELLS}", x, 5.0 * x))
            for i in range(8):
                samples.append(Sample(f"{way}: {eviction.KL}", x, kl * (1 + i / 10) * 75 / x, i))
                samples.append(Sample(f"{way}: {eviction.SAID}", x, float(kl < 0.5), i))
    return concluded(eviction.EXPERIMENT, samples)


def test_who_loses_least_is_measured_and_so_is_what_a_norm_says() -> None:
    attended = eviction_result(least=0.1, low=0.4, high=0.8)
    assert attended.verdict.key == "least is lost with least attended; low norms are worth more"
    assert "8, 8, 8 (least attended)" in attended.verdict.sentence
    assert "0, 0, 0 (slide)" in attended.verdict.sentence
    assert attended.figures[0].value == pytest.approx(0.25)
    assert attended.tables[0].rows[0] == ("slide", "75 %", "375", "0 / 8", *attended.tables[0].rows[0][4:])
    slide = eviction_result(slide=0.2, low=0.9, high=0.3)
    assert slide.verdict.key == "least is lost with slide; high norms are worth more"


def test_the_control_never_wins_and_equals_are_both_named() -> None:
    assert eviction_result(high=0.1, sinks=0.5).verdict.key == "least is lost with sinks; high norms are worth more"
    equal = eviction_result(low=0.5, sinks=0.5, high=0.5)
    assert equal.verdict.key == "least is lost with sinks or low-norm keys; norms say nothing"
