"""One request for an answer, as a value that changes: what is prefilled, what is generated, what was measured.

Knows tokens and clocks, not the cache: the scheduler tells it what was decoded and asks it for the next tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.sampler import Sampler
from kvdesk.backends.local.llama.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.prompt import Prompt
from kvdesk.cache.batch import Batch
from kvdesk.chat import NONE_EVICTED, EvictedMessages, TurnStats
from kvdesk.protocol.chat import Generate


@dataclass(slots=True, eq=False)
class Request:
    """`prompt[:reused]` was in the cache at the start; `sequence.tokens` is what is in it now. Times in seconds.

    prompt   the tokens of `whole`: of the messages that were not evicted; n_asked: how many they were at the start
    pauses   numbers of tokens after which a batch ends, so that the state there can be kept
    skipped  so many of the first generated tokens were evicted
    untold   sampled tokens whose text has not been sent yet
    notes    what is to be said when the request ends: which messages were evicted
    """

    command: Generate
    sequence: CacheSequence
    whole: Prompt
    reused: int
    sampler: Sampler
    submitted_at: float
    why: str
    vocab: Vocab
    evicted: EvictedMessages = NONE_EVICTED
    pauses: tuple[int, ...] = ()
    skipped: int = 0
    notes: list[str] = field(default_factory=list)
    generated: list[int] = field(default_factory=list)
    untold: list[int] = field(default_factory=list)
    utf8: Utf8Decoder = field(default_factory=Utf8Decoder)
    prefill_s: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0
    tell_at: float = 0.0
    prompt: list[int] = field(init=False)
    n_asked: int = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = self.whole.tokens
        self.n_asked = len(self.prompt)

    @property
    def position(self) -> int:
        """Where the next token goes: `seq_pos_max + 1`."""
        return len(self.sequence.tokens)

    @property
    def known(self) -> list[int]:
        """Tokens of the prompt and of the answer so far, without what was evicted. The last one is not in the cache."""
        return self.prompt + self.generated[self.skipped :]

    @property
    def n_to_read(self) -> int:
        """Tokens to be prefilled before the next can be sampled; 0 when only the one sampled last is missing."""
        missing = len(self.prompt) + len(self.generated) - self.skipped - len(self.sequence.tokens)
        return 0 if missing == 1 and self.generated else missing

    @property
    def prefilling(self) -> bool:
        return self.n_to_read > 0

    def next_batch(self, most: int) -> Batch:
        """The next `most` tokens to be read, up to a pause, or the token sampled last. Logits where the prompt ends."""
        start, left = len(self.sequence.tokens), self.n_to_read
        if not left:
            return Batch.of(self.sequence.seq_id, start, self.generated[-1:], "last")
        end = min([start + most, *(at for at in self.pauses if at > start)])
        tokens = (self.known if self.generated else self.prompt)[start:end]
        return Batch.of(self.sequence.seq_id, start, tokens, "last" if len(tokens) == left else "none")

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

    def char_ends(self) -> list[int]:
        """Characters of the answer that are complete after each of its tokens that is in the cache."""
        utf8, ends, length = Utf8Decoder(), [], 0
        for token in self.generated[: self.skipped + max(0, self.position - len(self.prompt))]:
            length += len(utf8.decode(self.vocab.piece(token)))
            ends.append(length)
        return ends[self.skipped :]

    def note(self, why: str = "") -> str:
        """What is said of the answer: that messages were evicted, the last time in full, and why it ended."""
        often = f" That happened {len(self.notes)} times in this answer." if len(self.notes) > 1 else ""
        return " ".join(part for part in (*(note + often for note in self.notes[-1:]), why) if part)

    def stats(self, cells_used: int, high_water: int, n_kv: int) -> TurnStats:
        """The request as numbers, defined in the documentation of the metrics."""
        prefilled = (self.n_asked if self.generated else self.position) - self.reused
        decode_s = self.last_at - self.first_at
        n_gaps = len(self.generated) - 1
        return TurnStats(
            prompt_tokens=self.n_asked,
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
