"""One answer in the making, as a value that changes: what is prefilled, what is generated, what was measured.

Knows tokens and clocks, not the cache: the runner feeds it and asks it for the next tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvdesk.cache.batch import Batch
from kvdesk.chat import TurnStats
from kvdesk.engine.prompt import Prompt
from kvdesk.engine.sampler import Sampler
from kvdesk.engine.sequences import Sequence
from kvdesk.engine.utf8 import Utf8Decoder
from kvdesk.engine.vocab import Vocab
from kvdesk.messages import Generate

_YES = (True,)


@dataclass(slots=True, eq=False)
class Turn:
    """`prompt[:reused]` was in the cache at the start; `sequence.tokens` is what is in it now. Times in seconds.

    `prompt` are the tokens of `whole`; `untold` are sampled tokens whose text has not been sent yet.
    """

    command: Generate
    sequence: Sequence
    whole: Prompt
    reused: int
    sampler: Sampler
    submitted_at: float
    why: str
    vocab: Vocab
    generated: list[int] = field(default_factory=list)
    untold: list[int] = field(default_factory=list)
    utf8: Utf8Decoder = field(default_factory=Utf8Decoder)
    prefill_s: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0
    told_at: float = 0.0
    prompt: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = self.whole.tokens

    @property
    def position(self) -> int:
        """Where the next token goes: `seq_pos_max + 1`."""
        return len(self.sequence.tokens)

    @property
    def prefilling(self) -> bool:
        return len(self.sequence.tokens) < len(self.prompt)

    def next_batch(self, most: int) -> Batch:
        """The next `most` tokens of the prompt, or the token sampled last. Logits only for the prompt's last token."""
        start = len(self.sequence.tokens)
        seq = (self.sequence.seq_id,)
        if start >= len(self.prompt):
            return Batch((self.generated[-1],), (start,), (seq,), _YES)
        tokens = self.prompt[start : start + most]
        n = len(tokens)
        output = [False] * n
        output[-1] = start + n >= len(self.prompt)
        return Batch(tokens, range(start, start + n), [seq] * n, output)

    def sampled(self, token: int, now: float) -> None:
        """`token` is part of the answer; it was sampled at `now`."""
        self.last_at = now
        self.generated.append(token)
        self.untold.append(token)

    def take_text(self, *, end: bool = False) -> tuple[str, tuple[int, ...]]:
        """The text that can be told now, and its tokens. `end`: also what is left of a character."""
        tokens, self.untold = self.untold, []
        text = self.utf8.decode(b"".join(map(self.vocab.piece, tokens)))
        return (text + self.utf8.flush() if end else text), tuple(tokens)

    def pieces(self) -> list[str]:
        """The text that each generated token that is in the cache completes."""
        utf8 = Utf8Decoder()
        in_cache = self.generated[: max(0, self.position - len(self.prompt))]
        return [utf8.decode(self.vocab.piece(token)) for token in in_cache]

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
            vocab=self.vocab.fingerprint,
        )
