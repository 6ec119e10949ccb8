"""Whether compacting the cache pays back: what tokens gain from a shorter span against the time it takes.

Without flash attention every cell below n_kv costs time and holes are dear; with it nearly all hangs on the visible
cells, and compaction buys little. Pure. Must never know the engine.
"""

from __future__ import annotations

from kvdesk.policies.costs import Costs
from kvdesk.policies.tuned import EXPECTED, NOTICED, PAYS
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Fragmented:
    """The cache now: span, span after compaction, cells the next token sees, bytes of a whole state blob."""

    n_kv: int
    n_kv_after: int
    n_visible: int
    blob_bytes: int


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """Whether to compact, and why, in words with the numbers."""

    compact: bool
    reason: str


def judge_compaction(costs: Costs, cache: Fragmented, noticed: float = NOTICED) -> CompactionVerdict:
    """Compact while nobody waits? `noticed`: share of a token's time below which the gain does not count."""
    if cache.n_kv_after >= cache.n_kv:
        said = tr("Attention reads {n:,} cells, and would after compacting too.")
        return CompactionVerdict(False, said.format(n=cache.n_kv))
    saved = costs.saved_ms(cache.n_kv, cache.n_kv_after)
    now = costs.step_ms(cache.n_kv, cache.n_visible) or 0.0
    if saved <= noticed * now:
        said = tr("Too little to be noticed: it saves {saved:.2f} of {now:.1f} ms a token.")
        return CompactionVerdict(False, said.format(saved=saved, now=now))
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
        return CompactionVerdict(True, tr("Idle, and it pays: {numbers}.").format(numbers=numbers))
    return CompactionVerdict(False, tr("It does not pay: {numbers}.").format(numbers=numbers))
