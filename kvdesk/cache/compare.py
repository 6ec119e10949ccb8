"""The effect of an operation: two snapshots, and next-token logits if there are any, compared.

Owns the definitions of freed, placed, moved and shared, and the verdict on logits. Pure functions on frozen values.
Must never know which operation lies between, nor who owns a sequence.
"""

import math
from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.metrics import StreamMetrics, stream_metrics
from kvdesk.cache.seq_bits import seq_count, seq_has, seqs_in
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.translation import tr
from kvdesk.values import dataclass

ROUNDING = 3e-3
"""Largest |difference| of logits, relative to the largest |logit| (at least 1), that is put down to rounding.

Float weights: on the test models, correct logits of ubatches of 512 and of 32 tokens differ by at most 0.0015 of the
largest, with a divergence of 1e-7 nats; this is twice that. Quantized weights differ more: their activations are
rounded to 8 bits, so a difference in the last bit either vanishes or becomes a step (`LoadedModel.noise`). Callers that
know such a noise (from computing the same in two correct ways) pass it on."""
ROUNDING_KL = 1e-4
"""Largest Kullback-Leibler divergence, in nats, that is put down to rounding."""
STRONG_KL = math.log(2)
"""From this divergence on, in nats, a change is strong. KL(before || after) is the mean of log(p before / p after) over
what the model would have said before. Such tokens have become at most half as likely on (geometric) average."""
KNOWN_KL = 0.05
"""Divergence in nats below which the removed text made no difference to the next token."""


class Verdict(StrEnum):
    """The change of the probabilities of the next token (`judge`)."""

    EXACT = "exact"
    ROUNDING = "the same up to rounding"
    CHANGED = "changed"
    STRONGLY_CHANGED = "changed strongly"

    @property
    def same(self) -> bool:
        """Whether the difference is at most rounding."""
        return self in (Verdict.EXACT, Verdict.ROUNDING)


@dataclass(frozen=True, slots=True)
class LogitsComparison:
    """Next-token logits at the same places, before and after.

    kl_max           largest KL(before || after) of the softmax distributions of a row, in nats
    max_difference   largest |before - after| of all logits
    first_row        first row whose likeliest token differs, -1 for none; its tokens before and after, else -1
    """

    n_rows: int
    kl_max: float
    max_difference: float
    first_row: int
    token_before: int
    token_after: int
    verdict: Verdict

    def __str__(self) -> str:
        if self.verdict is Verdict.EXACT:
            return tr("exact: every logit is the same")
        return tr("{verdict}: logits differ by at most {difference:.2g}, KL {kl:.2g} nats").format(
            verdict=tr(self.verdict), difference=self.max_difference, kl=self.kl_max
        )


@dataclass(frozen=True, slots=True)
class SequenceChange:
    """One sequence in one stream, by its cells and their positions.

    stayed    cells it held before and holds after, at the same position
    shifted   cells whose token it held before and still holds, at another position (seq_add)
    moved     cells with positions that it had in another cell before (compaction)
    placed    other cells that it did not hold before, including copies by seq_cp; freed: those it no longer holds
    shared    cells that now have several sequences and had one; unshared: the reverse
    """

    cache: str
    stream: int
    seq_id: int
    stayed: int
    shifted: int
    moved: int
    placed: int
    freed: int
    shared: int
    unshared: int

    @property
    def changed(self) -> bool:
        return bool(self.shifted or self.moved or self.placed or self.freed or self.shared or self.unshared)


