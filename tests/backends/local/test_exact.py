"""Compaction and batches on every kind of memory: the text, and the logits, of a sequence that is alone.

Sharing, forks, swaps and restarts are in `test_cache_manager`; the embedded model's answers there and in `test_turns`.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from kvdesk.backends.local.cache_manager.compacting import compact
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.scheduler.threads import Threads
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout
from kvdesk.cache.compare import ROUNDING, LogitsComparison, Verdict, compare_logits
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.experiments.benchmarks.by_ids import ByIds
from kvdesk.headless import HeadlessEngine
from kvdesk.message import ConversationId
from kvdesk.policies.costs import Costs, Reads
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.ids import Ids, prompt_of, prompt_tokens

N = 12
STEPS = 6


@pytest.fixture(params=[CacheType.F16, CacheType.F32])
def type_kv(request: pytest.FixtureRequest) -> CacheType:
    return CacheType(request.param)


def fresh(model: Model, folder: Path, type_kv: CacheType, prompt: list[int]) -> list[int]:
    """The answer in an empty cache."""
    with closing(Ids(model, folder, type_kv)) as ids:
        reused, tokens, _ = ids.answer("alone", prompt, N)
        assert reused == 0
        ids.cache_manager.forget(ConversationId("alone"), "")
        return tokens


def streams(ids: ByIds) -> list[StreamCells]:
    return [cells for cache in ids.context.memory.mirror.caches for cells in cache.streams]


def test_compaction_is_exact(tiny: Model, tmp_path: Path, type_kv: CacheType) -> None:
    """Three conversations take turns, two share a beginning, one leaves holes: then cells are moved to the front."""
    n = prompt_tokens(tiny)
    begin = prompt_of(0, n // 2)
    prompts = {"one": begin + prompt_of(50, n // 4), "two": begin + prompt_of(71, n // 4), "hole": prompt_of(33, n)}
    with closing(Ids(tiny, tmp_path / "states", type_kv)) as ids:
        if not ids.context.can("compaction"):
            pytest.skip("this memory has no cells to compact")
        for request in range(2):
            for name, prompt in prompts.items():
                _, tokens, _ = ids.answer(name, prompt, 3)
                prompts[name] = prompt + tokens[:-1] + prompt_of(9 * request + len(name), 3)
        ids.cache_manager.close(ConversationId("hole"), "")
        assert any(cells.used < cells.high_water for cells in streams(ids))
        compact(ids.context, Costs(Reads(1, 1, skips=True)), Layout.KEEP_ORDER)
        assert all(cells.used == cells.high_water for cells in streams(ids))
        answers = {name: ids.answer(name, prompts[name], N) for name in ("one", "two")}
    for name, (reused, tokens, _) in answers.items():
        assert reused == len(prompts[name]) - 3, "nothing is computed again"
        assert tokens == fresh(tiny, tmp_path / "none", type_kv, prompts[name])


def test_a_batch_of_several_differs_by_rounding(tiny: Model, tmp_path: Path, type_kv: CacheType) -> None:
    """Next-token logits of three sequences that decode together, a chunk of a prompt with them, against each alone.

    The bound is relative to the largest logit (at least 1): sums are added up in another order, so what differs is
    their last bits, which are worth more where the numbers are larger. Weights are f32 here: nothing is quantized.
    """
    n = prompt_tokens(tiny)
    prompts = {name: prompt_of(7 * i, n - 3 * i) for i, name in enumerate(("one", "two", "three"))}
    more = {name: prompt_of(40 + i, STEPS) for i, name in enumerate(prompts)}
    arriving = prompt_of(91, n)
    alone: dict[str, list[np.ndarray]] = {}
    for name, prompt in {**prompts, "arriving": []}.items():
        with closing(Ids(tiny, tmp_path / "none", type_kv)) as ids:
            if name == "arriving":
                ids.read(name, arriving)
                alone[name] = [ids.context.logits()]
            else:
                ids.read(name, prompt)
                alone[name] = [ids.decode([(name, [token])])[0] for token in more[name]]
            ids.cache_manager.forget(ConversationId(name), "")
    together: dict[str, list[np.ndarray]] = {name: [] for name in alone}
    with closing(Ids(tiny, tmp_path / "none", type_kv)) as ids:
        for name, prompt in prompts.items():
            ids.read(name, prompt)
        chunks = np.array_split(arriving, STEPS)
        for step, chunk in enumerate(chunks):
            parts = [(name, [more[name][step]]) for name in prompts]
            *rows, last = ids.decode([*parts, ("arriving", chunk.tolist())])
            for name, row in zip(prompts, rows, strict=True):
                together[name].append(row)
        together["arriving"].append(last)
        for name in together:
            ids.cache_manager.forget(ConversationId(name), "")
    for name, rows in together.items():
        for found, wanted in zip(rows, alone[name], strict=True):
            scale = max(1.0, float(np.abs(wanted).max()))
            assert float(np.abs(found - wanted).max()) <= ROUNDING * scale
            assert compare_logits(wanted, found).verdict.same


def test_the_embedded_model_decodes_alike_in_a_batch(embedded: HeadlessEngine) -> None:
    """Its weights are quantized, so the bound is what rounding may do there (`Session.noise`): a last bit that differs
    may become a step.
    """
    session = embedded.engine.session
    ids = ByIds(session.runtime.context, session.runtime.cache_manager)
    prompts = {name: prompt_of(7 * i, 20 - 5 * i) for i, name in enumerate(("one", "two", "three"))}
    more = {name: prompt_of(40 + i, STEPS) for i, name in enumerate(prompts)}
    alone: dict[str, list[np.ndarray]] = {}
    for name, prompt in prompts.items():
        ids.read(name, prompt)
        alone[name] = [ids.decode([(name, [token])])[0] for token in more[name]]
        ids.cache_manager.close(ConversationId(name), "")
    for name, prompt in prompts.items():
        assert ids.read(name, prompt) == 0
    for step in range(STEPS):
        rows = ids.decode([(name, [more[name][step]]) for name in prompts])
        for name, row in zip(prompts, rows, strict=True):
            found = compare_logits(alone[name][step], row, *session.loaded.noise)
            assert found.verdict.same, found


def logits_of(model: Model, settings: ContextSettings, prompt: list[int], sizes: Sequence[int]) -> np.ndarray:
    """Next-token logits of a prompt that is decoded in batches of these sizes, in a context of its own."""
    with closing(Context(model, settings)) as context:
        first = 0
        for n in sizes:
            context.decode(Batch.of(0, first, prompt[first : first + n], "last"))
            first += n
        assert first == len(prompt)
        return context.logits()


def in_turns(headless: HeadlessEngine, *, exact: bool) -> LogitsComparison:
    """A prompt at once, against one part, an answer token by token over more than 256 cells, and another part.

    Without `exact` both attention in tiles and the share of each thread add up in another order; with it neither does,
    though two threads and a large n_ubatch are asked for.
    """
    session, prompt = headless.engine.session, prompt_of(0, 300)
    settings = ContextSettings(n_ctx=512, n_seq_max=1, n_threads=2, n_threads_batch=1, exact=exact)
    fresh, grown = (logits_of(session.loaded.model, settings, prompt, sizes) for sizes in ([300], [255, *[1] * 9, 36]))
    return compare_logits(fresh, grown, *session.loaded.noise)


@pytest.mark.parametrize(("exact", "verdict"), [(True, Verdict.EXACT), (False, Verdict.ROUNDING)])
def test_what_was_read_and_written_in_turns_is_a_fresh_start(
    headless: HeadlessEngine, exact: bool, verdict: Verdict
) -> None:
    found = in_turns(headless, exact=exact)
    assert found.verdict is verdict, found


def test_exact_decodes_on_one_thread_whatever_the_load() -> None:
    """Prompts may have more: their rows are computed one by one."""
    chosen: list[tuple[int, int]] = []
    context = cast(Context, SimpleNamespace(n_ubatch=32, n_threads=3, set_threads=lambda *n: chosen.append(n)))
    for follow in (False, True):
        settings = ContextSettings(n_threads=3, n_threads_batch=3, exact=True)
        threads = Threads(context, settings, lambda _: None)
        threads.follow = follow
        for _ in range(3):
            threads.choose(1)
    assert {n for n, _ in chosen} == {1}
    assert chosen[0] == (1, 3)


def test_the_embedded_model_answers_alike_after_compaction(embedded: HeadlessEngine) -> None:
    session = embedded.engine.session
    ids = ByIds(session.runtime.context, session.runtime.cache_manager)
    prompt, hole = prompt_of(0, 30), prompt_of(33, 30)
    for n in (10, 20, 30):
        ids.read("one", prompt[:n])
        ids.read("hole", hole[:n])
    ids.cache_manager.close(ConversationId("hole"), "")
    assert all(cells.used < cells.high_water for cells in streams(ids))
    compact(session.runtime.context, Costs(Reads(1, 1, skips=True)), Layout.KEEP_ORDER)
    assert all(cells.used == cells.high_water for cells in streams(ids))
    prompt += prompt_of(50, 9)
    reused, tokens, _ = ids.answer("one", prompt, N)
    assert reused == 30
    ids.cache_manager.close(ConversationId("one"), "")
    assert ids.answer("one", prompt, N)[:2] == (0, tokens)
