"""The baselines of the engine's speed: a minimal loop over llama_decode, and llama-cpp-python's own `Llama`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvdesk.backends.local.llama.binding import free_context, lib, llama_class
from kvdesk.backends.local.llama.model import Model
from kvdesk.settings import ContextSettings


class BareLoop:
    """llama_decode and greedy sampling through ctypes with nothing around them: no mirror, no inspection, no Stop.

    ctx  a context that somebody else owns, in place of one made with `settings`; what it holds is lost
    """

    def __init__(self, model: Model, settings: ContextSettings, n_seq_max: int = 1, ctx: Any = None) -> None:
        self._owned = ctx is None
        self.ctx: Any = self._made(model, settings, n_seq_max) if ctx is None else ctx
        if not self._owned:
            lib.llama_set_n_threads(ctx, settings.decode_threads, settings.n_threads_batch)
        self._n_batch = int(lib.llama_n_batch(self.ctx))
        self._sampler: Any = lib.llama_sampler_init_greedy()
        self._batch = lib.llama_batch_init(self._n_batch, 0, 1)

    @staticmethod
    def _made(model: Model, settings: ContextSettings, n_seq_max: int) -> Any:
        os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"
        params = lib.llama_context_default_params()
        params.n_ctx = settings.n_ctx
        params.n_seq_max = n_seq_max
        params.kv_unified = True
        params.n_batch = settings.n_batch
        params.n_ubatch = settings.graph_tokens
        params.n_threads = settings.decode_threads
        params.n_threads_batch = settings.n_threads_batch
        flash = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED, lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.flash_attn_type = flash[0 if settings.flash_attn else 1]
        return lib.llama_init_from_model(model.handle, params)

    def decode_tok_s(self, prompt: Sequence[int], n_tokens: int) -> float:
        """Prefill `prompt` in an empty cache, generate `n_tokens`; tokens per second of the generation."""
        _, seconds = self._answer(prompt, n_tokens)
        return (n_tokens - 1) / seconds

    def together_tok_s(self, prompts: Sequence[Sequence[int]], n_tokens: int) -> float:
        """Prefill each prompt as a sequence of its own, then generate `n_tokens` of each, all in one batch a step;
        tokens per second of the generation. At most `n_seq_max` prompts.
        """
        self.clear()
        tokens = []
        for sequence, prompt in enumerate(prompts):
            self._run(prompt, 0, sequence)
            tokens.append(lib.llama_sampler_sample(self._sampler, self.ctx, -1))
        start = time.perf_counter()
        for step in range(n_tokens - 1):
            for i, (prompt, token) in enumerate(zip(prompts, tokens, strict=True)):
                self._put(i, token, len(prompt) + step, sequence=i, logits=True)
            self._decode(len(tokens))
            tokens = [lib.llama_sampler_sample(self._sampler, self.ctx, i) for i in range(len(tokens))]
        return (n_tokens - 1) * len(prompts) / (time.perf_counter() - start)

    def seconds(self, prompt: Sequence[int], n_tokens: int) -> float:
        """The times of a whole request: prefill in an empty cache, then `n_tokens`."""
        return sum(self._answer(prompt, n_tokens))

    def read_ms(self, prompt: Sequence[int], n_chunk: int) -> list[float]:
        """ms of each chunk of so many tokens that `prompt` is read in, as sequence 0 from its beginning on; what other
        sequences hold stays.
        """
        lib.llama_memory_seq_rm(lib.llama_get_memory(self.ctx), 0, -1, -1)
        times = []
        for position in range(0, len(prompt), n_chunk):
            start = time.perf_counter()
            self._run(prompt[position : position + n_chunk], position)
            lib.llama_synchronize(self.ctx)
            times.append((time.perf_counter() - start) * 1e3)
        return times

    def hold(self, prompt: Sequence[int], sequence: int) -> None:
        """Prefill `prompt` as this sequence, and keep it."""
        self._run(prompt, 0, sequence)
        lib.llama_synchronize(self.ctx)

    def _answer(self, prompt: Sequence[int], n_tokens: int) -> tuple[float, float]:
        """Seconds until the first token, and from the first to the last."""
        self.clear()
        start = time.perf_counter()
        self._run(prompt, 0)
        token = lib.llama_sampler_sample(self._sampler, self.ctx, -1)
        first = time.perf_counter()
        for position in range(len(prompt), len(prompt) + n_tokens - 1):
            self._run((token,), position)
            token = lib.llama_sampler_sample(self._sampler, self.ctx, -1)
        return first - start, time.perf_counter() - first

    def close(self) -> None:
        lib.llama_batch_free(self._batch)
        lib.llama_sampler_free(self._sampler)
        if self._owned:
            free_context(self.ctx)

    def clear(self) -> None:
        """Leave the cache as it is in a new context."""
        lib.llama_memory_clear(lib.llama_get_memory(self.ctx), False)

    def _run(self, tokens: Sequence[int], position: int, sequence: int = 0) -> None:
        for start in range(0, len(tokens), self._n_batch):
            piece = tokens[start : start + self._n_batch]
            for i, token in enumerate(piece, start):
                self._put(i - start, token, position + i, sequence=sequence, logits=i == len(tokens) - 1)
            self._decode(len(piece))

    def _put(self, i: int, token: int, position: int, *, sequence: int, logits: bool) -> None:
        batch = self._batch
        batch.token[i] = token
        batch.pos[i] = position
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = sequence
        batch.logits[i] = logits

    def _decode(self, n_tokens: int) -> None:
        self._batch.n_tokens = n_tokens
        if lib.llama_decode(self.ctx, self._batch) != 0:
            raise RuntimeError("llama_decode failed in the bare loop")


def made_llama(path: Path, settings: ContextSettings) -> Any:
    """A `llama_cpp.Llama` with kvdesk's settings where it has them."""
    os.environ["LLAMA_KV_CACHE_DEBUG"] = "0"
    return llama_class()(
        model_path=str(path),
        n_ctx=settings.n_ctx,
        n_batch=settings.n_batch,
        n_ubatch=settings.graph_tokens,
        n_threads=settings.decode_threads,
        n_threads_batch=settings.n_threads_batch,
        flash_attn=settings.flash_attn,
        verbose=False,
    )


class LlamaClass:
    """`llama_cpp.Llama` at the same settings, greedy."""

    def __init__(self, path: Path, settings: ContextSettings) -> None:
        self._llama = made_llama(path, settings)

    def decode_tok_s(self, prompt: Sequence[int], n_tokens: int) -> float:
        """As `BareLoop.decode_tok_s`."""
        self._llama.reset()
        stream = self._llama.generate(list(prompt), temp=0.0, reset=False)
        next(stream)
        start = time.perf_counter()
        for _ in range(n_tokens - 1):
            next(stream)
        return (n_tokens - 1) / (time.perf_counter() - start)

    def close(self) -> None:
        self._llama.close()
