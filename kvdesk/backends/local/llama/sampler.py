"""llama.cpp's own sampler chain, built from `Sampling`. Sampling runs on the C side; no logit is copied to Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvdesk.backends.local.llama.binding import lib
from kvdesk.settings import Sampling


class Sampler:
    """One chain for one answer, in llama.cpp's order: penalties, top-k, top-p, min-p, temperature, dist.

    At temperature 0 the chain is penalties and greedy. Close it, or the C side leaks.
    """

    def __init__(self, sampling: Sampling, n_vocab: int) -> None:
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        self._chain: Any = lib.llama_sampler_chain_init(params)
        for part in self._parts(sampling, n_vocab):
            lib.llama_sampler_chain_add(self._chain, part)

    def sample(self, ctx: Any, row: int) -> int:
        """Sample from the logits of batch entry `row` (-1: the last) and remember the token for the penalties.

        Aborts the process where there are no logits at `row` (llama-sampler.cpp:940): only
        `Context.sample`, which knows what was decoded, calls this.
        """
        return int(lib.llama_sampler_sample(self._chain, ctx, row))

    def accept(self, tokens: Iterable[int]) -> None:
        """Show the chain tokens it did not sample: the end of the prompt, for the repeat penalty."""
        for token in tokens:
            lib.llama_sampler_accept(self._chain, token)

    def close(self) -> None:
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    @staticmethod
    def _parts(s: Sampling, n_vocab: int) -> list[Any]:
        parts: list[Any] = []
        if s.repeat_penalty != 1.0 and s.repeat_last_n:
            parts.append(lib.llama_sampler_init_penalties(n_vocab, s.repeat_last_n, s.repeat_penalty, 0.0, 0.0))
        if s.temperature <= 0.0:
            return [*parts, lib.llama_sampler_init_greedy()]
        if s.top_k > 0:
            parts.append(lib.llama_sampler_init_top_k(s.top_k))
        if s.top_p < 1.0:
            parts.append(lib.llama_sampler_init_top_p(s.top_p, 1))
        if s.min_p > 0.0:
            parts.append(lib.llama_sampler_init_min_p(s.min_p, 1))
        return [*parts, lib.llama_sampler_init_temp(s.temperature), lib.llama_sampler_init_dist(s.seed)]
