"""What the next batch holds, over all running turns: tokens of answers and chunks of prompts take turns.

An answer must visibly go on while another conversation reads a long prompt, and the prompt must not take much longer
for it. So the chunk is as large as the longest gap allows, and after it come as many steps without prompt as the answer
needs for its speed. A chunk below `TILE` tokens goes along with the answers' tokens, since a batch costs a pass over
the weights, however small; a larger one has a batch of its own: there one more token costs as much as a step, and the
answers' tokens are computed as if they were alone. Pure: no queue, no clock; it is told how long a batch takes.
(docs/reading-beside.md has the measurements.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kvdesk.policies.batch_times import FIRST, TILE

LONGEST_GAP_MS = 400.0
"""Between two tokens of an answer beside which a prompt is read; or two decode steps, where these are longer."""
LEAST_TOK_S = 5.0
"""Speed of that answer; or `LEAST_SHARE` of its speed alone, where that is less."""
LEAST_SHARE = 0.5
STILL_FITS, FITS_STEADY = 0.8, 0.88
"""Share of the longest gap that the smallest tiled chunk may take where a token costs more in smaller ones: at least,
and where batches have taken no longer than was expected of them, or smaller ones were never measured: to try one
leaves odd tokens for the end, where they are dearest.
"""
FAR_DEARER = 1.5
"""Times that a token costs in smaller chunks, once some were measured, from which on the gap may be exceeded by as
much: a prompt read in them would take longer than it may, so that nothing keeps both.
"""
AIM = 0.7
"""Share of the longest gap that is planned: single batches take up to 0.4 longer than the median."""

BatchMs = Callable[[int, int, float], float | None]
"""Expected ms of a batch of n_tokens over n_kv cells, of which each sees n_visible in the mean (`BatchTimes.ms`); None
where nothing is known.
"""

_MOST_GAPS = 2.5  # planned gaps that the smallest tiled chunk may take where smaller ones are far dearer
_GRAIN = 16  # a large chunk is a multiple of it: kernels compute rows of tokens four or more at a time


@dataclass(frozen=True, slots=True)
class Want:
    """A running turn. n_past: tokens of its sequence that are in the cache; n_prefill: tokens of its prompt that are
    not, 0 when it decodes one token a step.

    waited_ms: since it last had a token in a batch; the longest waiting come first when not all fit.
    """

    seq_id: int
    n_past: int
    n_prefill: int
    waited_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """So many tokens of this sequence are in the batch."""

    seq_id: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class _Room:
    """What bounds the next chunk. n_ones: tokens of answers in every step; n_along: most tokens of prompts for which
    there is room beside them; most: tokens of prompts in a batch of their own; n_left: tokens that are left of all
    prompts; waited_ms: since an answer last had a token, which it gets first where the chunk would make that too long;
    fits: share of the longest gap that the smallest tiled chunk may take; tried: whether smaller ones were measured.
    """

    n_ones: int
    n_along: int
    most: int
    n_left: int
    waited_ms: float
    fits: float
    tried: bool


@dataclass(frozen=True, slots=True)
class _Chunk:
    """So many tokens of prompt, along with the answers' tokens or without, after so many steps without prompt."""

    n_tokens: int
    along: bool
    n_steps: int


def compose(
    wants: Sequence[Want],
    batch_ms: BatchMs,
    n_kv: int,
    n_batch: int,
    n_decoded: int = 0,
    *,
    together: bool = True,
    most_over: float = math.inf,
    most_few: int = TILE - 1,
) -> tuple[Share, ...]:
    """The next batch for these turns, none of which is left out for good. n_kv: the span of the next step.

    n_decoded: batches since the last one with tokens of a prompt. most_over: times longer than expected that single
    batches take (`BatchTimes.most_over`); most_few: tokens of the largest batch below `TILE` (`BatchTimes.most_few`).
    Prompts share a chunk evenly; what a short one leaves goes to the others, so it is read without waiting for a long
    one. together: False where the engine cannot have several sequences in one batch; then answers and prompts have
    theirs one after another.
    """
    waiting = sorted(wants, key=lambda w: (-w.waited_ms, w.seq_id))
    most_ones = n_batch if together else 1
    prompts = [w for w in waiting if w.n_prefill][: None if together else 1]
    answers = tuple(Share(w.seq_id, 1) for w in waiting if not w.n_prefill)
    ones = answers[:most_ones]
    if not prompts:
        return ones
    n_left = sum(w.n_prefill for w in prompts)
    most = min(n_batch, n_left)
    if not ones:
        return _split(prompts, most)
    tried = most_few > FIRST
    room = _Room(
        n_ones=len(ones),
        n_along=min(most, n_batch - len(ones), most_few - len(ones)) if together else 0,
        most=most,
        n_left=n_left,
        waited_ms=max(w.waited_ms for w in waiting if not w.n_prefill),
        fits=min(max(STILL_FITS, 1 / most_over), FITS_STEADY) if tried else FITS_STEADY,
        tried=tried,
    )
    read, written = fmean(w.n_past for w in prompts), fmean(w.n_past for w in waiting if not w.n_prefill)

    def ms(n_ones: int, n_tokens: int) -> float | None:
        n = n_ones + n_tokens
        return batch_ms(n, n_kv, (n_ones * written + n_tokens * read) / n)

    chunk = _chunk(room, ms)
    if n_decoded < chunk.n_steps * math.ceil(len(answers) / most_ones):
        return ones
    return (ones if chunk.along else ()) + _split(prompts, chunk.n_tokens)


