"""What the next batch holds, over all running turns: tokens of answers and chunks of prompts take turns.

An answer must visibly go on while another conversation reads a long prompt, and the prompt must not take much longer
for it. So the chunk is halved when the last one took longer than the gap allows and doubled when it took less than
half of that, and after it come as many steps without prompt as the answer needs for its speed; after one of a job, for
which nobody waits, as many as take as long. A chunk below `TILE` tokens goes along with the answers' tokens, since a
batch costs a pass over the weights, however small. A larger one has a batch of its own: there one more token costs as
much as a step. Pure: no queue, no clock; it is told how long a batch took. (docs/reading-beside.md has the
measurements.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvdesk.policies.tuned import LEAST_CHUNK, LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, MOST_GAPS, SCATTER, TILE
from kvdesk.values import dataclass

AIM = 1 / SCATTER
"""Share of the longest gap that a chunk and a step may take. A tile may take all of it."""


@dataclass(frozen=True, slots=True)
class Want:
    """A running turn. n_prefill: tokens of its prompt that are not in the cache, 0 when it decodes one token a step.

    waited_ms: since it last had a token in a batch; the longest waiting come first when not all fit. is_job: nobody
    waits for an answer to it.
    """

    seq_id: int
    n_prefill: int
    waited_ms: float = 0.0
    is_job: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """So many tokens of this sequence are in the batch."""

    seq_id: int
    n_tokens: int


class ChunkSize:
    """Tokens of the next chunk, and steps after it, from what the last batches took.

    n_tokens  a power of two, at most n_batch
    block     as `Context.block`: no chunk has fewer tokens
    """

    def __init__(self, n_batch: int = 512, block: int = 1) -> None:
        self._most = 1 << n_batch.bit_length() - 1
        self.block = block
        self.n_tokens = self._least = min(max(LEAST_CHUNK, block), self._most)
        self._step_ms = 0.0
        self._steps_ms = 0.0  # since the last chunk
        self._chunk_ms = 0.0
        self._along = True
        self._taken: dict[int, float] = {}  # ms of the last chunk of a size

    @property
    def longest_ms(self) -> float:
        """Between two tokens of an answer."""
        return max(LONGEST_GAP_MS, 2 * self._step_ms)

    @property
    def n_steps(self) -> int:
        """Steps without prompt that an answer needs for its speed after the last chunk."""
        tokens_per_ms = LEAST_TOK_S / 1e3
        if self._step_ms:
            tokens_per_ms = min(tokens_per_ms, LEAST_SHARE / self._step_ms)
        n = math.ceil((tokens_per_ms * self._chunk_ms - self._along) / (1 - tokens_per_ms * self._step_ms))
        return max(0 if self._along else 1, n)

    @property
    def halved(self) -> bool:
        """Whether answers have had as long as the last chunk took: half of their speed, however quick they are."""
        return self._steps_ms >= self._chunk_ms

    def step_took(self, ms: float) -> None:
        """A batch of answers' tokens alone."""
        self._step_ms = ms
        self._steps_ms += ms

    def prompt_took(self, n_tokens: int, ms: float) -> None:
        """A batch of a prompt that nobody waited beside: what a token costs."""
        if n_tokens < TILE:
            return
        fits = int(n_tokens * (AIM * self.longest_ms - self._step_ms) / ms)
        n = TILE if fits >= TILE / MOST_GAPS else 1 << max(self._least, fits).bit_length() - 1
        self.n_tokens = min(n, self._most)

    def chunk_took(self, n_tokens: int, ms: float, *, along: bool) -> None:
        """A chunk beside answers. along: their tokens were in the same batch."""
        self._chunk_ms, self._along, self._steps_ms = ms, along, 0.0
        if n_tokens != self.n_tokens:
            return  # the rest of a prompt
        self._taken[n_tokens] = ms
        whole_ms, half_ms = (self._taken.get(n) for n in (TILE, TILE // 2))
        is_dearer = whole_ms is not None and half_ms is not None and half_ms >= whole_ms
        keeps_tile = is_dearer and whole_ms is not None and whole_ms < MOST_GAPS * self.longest_ms
        if keeps_tile and n_tokens == TILE // 2:
            self.n_tokens = TILE
        elif ms + self._step_ms > (1.0 if n_tokens == TILE else AIM) * self.longest_ms:
            if n_tokens > self._least and not (keeps_tile and n_tokens == TILE):
                self.n_tokens = n_tokens // 2
        elif 2 * ms + self._step_ms < AIM * self.longest_ms:
            self.n_tokens = min(2 * n_tokens, self._most)


def compose(
    wants: Sequence[Want], chunk: ChunkSize, n_batch: int, n_decoded: int = 0, *, together: bool = True
) -> tuple[Share, ...]:
    """The next batch for these turns, none of which is left out for good.

    n_decoded  batches since the last one with tokens of a prompt
    together   False where the engine cannot have several sequences in one batch; then answers and prompts have theirs
               one after another, and jobs come last

    Prompts and jobs share a chunk evenly; what a short one leaves goes to the others, so it is read without waiting
    for a long one.
    """
    waiting = sorted(wants, key=lambda want: (want.is_job, -want.waited_ms, want.seq_id))
    most_ones = n_batch if together else 1
    prompts = [want for want in waiting if want.n_prefill][: None if together else 1]
    answers = tuple(Share(want.seq_id, 1) for want in waiting if not want.n_prefill)
    ones = answers[:most_ones]
    n_left = sum(want.n_prefill for want in prompts)
    if not prompts:
        return ones
    if not ones:
        return _split(prompts, min(n_batch, n_left))
    n = min(chunk.n_tokens, n_batch, n_left)
    if n >= TILE and chunk.block == 1:
        n = n_left % TILE or n  # the odd tokens first: over many cells they may cost as much as three times as many
    along = together and n < TILE and n_batch > len(ones)
    if along:
        n = min(n, n_batch - len(ones))
    turns = math.ceil(len(answers) / most_ones)
    if n_decoded < chunk.n_steps * turns or (not chunk.halved and all(want.is_job for want in prompts)):
        return ones
    return (ones if along else ()) + _split(prompts, n)


# --- private ----------------------------------------------------------------------------------------------------------


def _split(prompts: Sequence[Want], n_tokens: int) -> tuple[Share, ...]:
    """Share out `n_tokens` evenly, nobody more than it has; the longest waiting get the odd ones."""
    parts = {want.seq_id: 0 for want in prompts}
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
