"""A sampler that also says how likely each token was, before any sampler had changed that.

As llama.cpp's server counts them (server-context.cpp, `get_token_probabilities`): the softmax of all logits. Copies
all logits for each token, so only where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.sampler import Sampler
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.protocol.chat import TokenLogprobs, TokenProb


class LogprobSampler(Sampler):
    """Samples with `inner`, which it closes. `n`: so many of the likeliest tokens are told beside the chosen one."""

    def __init__(self, inner: Sampler, vocab: Vocab, n: int) -> None:
        self._inner, self._vocab, self._n = inner, vocab, min(n, vocab.n_tokens)
        self.seed = inner.seed
        self._told: list[TokenLogprobs] = []

    def sample(self, ctx: Any, row: int) -> int:
        token = self._inner.sample(ctx, row)
        self.dead_end = self._inner.dead_end
        if token >= 0:
            pointer = lib.llama_get_logits_ith(ctx, row)
            logits = np.ctypeslib.as_array(pointer, shape=(self._vocab.n_tokens,)).astype(np.float64)
            top = logits.max()
            logits -= top + np.log(np.exp(logits - top).sum())
            likeliest = np.argpartition(-logits, self._n - 1)[: self._n] if self._n else np.empty(0, np.intp)
            likeliest = likeliest[np.argsort(-logits[likeliest], kind="stable")]
            self._told.append(
                TokenLogprobs(self._prob(token, logits), tuple(self._prob(int(t), logits) for t in likeliest))
            )
        return token

    def accept(self, tokens: Iterable[int]) -> None:
        self._inner.accept(tokens)

    def resume(self, tokens: Iterable[int]) -> None:
        self._inner.resume(tokens)

    def take_logprobs(self, n: int) -> tuple[TokenLogprobs, ...]:
        taken, self._told = self._told[:n], self._told[n:]
        return tuple(taken)

    def close(self) -> None:
        self._inner.close()

    def _prob(self, token: int, logprobs: np.ndarray[Any, np.dtype[np.float64]]) -> TokenProb:
        return TokenProb(token, float(logprobs[token]), self._vocab.written(token))


def with_logprobs(sampler: Sampler, vocab: Vocab, n_probs: int) -> Sampler:
    """The sampler, which also says how likely each token was where `n_probs` (`Generate.n_probs`) is not negative."""
    return LogprobSampler(sampler, vocab, n_probs) if n_probs >= 0 else sampler
