"""Is it the same text? What is shared, forked, swapped, compacted against a fresh prefill; batches against one alone.

With the setting `exact`, and prompts of token ids: any model can be tried.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from kvdesk.backends.local.cache_manager.compacting import compact
from kvdesk.cache.compaction import Layout
from kvdesk.cache.compare import ROUNDING, divergence
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.by_ids import Answer, ByIds, Logits
from kvdesk.experiments.benchmarks.cache.scenario import same
from kvdesk.experiments.outcome import Outcome
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.experiment import Figure
from kvdesk.settings import CacheType

N_PROMPT, N_ANSWER, N_STEPS = 160, 24, 8
NAMES = ("one", "two", "three", "four")
ON_DISK = STEADY.model_copy(update={"memory_mb": 0})
NOTHING_SAVED = STEADY.model_copy(update={"memory_mb": 0, "disk_mb": 0})

Tried = tuple[str, list[int], Answer]
"""The operations before it, the prompt, its answer."""


def exact(bench: Bench) -> Outcome:
    """Greedy answers of token ids, with f16 and with f32 K and V, and the logits from which they come.

    A batch may add sums up in another order: with float weights logits may differ by a thousandth of the largest. With
    quantized weights a last bit that differs may become a step (`Session.noise` tells how large), so there the bounds
    are wider; the figures say what it was.
    """
    texts, differences, batched, raw = [], [0.0], [], dict[str, object]()
    for type_kv in (CacheType.F16, CacheType.F32):
        settings = bench.settings.model_copy(
            update={"type_k": type_kv, "type_v": type_kv, "exact": True, "n_seq_max": 8}
        )
        with tempfile.TemporaryDirectory(prefix="kvdesk-bench-") as folder:
            with bench.engine(settings=settings) as headless:
                tried = list(_try_all(headless, Path(folder)))
            with bench.engine(NOTHING_SAVED, settings=settings) as headless:
                noise = session_of(headless).loaded.noise
                for what, prompt, answer in tried:
                    wanted = _fresh(headless, prompt)
                    texts.append((tuple(answer.tokens), tuple(wanted.tokens)))
                    differences.append(_difference(answer.logits, wanted.logits)[0])
                    raw[f"{type_kv.value} {what}"] = {"reused_tokens": answer.n_reused, "difference": differences[-1]}
                found = _batched(headless)
        batched += found
        raw[f"{type_kv.value} batched"] = {
            "over_largest_logit": _most(relative for relative, _, _ in found),
            "kl_nats": _most(kl for _, kl, _ in found),
            "likeliest_token_equal": sum(equal for _, _, equal in found) / len(found),
        }
    return Outcome(
        [
            same("texts_as_fresh", texts),
            Figure("difference_over_largest_logit", _most(differences)).at_most(ROUNDING),
            Figure("batched_over_largest_logit", _most(relative for relative, _, _ in batched)).at_most(noise[0]),
            Figure("batched_kl_nats", _most(kl for _, kl, _ in batched)).at_most(noise[1]),
        ],
        raw,
    )


def _try_all(headless: HeadlessEngine, folder: Path) -> Iterator[Tried]:
    """Every way in which an answer may come to be without a prefill of its whole prompt, where this memory has it."""
    ids = _ids(headless)
    cache_manager, n = ids.cache_manager, _prompt_tokens(ids)
    begin, other = _prompt(ids, 0, n), _prompt(ids, 1, n // 8)
    first = ids.answer("one", begin, N_ANSWER)
    yield "first", begin, first
    shared = begin + other
    yield "shared", shared, ids.answer("two", shared, N_ANSWER)
    forked = [*begin[: -n // 4], *_prompt(ids, 2, n // 8)]
    yield "forked", forked, ids.answer("one", forked, N_ANSWER)
    longer = begin + first.tokens[:-1] + _prompt(ids, 3, n // 8)
    yield "back to the other branch", longer, ids.answer("one", longer, N_ANSWER)
    if ids.context.can("swap"):
        for where, policy in (("memory", STEADY), ("disk", ON_DISK)):
            headless.do(UsePolicy(policy, folder))
            cache_manager.swap_out(ids.lease("two"))
            session_of(headless).runtime.cache_manager.swapper.saved_states.close()  # waits until it is written
            cache_manager.swap_in(ConversationId("two"))
            shared = shared + _prompt(ids, 4, n // 8)
            yield f"swapped to {where}", shared, ids.answer("two", shared, N_ANSWER)
        headless.do(UsePolicy(NOTHING_SAVED, folder))
    if ids.context.can("compaction"):
        cache_manager.close(ConversationId("one"), "so that there are holes")
        compact(ids.context, session_of(headless).runtime.speed_model.costs, Layout.KEEP_ORDER)
        shared = shared + _prompt(ids, 5, n // 8)
        yield "compacted", shared, ids.answer("two", shared, N_ANSWER)


def _fresh(headless: HeadlessEngine, prompt: list[int]) -> Answer:
    """The answer in an empty cache."""
    ids = _ids(headless)
    try:
        return ids.answer("alone", prompt, N_ANSWER)
    finally:
        ids.cache_manager.close(ConversationId("alone"), "done")


def _batched(headless: HeadlessEngine) -> list[tuple[float, float, bool]]:
    """`_difference` of several conversations that decode in one batch from each of them alone, step after step."""
    ids = _ids(headless)
    n = _prompt_tokens(ids)
    prompts = {name: _prompt(ids, 6 + i, n - n // 8 * i) for i, name in enumerate(NAMES)}
    more = {name: _prompt(ids, 20 + i, N_STEPS) for i, name in enumerate(NAMES)}
    alone: dict[str, list[Logits]] = {}
    for name, prompt in prompts.items():
        ids.read(name, prompt)
        alone[name] = [ids.decode([(name, [token])])[0] for token in more[name]]
        ids.cache_manager.close(ConversationId(name), "done")
    for name, prompt in prompts.items():
        ids.read(name, prompt)
    found = []
    for step in range(N_STEPS):
        rows = ids.decode([(name, [more[name][step]]) for name in NAMES])
        found += [_difference(row, alone[name][step]) for name, row in zip(NAMES, rows, strict=True)]
    for name in NAMES:
        ids.cache_manager.close(ConversationId(name), "done")
    return found


def _difference(found: Logits, wanted: Logits) -> tuple[float, float, bool]:
    """Largest difference over the largest logit (at least 1), KL in nats, and whether the likeliest token is equal."""
    scale = max(1.0, float(np.abs(wanted).max()))
    kl = divergence(np.atleast_2d(wanted).astype(np.float64), np.atleast_2d(found).astype(np.float64))
    return float(np.abs(found - wanted).max()) / scale, float(kl.max()), bool(found.argmax() == wanted.argmax())


def _most(values: Iterable[float]) -> float:
    """The largest; NaN if any is, which reaches no bar. Python's `max` loses it."""
    return float(np.max(list(values)))


def _ids(headless: HeadlessEngine) -> ByIds:
    session = session_of(headless)
    return ByIds(session.runtime.context, session.runtime.cache_manager)


def _prompt_tokens(ids: ByIds) -> int:
    """Tokens of a prompt: the longest that is decoded is three times as long."""
    learned = ids.context.traits.model.n_positions or ids.context.n_ctx_seq
    return max(8, min(N_PROMPT, learned // 4, ids.context.n_ctx_seq // 8))


def _prompt(ids: ByIds, seed: int, n: int) -> list[int]:
    """Token ids that mean nothing, the same ones for the same seed."""
    draw = np.random.default_rng(seed)
    return [int(token) for token in draw.integers(5, min(ids.context.model.vocab.n_tokens, 20_000), n)]
