"""What experiments say of time follows from the measured seconds: others lead to the opposite."""

import pytest

from kvdesk.cache.geometry import ContextParams, ModelFacts, plan
from kvdesk.experiments.questions import context_size, drafts, fragmentation, no_cache, rebuild, threads
from kvdesk.policies.drafting import SIZES
from kvdesk.protocol.experiment import Result, Sample, chosen
from kvdesk.settings import CacheType
from tests.experiments.test_conclusions import concluded


def no_cache_said(power_with: float, power_without: float, factor: float, unsteady: float = 0.0) -> Result:
    """unsteady: share by which everything without the cache takes longer in the second round."""
    samples = [
        Sample(name, n, scale * n**power * (1 + unsteady * number * (name == no_cache.WITHOUT)), number)
        for n in (8, 16, 32, 64)
        for number in range(2)
        for name, power, scale in ((no_cache.WITH, power_with, 1.0), (no_cache.WITHOUT, power_without, factor))
    ]
    return concluded(no_cache.EXPERIMENT, samples)


def test_the_faster_one_is_named() -> None:
    result = no_cache_said(1, 2, 1)
    assert result.verdict.key == "the cache is faster and grows less"
    assert [round(figure.value, 6) for figure in result.figures] == [8, 16, 32, 64, 1, 2]
    assert no_cache_said(2, 1, 1).verdict.key == "no cache is faster and grows less"


def fragmentation_said(slow: float, compacted: float, rebuilt: float = 1.0, noise: float = 0.0) -> Result:
    """`slow`, `compacted`, `rebuilt`: times over those side by side, without flash attention; `noise`: share by which
    the first differs from round to round.
    """
    samples = []
    for kind in fragmentation.KINDS:
        for layout in fragmentation.LAYOUTS:
            name = f"{kind.name}: {layout}"
            known = {fragmentation.COMPACT: 1.0, fragmentation.COMPACTED: compacted, fragmentation.REBUILT: rebuilt}
            for size in (8, 16, 32, 64):
                for n in range(3):
                    seconds = known.get(layout, slow * (1 + noise * (n - 1)))
                    samples.append(Sample(name, size, 1.0 if kind.flash_attn else seconds, n))
                samples.append(Sample(fragmentation.HIGH_WATER + name, size, 63.0 * size))
    return concluded(fragmentation.EXPERIMENT, samples)


def test_a_scattered_cache_is_slow_when_its_tokens_are() -> None:
    slower = "slower: no flash attention, f16 and no flash attention, K q8_0"
    assert fragmentation_said(3, 1).verdict.key == f"{slower}; compaction heals; a rebuild heals"
    assert fragmentation_said(3, 3).verdict.key == f"{slower}; compaction does not heal; a rebuild heals"
    assert fragmentation_said(3, 1, 3).verdict.key == f"{slower}; compaction heals; a rebuild does not heal"
    assert fragmentation_said(1.1, 1).verdict.key == "slower: none; compaction heals; a rebuild heals"


def test_quantized_keys_are_measured_with_and_without_flash_attention() -> None:
    kinds = {(kind.flash_attn, kind.type_k, kind.type_v) for kind in fragmentation.KINDS}
    f16, q8_0 = CacheType.F16, CacheType.Q8_0
    assert kinds == {(True, f16, f16), (True, q8_0, q8_0), (False, f16, f16), (False, q8_0, f16)}
    (table,) = fragmentation_said(3, 1, 1.2).tables
    assert len(table.rows) == len(kinds) * len(fragmentation.LAYOUTS)
    assert [row[-1].split()[0] for row in table.rows if row[1] == "rebuilt"] == ["1", "1", "1.2", "1.2"]


def threads_result(many: float, loaded: float, most: float = 9.0, spread: float = 0.0) -> Result:
    """Of two processors. many: seconds with four threads, quiet. Beside a busy process: loaded: seconds with two over
    those with one, spread: to both sides; most: seconds with four.
    """
    samples = []
    for what in (threads.WRITTEN, threads.READ):
        for number in range(2):
            for count, seconds in ((1, 1.5), (2, 1.0), (4, many)):
                samples.append(Sample(f"{what}, {threads.QUIET}", count, seconds, number))
            both = 1.5 * (loaded + (-spread, spread)[number])
            for count, seconds in ((1, 1.5), (2, both), (4, most)):
                samples.append(Sample(f"{what}, {threads.ONE}", count, seconds, number))
    return concluded(threads.EXPERIMENT, samples)


