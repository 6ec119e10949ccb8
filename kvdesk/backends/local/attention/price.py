"""Forecasts what computing attention takes: tokens, memory, time. Changes nothing."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kvdesk.backends.local.attention.plan import AttentionPlan, plan_attention, plan_text
from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.llama.attention.second_context import second_settings
from kvdesk.backends.local.llama.context import Context
from kvdesk.errors import UserError
from kvdesk.library.estimate import check_fits
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.policies.tuned import TILE
from kvdesk.protocol.attention import MOST_BYTES, AttentionPreview, PreviewAttention, Queries
from kvdesk.protocol.wire import MOST_ARRAY_BYTES
from kvdesk.quantities import seconds_text
from kvdesk.settings import ContextSettings
from kvdesk.translation import plural, tr

_F32: Final = 4
_LAYER_BYTES: Final = 32 << 20
"""For the weights of one layer in one decode; more tokens take several decodes."""
_MOST_TOKENS: Final = 256
_MAKING_MS: Final = 50.0
"""To make and free the second context. Qwen 0.5B and 1.5B on two cores: 100 ms and more beside busy processes."""
_WATCHED: Final = 1.25
"""Factor over a plain decode: 0.9 to 1.3 with one thread (Qwen 0.5B, 1 and 64 tokens)."""


class Setup(NamedTuple):
    """How attention is computed: in a context with `settings`, `n_tokens` of those asked for per decode. In bytes: the
    context's estimate, and the answer.
    """

    settings: ContextSettings
    n_tokens: int
    context_bytes: int
    answer_bytes: int


def planned(context: Context, cache: Cache, header: GgufHeader, queries: Queries) -> tuple[AttentionPlan, Setup]:
    """The plan and its setup for the cache as it is now. Raises UserError if there is nothing to look at, the answer
    would be too large, or this memory has no attention; ContextError if the second context does not fit into memory.
    """
    possible = context.capabilities["attention"]
    if not possible.allowed:
        raise UserError(possible.why)
    plan = plan_attention(cache.snapshot(), context.traits.geometry, queries)
    threads = {"n_threads": context.n_threads, "n_threads_batch": context.n_threads_batch}
    return plan, setup_for(context.settings.model_copy(update=threads), header, plan)


def setup_for(settings: ContextSettings, header: GgufHeader, plan: AttentionPlan) -> Setup:
    """How a plan is done beside a context with these settings. Raises UserError and ContextError as `planned` does."""
    heads = [max(1, layer.n_head) for layer in read_hyper(header).layers]
    row = _F32 * len(plan.columns.pos)
    answer, layer = sum(heads) * plan.n_rows * row, max(heads) * plan.n_rows * row
    if answer > MOST_BYTES or layer > MOST_ARRAY_BYTES:
        raise UserError(
            tr(
                "Attention weights of these tokens over {n:,} cells would take {mb:,.0f} MB: choose fewer tokens, "
                "fewer cells, or their sum."
            ).format(n=len(plan.columns.pos), mb=answer / 1e6)
        )
    fitting = max(1, min(_MOST_TOKENS, _LAYER_BYTES // (max(heads) * _F32 * max(plan.n_cells, 1))))
    n_tokens = min(fitting, max(len(run.tokens) for run in plan.runs))
    n_batch = max(n_tokens, TILE if plan.before else 1)
    second = second_settings(settings, plan.n_cells, n_batch)
    needed = check_fits(header, second, loaded=True)
    return Setup(second, n_tokens, needed.context, answer)


def price(context: Context, cache: Cache, header: GgufHeader, command: PreviewAttention) -> AttentionPreview:
    """What `Attend` would take now, or why it cannot be done."""
    queries = command.queries
    try:
        plan, how = planned(context, cache, header, queries)
        state_bytes = 0
        if plan.copied:
            state_bytes = context.states.size() if plan.whole else context.states.seq_size(queries.seq_id)
    except UserError as error:
        return AttentionPreview(queries, refused=str(error))
    n_bytes = how.context_bytes + how.answer_bytes + 2 * state_bytes
    n, n_read = plan.n_queries, len(plan.before)
    ms = _ms(cache, plan, how, state_bytes, n_read)
    if n_read:
        sentence = tr("{n_all:,} tokens are read again in a second context, to watch {n:,} of them: {mb:,.0f} MB")
    else:
        sentence = plural(
            "1 token is decoded once more in a second context: {mb:,.0f} MB",
            "%n tokens are decoded once more in a second context: {mb:,.0f} MB",
            n,
        )
    sentence = sentence.format(n_all=n_read + n, n=n, mb=n_bytes / 1e6)
    sentence += "." if ms is None else tr(", about {seconds}.").format(seconds=seconds_text(ms / 1e3))
    return AttentionPreview(queries, "", sentence, n, n_read, state_bytes, n_bytes, None if ms is None else ms / 1e3)


def restored_ms(
    context: Context, cache: Cache, header: GgufHeader, tokens: Sequence[int], n_last: int, n_bytes: int
) -> float | None:
    """What it is expected to take to see what the last `n_last` of these tokens look at, once their saved state of
    `n_bytes` is in the cache; None until something was measured, 0 if it cannot be done.
    """
    if not context.capabilities["attention"].allowed:
        return 0.0
    facts, plan = context.traits.geometry.facts, plan_text(tokens, n_last)
    try:
        how = setup_for(context.settings, header, plan)
    except UserError:
        return 0.0
    again = facts.has_state or 0 < facts.n_swa < len(tokens)  # a saved state lacks what the window has left
    return _ms(cache, plan, how, 0, len(plan.before)) if again else _ms(cache, plan, how, n_bytes, 0)


def _ms(cache: Cache, plan: AttentionPlan, how: Setup, state_bytes: int, n_read: int) -> float | None:
    """The expected time; None until something was measured. n_read: tokens in front that are read again."""
    costs, n_cells = cache.costs, plan.n_cells
    total = _MAKING_MS + len(plan.runs) * costs.state_ms(state_bytes)
    read = costs.reading_ms(n_read, 0, how.settings.n_batch)
    if read is None:
        return None
    total += read
    for run in plan.runs:
        for first in range(0, len(run.tokens), how.n_tokens):
            ms = costs.batch_ms(min(how.n_tokens, len(run.tokens) - first), n_cells, n_cells)
            if ms is None:
                return None
            total += _WATCHED * ms
    return total
