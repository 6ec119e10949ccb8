"""Samplers that also report how likely each token was, before any sampler changed that or after all of them.

As llama.cpp's server does (server-context.cpp, `populate_token_probs`). They read the whole vocabulary for each token,
so they are used only on request.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.samplers.sampler import Sampler
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.protocol.chat import TokenLogprobs, TokenProb

_GROUP: Final = 128
"""Logits per group, of which only the largest is compared first. This finds the likeliest of 150,000 tokens in a
fraction of the time of `argpartition`."""

_LEAST: Final = 1e-45
"""Probability of a chosen token whose float is 0: it has a logarithm."""


class LogprobSampler(Sampler):
    """Samples with `inner`, which it closes. `n`: likeliest tokens reported beside the chosen one."""

    def __init__(self, inner: Sampler, vocab: Vocab, n: int) -> None:
        self._inner, self._vocab, self._n = inner, vocab, min(n, vocab.n_tokens)
        self.seed = inner.seed
        self._told: list[TokenLogprobs] = []
        self._probs: dict[int, tuple[bytes, bool]] = {}  # of each token its bytes, and whether it is hidden

    def sample(self, ctx: Any, row: int) -> int:
        token = self._inner.sample(ctx, row)
        self.dead_end = self._inner.dead_end
        if token >= 0:
            self._told.append(self._found(ctx, row, token))
        return token

    def _found(self, ctx: Any, row: int, token: int) -> TokenLogprobs:
        pointer = lib.llama_get_logits_ith(ctx, row)
        logits = np.ctypeslib.as_array(pointer, shape=(self._vocab.n_tokens,))
        log_sum, mine = log_of_sum(logits), logits[token]
        likeliest = tuple(self._prob(i, float(logits[i]) - log_sum) for i in likeliest_of(logits, self._n))
        rank = 1 + int(np.count_nonzero(logits > mine))
        return TokenLogprobs(self._prob(token, float(mine) - log_sum), likeliest, rank)

    def accept(self, tokens: Iterable[int]) -> None:
        self._inner.accept(tokens)

    def resume(self, tokens: Iterable[int]) -> None:
        self._inner.resume(tokens)

    def forced(self) -> list[int]:
        return self._inner.forced()

    def take_logprobs(self, n: int) -> tuple[TokenLogprobs, ...]:
        taken, self._told = self._told[:n], self._told[n:]
        return tuple(taken)

    def close(self) -> None:
        self._inner.close()

    def _prob(self, token: int, logprob: float) -> TokenProb:
        known = self._probs.get(token)
        if known is None:
            written = self._vocab.written(token)
            known = self._probs[token] = written, written != self._vocab.piece(token)
        return TokenProb(token, logprob, *known)


class SampledProbs(LogprobSampler):
    """Reports how likely tokens were after all samplers. Tokens that those removed are not among the likeliest."""

    def __init__(self, inner: Sampler, vocab: Vocab, n: int) -> None:
        super().__init__(inner, vocab, n)
        inner.watched = True

    def _found(self, ctx: Any, row: int, token: int) -> TokenLogprobs:  # noqa: ARG002 - `inner` has read the logits
        left = self._inner.left
        if self._inner.is_greedy:
            only = self._prob(token, 0.0)
            return TokenLogprobs(only, (only,), 1)
        mine = float(left["p"][left["id"] == token][0])
        left = left[left["p"] > 0]
        likeliest = left[np.argsort(-left["p"], kind="stable")[: self._n]]
        top = tuple(self._prob(int(one["id"]), math.log(one["p"])) for one in likeliest)
        return TokenLogprobs(
            self._prob(token, math.log(mine or _LEAST)), top, 1 + int(np.count_nonzero(left["p"] > mine))
        )


def log_of_sum(logits: np.ndarray[Any, np.dtype[np.float32]]) -> float:
    """The logarithm of the sum of exp(logit). Float32 is enough: numpy adds in pairs, so the error stays below 1e-6."""
    top = logits.max()
    powers = logits - top
    np.exp(powers, out=powers)
    return float(top) + float(np.log(powers.sum()))


def likeliest_of(logits: np.ndarray[Any, np.dtype[np.float32]], n: int) -> list[int]:
    """The `n` tokens with the largest logits, largest first; among equals the first."""
    if n <= 0:
        return []
    n_groups, least = len(logits) // _GROUP, -np.inf
    if n_groups >= n:
        largest = logits[: n_groups * _GROUP].reshape(_GROUP, n_groups).max(axis=0)
        least = np.partition(largest, -n)[-n]  # at least n groups have one as large
    found = np.flatnonzero(logits >= least)
    return [int(i) for i in found[np.argsort(-logits[found], kind="stable")[:n]]]


def with_logprobs(sampler: Sampler, vocab: Vocab, n_probs: int, *, sampled: bool = False) -> Sampler:
    """Wrap the sampler to report probabilities, unless `n_probs` (`Generate.n_probs`) is negative. `sampled`: those
    after sampling.
    """
    if n_probs < 0:
        return sampler
    return (SampledProbs if sampled else LogprobSampler)(sampler, vocab, n_probs)