def threads_said(many: float, loaded: float, most: float = 9.0) -> list[str]:
    return threads_result(many, loaded, most).verdict.key.split("; beside a busy process ")


def test_threads_are_too_many_when_they_are_slower() -> None:
    assert threads_said(3.0, 2.0) == ["more threads than cores are slower", "fewer threads are faster"]
    assert threads_said(1.0, 0.6) == ["more threads than cores are not slower", "as many are best"]


def test_more_threads_may_be_faster_beside_a_busy_process() -> None:
    assert threads_said(1.0, 0.8, most=0.5)[1] == "more threads are faster"
    assert threads_said(1.0, 2.0, most=0.5)[1] == "more threads are faster"
    assert threads_said(1.0, 0.8, most=1.15)[1] == "as many are best"  # four are faster, by less than is much


def context_size_said(largest: float, small_cut: float, calls: float, noise: float = 0.0) -> Result:
    """`largest`, `small_cut`, `calls`: times over those in the smallest context, with the largest n_ubatch, and in one
    call; `noise`: share by which the first differs from round to round.
    """
    values = chosen(context_size.PARAMETERS, {}, short=True)
    sizes = context_size._sizes(values)
    samples = [Sample(context_size.BYTES, size, 1e3 * size) for size in sizes]
    for number in range(3):
        samples += [Sample(context_size.TOKEN, size, 1.0, number) for size in sizes[:-1]]
        samples.append(Sample(context_size.TOKEN, sizes[-1], largest * (1 + noise * (number - 1)), number))
        for series, x in context_size._readings(values):
            seconds = calls if series == context_size.CALLS else small_cut if x == context_size.UBATCHES[0] else 1.0
            samples.append(Sample(series, x, seconds, number))
    return concluded(context_size.EXPERIMENT, samples)


def test_a_context_is_slower_when_its_tokens_are() -> None:
    assert context_size_said(1.02, 1.8, 1.04).verdict.key == (
        "a larger context is as fast; small physical batches cost much; a small n_batch costs little or nothing"
    )
    assert context_size_said(2.0, 1.2, 1.8).verdict.key == (
        "a larger context is slower; small physical batches cost little; a small n_batch costs much"
    )


def test_n_batch_has_a_figure_a_table_and_a_sentence_of_its_own() -> None:
    result = context_size_said(1.0, 1.2, 1.25)
    assert {f.name: f.value for f in result.figures}["a prompt, n_batch 64 over 256"] == pytest.approx(1.25)
    _, by_ubatch, by_batch = result.tables
    assert [row[0] for row in by_ubatch.rows] == ["8", "64", "256"]  # of a prompt of 256 tokens
    assert [row[0] for row in by_batch.rows] == ["64", "256"]
    assert "by n_batch 64 it takes 1.25" in result.verdict.sentence
    assert "n_ubatch 8 as with 256" in result.verdict.sentence


@pytest.mark.parametrize("prompt", [128, 256, 600, 2048])
def test_a_prompt_is_read_with_the_batches_that_are_told(prompt: int) -> None:
    values = chosen(context_size.PARAMETERS, {"prompt": prompt}, short=True)
    readings = context_size._readings(values)
    for (series, x), (n_batch, n_ubatch) in readings.items():
        asked = ContextParams(context_size._prompt_cells(values), n_batch=n_batch, n_ubatch=n_ubatch)
        made = plan(ModelFacts("llama", "attention"), asked)
        assert (made.n_batch, made.n_ubatch) == (n_batch, n_ubatch)
        assert x == (n_batch if series == context_size.CALLS else n_ubatch) <= prompt
    assert (context_size.PROMPT, context_size.UBATCH) in readings  # one call, beside the several
    assert any(series == context_size.CALLS for series, _ in readings)