# --- private ----------------------------------------------------------------------------------------------------------


def _chunk(room: _Room, batch_ms: Callable[[int, int], float | None]) -> _Chunk:
    """The largest chunk with which no answer waits too long: large ones cost least a token. batch_ms: of a batch of so
    many tokens of answers and so many of prompts.

    Where `TILE` tokens do not fit, smaller chunks may be far dearer. The smallest tiled one is taken if it is shorter
    than the longest gap after all; or, where a token costs `FAR_DEARER` times as much in smaller ones, if the gap grows
    by less than the prompt's time would: of gap times time that is the least, the knee of their curve.
    """
    step_ms = batch_ms(room.n_ones, 0)
    if step_ms is None:
        along = room.n_along > 0
        return _Chunk(min(room.n_along if along else room.most, FIRST), along, 0 if along else 1)

    def ms(n: int) -> float:
        return batch_ms(0, n) or math.inf

    def along_ms(n: int) -> float:
        return batch_ms(room.n_ones, n) or math.inf

    # a step is not measured again beside chunks that go along: it takes no more than one with a token more
    step_ms = min(step_ms, along_ms(1))
    gap_ms = AIM * max(LONGEST_GAP_MS, 2 * step_ms)
    if room.n_along < 1:
        n = _most(range(1, room.most + 1), lambda n: ms(n) + step_ms <= gap_ms) or 1
        return _Chunk(n, False, max(1, _steps(ms(n), 0, step_ms)))
    n = _most(range(1, room.n_along + 1), lambda n: along_ms(n) <= gap_ms) or 1
    tiled = _most(range(TILE, room.most + 1, _GRAIN), lambda n: ms(n) + step_ms <= gap_ms)
    if not tiled and room.most >= TILE:
        n_gaps = (ms(TILE) + step_ms) / gap_ms
        times_dearer = (along_ms(n) - step_ms) / n / (ms(TILE) / TILE)
        still_fits = room.fits / AIM if times_dearer > 1 else 0
        allowed = times_dearer if room.tried and times_dearer >= FAR_DEARER else still_fits
        tiled = TILE if n_gaps <= min(_MOST_GAPS, allowed) else 0
    if tiled:
        tiled, odd = _whole_tiles(tiled, room.n_left)
        if 0 < odd <= room.n_along and along_ms(odd) - step_ms <= min(gap_ms, odd * ms(TILE) / TILE):
            n, tiled = odd, 0
    if tiled:
        return _Chunk(tiled, False, max(1, _steps(ms(tiled), 0, step_ms)))
    return _Chunk(n, True, max(int(room.waited_ms + along_ms(n) > gap_ms), _steps(along_ms(n), 1, step_ms)))


def _whole_tiles(n: int, n_left: int) -> tuple[int, int]:
    """(a chunk of at most `n` tokens, tokens that are to be read apart), so that what is left after one of them can be
    read in tiles to the end: fewer than `TILE` tokens over many cells may cost as much as three times as many.
    """
    fitting = n_left - TILE * math.ceil((n_left - n) / TILE)
    return (fitting, 0) if fitting >= TILE else (n // TILE * TILE, fitting)


def _steps(chunk_ms: float, n_given: int, step_ms: float) -> int:
    """Steps without prompt that an answer needs for its speed beside chunks that give it `n_given` tokens each."""
    tokens_per_ms = min(LEAST_TOK_S / 1e3, LEAST_SHARE / step_ms)
    return max(0, math.ceil((tokens_per_ms * chunk_ms - n_given) / (1 - tokens_per_ms * step_ms)))


def _most(sizes: range, fits: Callable[[int], bool]) -> int:
    """The largest of these sizes that fits, 0 when none does. What is larger than one that does not fit does not."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if fits(sizes[middle]):
            low = middle + 1
        else:
            high = middle
    return sizes[low - 1] if low else 0


def _split(prompts: Sequence[Want], n_tokens: int) -> tuple[Share, ...]:
    """Share out `n_tokens` evenly, nobody more than it has; the longest waiting get the odd ones."""
    parts = {w.seq_id: 0 for w in prompts}
    open_ones = list(prompts)
    while n_tokens and open_ones:
        each = max(1, n_tokens // len(open_ones))
        for want in tuple(open_ones):
            n = min(each, want.n_prefill - parts[want.seq_id], n_tokens)
            parts[want.seq_id] += n
            n_tokens -= n
            if parts[want.seq_id] == want.n_prefill:
                open_ones.remove(want)
    return tuple(Share(seq_id, n) for seq_id, n in parts.items() if n)
