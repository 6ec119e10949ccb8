"""Limits the reasoning of an answer in tokens. After that, the tokens of the closing mark are forced, whatever the
model would say (like llama.cpp's common/reasoning-budget.cpp).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from kvdesk.backends.local.llama.samplers.sampler import Sampler
from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.protocol.chat import TokenLogprobs
from kvdesk.reasoning import ReasoningMarks, SaidStart


class BudgetSampler(Sampler):
    """Samples with `inner`, which it closes. `marks`: around the reasoning, which gets at most `most` tokens; 0 ends it
    immediately.
    """

    def __init__(self, inner: Sampler, vocab: Vocab, marks: ReasoningMarks, most: int) -> None:
        self._inner, self._vocab, self._marks = inner, vocab, marks
        self.seed = inner.seed
        self._left = most
        self._said = SaidStart(marks)
        self._utf8 = Utf8Decoder()
        self._ends_line = True
        self._forced: list[int] = []  # the next tokens, of the closing mark
        self._over = False  # the reasoning has ended, or there is none

    def sample(self, ctx: Any, row: int) -> int:
        if (
            self._left <= 0
            and not self._over
            and not self._forced
            and self._said.is_thinking
            and not self._utf8.pending
        ):
            self._forced = self._closing()
        if self._forced and self._inner.force(self._forced[0]):
            token = self._forced.pop(0)
            self._over = not self._forced
            return token
        self._forced.clear()
        token = self._inner.sample(ctx, row)
        self.dead_end = self._inner.dead_end
        if token >= 0:
            self.see(token)
        return token

    def force(self, token: int) -> bool:
        return self._inner.force(token)

    def accept(self, tokens: Iterable[int]) -> None:
        self._inner.accept(tokens)

    def resume(self, tokens: Iterable[int]) -> None:
        given = list(tokens)
        self._inner.resume(given)
        for token in given:
            self.see(token)

    def forced(self) -> list[int]:
        return [*self._forced] or self._inner.forced()

    def take_logprobs(self, n: int) -> tuple[TokenLogprobs, ...]:
        return self._inner.take_logprobs(n)

    def close(self) -> None:
        self._inner.close()

    def see(self, token: int) -> None:
        """The answer has this token."""
        if self._over:
            return
        was_thinking = self._said.is_thinking
        text = self._utf8.decode(self._vocab.piece(token))
        self._said.take(text)
        if text:
            self._ends_line = text.endswith("\n")
        self._left -= was_thinking and self._said.is_thinking
        self._over = self._said.at is not None

    def _closing(self) -> list[int]:
        """On a separate line, where no quotation mark or backtick makes it a part of the reasoning."""
        text = self._marks.end if self._ends_line else f"\n{self._marks.end}"
        return self._vocab.tokenize(text, add_special=False, parse_special=True)


def with_budget(
    sampler: Sampler, vocab: Vocab, marks: ReasoningMarks | None, most: int, continued: Sequence[int] = ()
) -> Sampler:
    """Wrap the sampler to end reasoning after `most` tokens (`Generate.reasoning_budget`), unless that is negative or
    the marks of reasoning are unknown. `continued`: the beginning of the answer, which `sampler` has already seen.
    """
    if most < 0 or marks is None:
        return sampler
    budget = BudgetSampler(sampler, vocab, marks, most)
    for token in continued:
        budget.see(token)
    return budget
