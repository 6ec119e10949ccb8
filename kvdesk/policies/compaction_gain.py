"""Whether a shorter span pays: what tokens gain from it, compared with the time to move states.

The span gets shorter when the cache is compacted, or when idle sequences leave it for memory. Without flash attention
every cell below n_kv costs as much as a visible one; with it a fifth. Pure. Must never know the engine.
"""

from kvdesk.policies.costs import Costs
from kvdesk.policies.tuned import EXPECTED, NOTICED, PAYS
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Fragmented:
    """The cache now: its span, the span after the change, cells the next token sees, bytes of the states to move.
    n_visible_after: cells it sees then, None: as many. `Costs.awaited` tells both.
    """

    n_kv: int
    n_kv_after: int
    n_visible: int
    blob_bytes: int
    n_visible_after: int | None = None


@dataclass(frozen=True, slots=True)
class NextPrompt:
    """`n_new` tokens of it are read after `n_past`, in batches of `n_batch`."""

    n_new: int
    n_past: int
    n_batch: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it pays, and why, in words with the numbers."""

    pays: bool
    reason: str


def judge_leaving(costs: Costs, cache: Fragmented, prompt: NextPrompt) -> Verdict:
    """Whether to save idle sequences to memory before this prompt is read. Restoring them costs as much again."""
    n_own = prompt.n_past + prompt.n_new
    now, after = (
        costs.reading_ms(prompt.n_new, prompt.n_past, prompt.n_batch, max(0, n_kv - n_own)) or 0.0
        for n_kv in (cache.n_kv, cache.n_kv_after)
    )
    read = now - after
    seen = cache.n_visible if cache.n_visible_after is None else cache.n_visible_after
    token = costs.saved_ms(cache.n_kv, cache.n_kv_after, cache.n_visible, seen)
    gain, price = read + token * EXPECTED, costs.state_ms(cache.blob_bytes)
    said = tr(
        "{n_kv:,} -> {n_kv_after:,} cells saves {read:,.0f} ms while {n_new:,} tokens are read and {token:.2f} ms a "
        "token after that, and costs {price:,.0f} ms."
    ).format(n_kv=cache.n_kv, n_kv_after=cache.n_kv_after, read=read, n_new=prompt.n_new, token=token, price=price)
    return Verdict(gain > max(PAYS * price, 1e3 * NOTICED), said)


def judge_compaction(costs: Costs, cache: Fragmented) -> Verdict:
    """Whether to compact while nobody waits."""
    if cache.n_kv_after >= cache.n_kv:
        said = tr("Attention reads {n:,} cells, and would after compacting too.")
        return Verdict(False, said.format(n=cache.n_kv))
    saved = costs.saved_ms(cache.n_kv, cache.n_kv_after)
    now = costs.step_ms(cache.n_kv, cache.n_visible) or 0.0
    if saved <= NOTICED * now:
        said = tr("Too little to be noticed: it saves {saved:.2f} of {now:.1f} ms a token.")
        return Verdict(False, said.format(saved=saved, now=now))
    gain, price = saved * EXPECTED, costs.state_ms(cache.blob_bytes)
    estimated = "" if costs.known else tr(" (estimated from the bytes of a cell)")
    numbers = tr(
        "{n_kv:,} -> {n_kv_after:,} cells saves {saved:.2f} ms a token{estimated}, {gain:,.0f} ms over the next "
        "{n_expected:,} tokens, and costs {price:,.0f} ms"
    ).format(
        n_kv=cache.n_kv,
        n_kv_after=cache.n_kv_after,
        saved=saved,
        estimated=estimated,
        gain=gain,
        n_expected=EXPECTED,
        price=price,
    )
    if gain > PAYS * price:
        return Verdict(True, tr("Idle, and it pays: {numbers}.").format(numbers=numbers))
    return Verdict(False, tr("It does not pay: {numbers}.").format(numbers=numbers))
