"""Computes what the tokens of a text look at, by reading it in a separate context."""

from collections.abc import Sequence

from kvdesk.backends.local.attention.collected import Collected, columns_of
from kvdesk.backends.local.attention.plan import Run, plan_text
from kvdesk.backends.local.attention.price import setup_for
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.backends.local.llama.capabilities import capabilities
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.attention_weights import AttentionColumns, LayerAttention
from kvdesk.errors import UserError
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.settings import ContextSettings


def read_text(
    model: Model, header: GgufHeader, settings: ContextSettings, tokens: Sequence[int], n_last: int
) -> tuple[AttentionColumns, tuple[LayerAttention, ...]]:
    """The attention of the last `n_last` tokens of a text, a row each, and the cells of the context that read it.

    Raises UserError if the model has no attention that can be read, or the answer would be too large; ContextError.
    """
    plan = plan_text(tokens, n_last)
    how = setup_for(settings, header, plan)
    second, weights = SecondContext(model, how.settings), Collected(plan, read_hyper(header))
    try:
        possible = capabilities(second.traits)["attention"]
        if not possible.allowed:
            raise UserError(possible.why)
        for first in range(0, len(plan.before), second.n_batch):
            second.read(plan.before[first : first + second.n_batch], first)
        (run,) = plan.runs
        for first in range(0, len(run.tokens), how.n_tokens):
            part = Run(run.p0 + first, run.tokens[first : first + how.n_tokens])
            weights.add(second.attend(part.tokens, part.p0, summed=False), part, columns_of(second, plan, [], run.p0))
        return plan.columns, weights.layers()
    finally:
        second.close()
