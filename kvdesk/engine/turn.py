"""One answer in the making, as a value that changes: what is prefilled, what is generated, what was measured.

Knows tokens and clocks, not the cache: the engine feeds it and asks it for the next batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvdesk.cache.batch import Batch
from kvdesk.chat import TurnStats
from kvdesk.engine.sampler import Sampler
from kvdesk.engine.sequences import Sequence
from kvdesk.engine.utf8 import Utf8Decoder
from kvdesk.messages import Generate


@dataclass(slots=True, eq=False)
class Turn:
    """`prompt[:reused]` was in the cache at the start; `sequence.tokens` is what is in it now. Times in seconds."""

    command: Generate
    sequence: Sequence
    prompt: list[int]
    reused: int
    sampler: Sampler
    submitted_at: float
    why: str
    vocab: str
    generated: list[int] = field(default_factory=list)
    utf8: Utf8Decoder = field(default_factory=Utf8Decoder)
    prefill_s: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0

    @property
    def position(self) -> int:
        """Where the next token goes: `seq_pos_max + 1`."""
        return len(self.sequence.tokens)

    @property
    def prefilling(self) -> bool:
        return self.position < len(self.prompt)

    def next_batch(self, n_batch: int) -> Batch:
        """The next chunk of the prompt, or the token sampled last. Logits only for the last token of the prompt."""
        start = self.position
        tokens = self.prompt[start : start + n_batch] if self.prefilling else self.generated[-1:]
        n, seq = len(tokens), (self.sequence.seq_id,)
        output = [False] * n
        output[-1] = start + n >= len(self.prompt)
        return Batch(tokens, range(start, start + n), [seq] * n, output)

    def sampled(self, token: int, now: float, *, end: bool) -> None:
        """`token` was sampled at `now`; it is part of the answer unless it marks the `end` of generation."""
        self.first_at = self.first_at or now
        if not end:
            self.last_at = now
            self.generated.append(token)

    def stats(self, cells_used: int, high_water: int, n_kv: int) -> TurnStats:
        """The turn as numbers; definitions as in docs (metrics)."""
        prefilled = min(self.position, len(self.prompt)) - self.reused
        decode_s = self.last_at - self.first_at
        n_gaps = len(self.generated) - 1
        return TurnStats(
            prompt_tokens=len(self.prompt),
            reused_tokens=self.reused,
            prefilled_tokens=prefilled,
            generated_tokens=len(self.generated),
            ttft_ms=(self.first_at - self.submitted_at) * 1e3 if self.first_at else 0.0,
            prefill_tok_s=prefilled / self.prefill_s if self.prefill_s else 0.0,
            decode_tok_s=n_gaps / decode_s if n_gaps > 0 and decode_s > 0 else 0.0,
            seq_id=self.sequence.seq_id,
            cells_used=cells_used,
            high_water=high_water,
            n_kv=n_kv,
            why=self.why,
            vocab=self.vocab,
        )