def rebuild_said(compacted: float, read: float, spread: float = 0.0) -> Result:
    """spread: of the times after a cure, to both sides."""
    samples = []
    after = {rebuild.COMPACTED: compacted, rebuild.RESTORED: compacted, rebuild.READ: read}
    for number in range(2):
        for at, way in enumerate(rebuild.WAYS):
            samples += [
                Sample(f"{rebuild.TOKEN}: {rebuild.BEFORE}", at, 1.0, number),
                Sample(f"{rebuild.TOKEN}: {way}", at, after[way] + (-spread, spread)[number], number),
                Sample(f"{rebuild.COST}: {way}", at, 5.0, number),
            ]
    return concluded(rebuild.EXPERIMENT, samples)


def test_a_rebuild_cures_what_becomes_faster() -> None:
    result = rebuild_said(0.5, 0.5)
    assert result.verdict.key == "compaction cures, a rebuild cures the same"
    assert result.tables[0].rows[0][3] == "10"  # 5 s for half a second a token
    assert rebuild_said(1.0, 0.5).verdict.key == "compaction cures nothing, a rebuild differs"
    assert rebuild_said(1.0, 1.0).tables[0].rows[0][3] == "never"


def drafts_result(steps: dict[int, float], *, chosen: float = 1.0, same: bool = True, drafted: float = 9) -> Result:
    """steps: cost of each batch; chosen: seconds of a token as kvdesk chooses with no guess right, one at a time 1."""
    samples = [Sample(drafts.BATCH, n, steps[n], number) for n in (1, *SIZES) for number in range(3)]
    for number in range(3):
        for held in drafts.ACCEPTED:
            own = chosen if held == 0.0 else 0.5
            for way, seconds in ((drafts.PLAIN, 1.0), (drafts.FIXED, 2.0 - held), (drafts.CHOSEN, own)):
                samples.append(Sample(way, held, seconds, number))
            samples.append(Sample(drafts.SIZE, held, 1 + 15 * held, number))
    modes = (drafts.EXACT, drafts.USUAL)
    samples += [Sample(f"{of}: {mode}", 0, 1.0) for of in (drafts.BITS, drafts.TOP) for mode in modes]
    samples += [Sample(f"{drafts.KL}: {mode}", 0, 0.25) for mode in modes]
    why = "" if drafted else "No drafts: so it is."
    samples += [Sample(drafts.SAME, 0, float(same)), Sample(drafts.WHY, 0, drafted, note=why)]
    return concluded(drafts.EXPERIMENT, samples)


SLOW_BATCHES = {1: 1.0, 2: 1.9, 4: 3.1, 8: 5.1, 16: 6.4, 32: 11.4, 64: 16.0}


def test_drafts_cost_what_their_way_costs() -> None:
    free = drafts_result(SLOW_BATCHES)
    assert free.verdict.key == "drafts cost nothing; exact answers are the same"
    assert "costs 5.1 steps" in free.verdict.answer
    assert free.tables[-1].rows[0][1:] == ("1", "1", "0.25")
    assert drafts_result(SLOW_BATCHES, chosen=1.1).verdict.key.startswith("drafts cost;")
    assert drafts_result(SLOW_BATCHES, same=False).verdict.key.endswith("exact answers differ")
    assert drafts_result(SLOW_BATCHES, drafted=0).remarks[0] == "No drafts: so it is."


def test_a_batch_that_costs_more_than_its_tokens_never_pays() -> None:
    dear = drafts_result({n: 1.05 * n if n > 1 else 1.0 for n in SLOW_BATCHES})
    assert "drafts pay never." in dear.verdict.answer
    assert drafts.break_even(8, 8.4) is None
    assert drafts.break_even(8, 8.0) == pytest.approx(1.0)
    assert drafts.break_even(2, 1.5) == pytest.approx(0.5)
    for n, steps in SLOW_BATCHES.items():
        if n > 1:
            even = drafts.break_even(n, steps)
            assert even is not None
            assert sum(even**k for k in range(n)) == pytest.approx(steps, rel=1e-6)
