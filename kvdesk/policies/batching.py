"""What the next batch holds, over all running turns: tokens of answers and chunks of prompts take turns.

An answer must visibly continue while another conversation reads a long prompt, and the prompt must not take much longer
because of it. A chunk of fewer than `TILE` tokens shares a batch with the answers' tokens, because even a small batch
is one pass over the weights; it is as large as the gap allows, and the batch a multiple of `ROWS`. A larger chunk has
its own batch, because one more token in it costs as much as a step. It is halved if the last one took longer than the
gap, and doubled if it took less than half of it. After a chunk, the answer gets as many steps without a prompt as its
speed needs; after a chunk of a job, for which nobody waits, as many as take the same time. Pure: no queue, no clock;
the caller reports how long a batch took. (docs/developers/reading-beside.md has the measurements.)
"""

import math
from collections.abc import Sequence

from kvdesk.policies.tuned import LEAST_CHUNK, LEAST_SHARE, LEAST_TOK_S, LONGEST_GAP_MS, MOST_GAPS, SCATTER, TILE
from kvdesk.values import dataclass

AIM = 1 / SCATTER
"""Share of the longest gap that a chunk and a step may take. A tile may take all of it."""
ROWS = 4
"""Tokens that llama.cpp multiplies with repacked weights together (ggml-cpu/repack.cpp). Each of up to three left over
costs as much as several of them."""


@dataclass(frozen=True, slots=True)
class Want:
    """A running turn. n_prefill: tokens of its prompt that are not in the cache, 0 when it decodes one token a step.

    waited_ms: since it last had a token in a batch; of answers the longest waiting come first when not all fit. is_job:
    nobody waits for an answer to it.
    """

    seq_id: int
    n_prefill: int
    waited_ms: float = 0.0
    is_job: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """How many tokens of this sequence are in the batch."""

    seq_id: int
    n_tokens: int


class ChunkSize:
    """Tokens of the next chunk, and steps after it, from what the last batches took.

    n_tokens  a power of two from `TILE` on, at most n_batch
    block     as `Context.block`: no chunk has fewer tokens
    """

    def __init__(self, n_batch: int = 512, block: int = 1) -> None:
        self._most = 1 << n_batch.bit_length() - 1
        self.block = block
        self.n_tokens = self._least = min(max(LEAST_CHUNK, block), self._most)
        self._token_ms = 0.0  # of a prompt while no answer waited
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
        """Whether answers have had as much time as the last chunk: half of their speed, however fast they are."""
        return self._steps_ms >= self._chunk_ms

    def step_took(self, ms: float) -> None:
        """A batch of answers' tokens alone."""
        self._step_ms = ms
        self._steps_ms += ms
        self._begin()

    def prompt_took(self, n_tokens: int, ms: float) -> None:
        """A batch of a prompt while no answer waited: what a token costs, until a chunk has shown it."""
        if n_tokens >= TILE:
            self._token_ms = ms / n_tokens
            self._begin()

    def _begin(self) -> None:
        if self._taken or not self._token_ms:
            return
        fits = int((AIM * self.longest_ms - self._step_ms) / self._token_ms)
        n = TILE if fits >= TILE / MOST_GAPS else 1 << max(self._least, fits).bit_length() - 1
        self.n_tokens = min(n, self._most)

    def chunk_took(self, n_tokens: int, ms: float, *, along: bool) -> None:
        """A chunk beside answers. along: their tokens were in the same batch."""
        self._chunk_ms, self._along, self._steps_ms = ms, along, 0.0
        if self.n_tokens - ROWS < n_tokens < self.n_tokens:
            n_tokens = self.n_tokens  # without the odd ones
        elif n_tokens != self.n_tokens and ms <= self.longest_ms:
            return  # the rest of a prompt
        self._taken[n_tokens] = ms
        whole_ms, half_ms = (self._taken.get(n) for n in (TILE, TILE // 2))
        is_dearer = whole_ms is not None and half_ms is not None and half_ms >= whole_ms
        keeps_tile = is_dearer and whole_ms is not None and whole_ms < MOST_GAPS * self.longest_ms
        if keeps_tile and TILE // 2 <= n_tokens < TILE:
            self.n_tokens = TILE
        elif n_tokens >= TILE and ms + self._step_ms > (1.0 if n_tokens == TILE else AIM) * self.longest_ms:
            if n_tokens > self._least and not (keeps_tile and n_tokens == TILE):
                self.n_tokens = n_tokens // 2
        elif n_tokens >= TILE // 2 and 2 * ms + self._step_ms < AIM * self.longest_ms:
            self.n_tokens = min(2 * n_tokens, self._most)
        elif n_tokens < TILE:
            fits = int(n_tokens * AIM * self.longest_ms / ms)
            n = min(max(fits, n_tokens // 2, self._least), 2 * n_tokens)
            self.n_tokens = min(n, TILE // 2, self._most)


def compose(
    wants: Sequence[Want], chunk: ChunkSize, n_batch: int, n_decoded: int = 0, *, together: bool = True
) -> tuple[Share, ...]:
    """The next batch for these turns. None of them is left out forever.

    wants      prompts in the order in which they came
    n_decoded  batches since the last one with tokens of a prompt
    together   False if the engine cannot have several sequences in one batch; then answers and prompts have theirs
               one after another

    Half of a chunk is for the prompt that came first, the rest for those that have the fewest tokens left; a job gets
    what prompts leave.
    """
    most_ones = n_batch if together else 1
    prompts = sorted((want for want in wants if want.n_prefill), key=lambda want: want.is_job)[
        : None if together else 1
    ]
    waiting = sorted((want for want in wants if not want.n_prefill), key=lambda want: (-want.waited_ms, want.seq_id))
    answers = tuple(Share(want.seq_id, 1) for want in waiting)
    ones = answers[:most_ones]
    n_left = sum(want.n_prefill for want in prompts)
    if not prompts:
        return ones
    if not ones:
        return _split(prompts, min(n_batch, n_left))
    n = min(chunk.n_tokens, n_batch, n_left)
    if n >= TILE and chunk.block == 1:
        n = n_left % TILE or n  # the odd tokens first: over many cells they may cost as much as three times as many
    elif n_left <= SCATTER * n:
        n = min(n_left, n_batch)  # a few more are cheaper than their own batch
    elif n >= ROWS:
        n -= (n + len(ones) * together) % ROWS  # leave none over
    along = together and n < TILE and n_batch > len(ones)
    if along:
        n = min(n, n_batch - len(ones))
    turns = math.ceil(len(answers) / most_ones)
    if n_decoded < chunk.n_steps * turns or (not chunk.halved and all(want.is_job for want in prompts)):
        return ones
    return (ones if along else ()) + _split(prompts, n)


# --- private ----------------------------------------------------------------------------------------------------------


def _split(prompts: Sequence[Want], n_tokens: int) -> tuple[Share, ...]:
    """Share out `n_tokens`, to each at most what it has: a short prompt does not wait for a long one, and a long one is
    read however many short ones come.
    """
    first = prompts[0]
    parts = {first.seq_id: min(first.n_prefill, (n_tokens + 1) // 2)}
    n_tokens -= parts[first.seq_id]
    for want in sorted(prompts, key=lambda want: (want.is_job, want.n_prefill - parts.get(want.seq_id, 0))):
        n_before = parts.get(want.seq_id, 0)
        parts[want.seq_id] = n_before + min(n_tokens, want.n_prefill - n_before)
        n_tokens -= parts[want.seq_id] - n_before
    return tuple(Share(seq_id, n) for seq_id, n in parts.items() if n)