@dataclass(frozen=True, slots=True)
class StreamChange:
    """The metrics of one stream on both sides (`kvdesk.cache.metrics`)."""

    cache: str
    stream: int
    before: StreamMetrics
    after: StreamMetrics


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two states of the cache. `sequences`: those that changed."""

    streams: tuple[StreamChange, ...]
    sequences: tuple[SequenceChange, ...]
    n_kv_before: int
    n_kv_after: int
    logits: Mapping[int, LogitsComparison]  # by sequence


def compare_snapshots(
    before: CacheSnapshot, after: CacheSnapshot, logits: Mapping[int, LogitsComparison] | None = None
) -> Comparison:
    """Compare two snapshots of one context. `logits`: results of `compare_logits` for some sequences."""
    streams = []
    sequences = []
    for old_map, new_map in zip(before.maps, after.maps, strict=True):
        for s, (old, new) in enumerate(zip(old_map.streams, new_map.streams, strict=True)):
            streams.append(StreamChange(old_map.name, s, stream_metrics(old), stream_metrics(new)))
            present = sorted({*seqs_in(old.seq_bits), *seqs_in(new.seq_bits)})
            changes = (_sequence_change(old_map.name, s, seq_id, old, new) for seq_id in present)
            sequences += [change for change in changes if change.changed]
    return Comparison(
        streams=tuple(streams),
        sequences=tuple(sequences),
        n_kv_before=before.n_kv,
        n_kv_after=after.n_kv,
        logits=dict(logits or {}),
    )


def compare_logits(
    before: NDArray[np.float32],
    after: NDArray[np.float32],
    rounding: float = ROUNDING,
    rounding_kl: float = ROUNDING_KL,
) -> LogitsComparison:
    """Arrays of shape (n_vocab,) or (rows, n_vocab), the rows in the same order. Raises ValueError for unequal shapes.

    `rounding`, `rounding_kl`: limits for rounding, from a measured noise of the model instead of the defaults.

    A logit of -inf is a token that cannot be sampled: equal if both sides have it. NaN on either side counts as an
    infinite divergence. `judge` names the result.
    """
    if before.shape != after.shape or before.ndim not in (1, 2) or not before.size:
        raise ValueError(f"logits of shapes {before.shape} and {after.shape} cannot be compared")
    p, q = np.atleast_2d(before).astype(np.float64), np.atleast_2d(after).astype(np.float64)
    kl = divergence(p, q)
    with np.errstate(invalid="ignore"):
        gaps = np.where(p == q, 0.0, np.abs(p - q))
    gap = float("inf") if np.isnan(gaps).any() else float(gaps.max())
    first = np.flatnonzero(p.argmax(axis=1) != q.argmax(axis=1))
    row = int(first[0]) if len(first) else -1
    finite = np.abs(p[np.isfinite(p)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    return LogitsComparison(
        n_rows=len(p),
        kl_max=float(kl.max()),
        max_difference=gap,
        first_row=row,
        token_before=int(p[row].argmax()) if row >= 0 else -1,
        token_after=int(q[row].argmax()) if row >= 0 else -1,
        verdict=judge(gap / scale, float(kl.max()), rounding, rounding_kl),
    )


def judge(difference: float, kl: float, rounding: float = ROUNDING, rounding_kl: float = ROUNDING_KL) -> Verdict:
    """The verdict on a difference. difference: of logits, over the largest one (at least 1); kl: in nats.

    exact: no logit differs. rounding: both are within the limits. strongly changed: from `STRONG_KL` on.
    """
    if difference == 0.0:
        return Verdict.EXACT
    if difference <= rounding and kl <= rounding_kl:
        return Verdict.ROUNDING
    return Verdict.STRONGLY_CHANGED if kl >= STRONG_KL else Verdict.CHANGED


def divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """KL(softmax(p) || softmax(q)) of each row, in nats: sum of P (log P - log Q); never below 0, inf where undefined.

    Stable: logarithms of probabilities come from the logits less their maximum, never from probabilities.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        log_p, log_q = _log_softmax(p), _log_softmax(q)
        weight = np.exp(log_p)
        terms = np.where(weight == 0.0, 0.0, weight * (log_p - log_q))
        kl = np.maximum(terms.sum(axis=1), 0.0)
    return np.where(np.isnan(kl), np.inf, kl)


def ghost_share(
    untouched: NDArray[np.float32], edited: NDArray[np.float32], recomputed: NDArray[np.float32]
) -> float | None:
    """How much of the effect of removed text remains: KL(edited, recomputed) over KL(untouched, recomputed) of next
    tokens, from logits of shape (n_vocab,). 1: as if nothing was removed; 0: as if it had never been there. None if the
    text made no difference, so there is nothing to forget.
    """
    before, now = (
        float(divergence(row[None].astype(np.float64), recomputed[None].astype(np.float64))[0])
        for row in (untouched, edited)
    )
    return now / before if before >= KNOWN_KL else None


def _log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def _sequence_change(cache: str, stream: int, seq_id: int, before: StreamMap, after: StreamMap) -> SequenceChange:
    n = max(before.high_water, after.high_water)
    old, new = before.columns(n), after.columns(n)
    held, holds = seq_has(old.seq_bits, seq_id), seq_has(new.seq_bits, seq_id)
    n_before, n_after = seq_count(old.seq_bits), seq_count(new.seq_bits)
    same = held & holds & (old.pos == new.pos)
    shifted = held & holds & ~same & (old.token == new.token) & (old.written_at_op == new.written_at_op)
    if np.array_equal(np.sort(old.pos[held]), np.sort(new.pos[holds])):
        shifted = np.zeros_like(same)  # all positions are there, so cells changed places
    left, arrived = held & ~same & ~shifted, holds & ~same & ~shifted
    moved = int(np.isin(new.pos[arrived], old.pos[left]).sum())
    moving = arrived & (old.pos != new.pos)  # another token's cell
    return SequenceChange(
        cache=cache,
        stream=stream,
        seq_id=seq_id,
        stayed=int(same.sum()),
        shifted=int(shifted.sum()),
        moved=moved,
        placed=int(arrived.sum()) - moved,
        freed=int(left.sum()) - int(np.isin(old.pos[left], new.pos[arrived]).sum()),
        shared=int((holds & ~moving & (n_before == 1) & (n_after > 1)).sum()),
        unshared=int((holds & ~moving & (n_before > 1) & (n_after == 1)).sum()),
    )
