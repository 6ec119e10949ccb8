"""The baselines of the engine's speed: a minimal loop over llama_decode, and llama-cpp-python's own `Llama`."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvdesk.backends.local.llama.binding import lib, llama_class
from kvdesk.backends.local.llama.model import Model
from kvdesk.errors import ContextError
from kvdesk.experiments.bare_context import BareContext
from kvdesk.settings import ContextSettings


class BareLoop(BareContext):
    """llama_decode and greedy sampling, with nothing around them. Raises ContextError where a batch is refused."""

    def __init__(self, model: Model, settings: ContextSettings, n_seq_max: int = 1, ctx: Any = None) -> None:
        super().__init__(model, settings.model_copy(update={"n_seq_max": n_seq_max, "kv_unified": True}), ctx=ctx)
        self._sampler: Any = lib.llama_sampler_init_greedy()

    def decode_tok_s(self, prompt: Sequence[int], n_tokens: int) -> float:
        """Prefill `prompt` in an empty cache, generate `n_tokens`; tokens per second of the generation."""
        _, seconds = self._answer(prompt, n_tokens)
        return (n_tokens - 1) / seconds

    def together_tok_s(self, prompts: Sequence[Sequence[int]], n_tokens: int) -> float:
        """Prefill each prompt as a separate sequence, then generate `n_tokens` of each, all in one batch a step;
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
                self.put(i, token, len(prompt) + step, i, logits=True)
            self._decode(len(tokens))
            tokens = [lib.llama_sampler_sample(self._sampler, self.ctx, i) for i in range(len(tokens))]
        return (n_tokens - 1) * len(prompts) / (time.perf_counter() - start)

    def seconds(self, prompt: Sequence[int], n_tokens: int) -> float:
        """The times of a whole request: prefill in an empty cache, then `n_tokens`."""
        return sum(self._answer(prompt, n_tokens))

    def read_ms(self, prompt: Sequence[int], n_chunk: int) -> list[float]:
        """ms of each chunk of `n_chunk` tokens in which `prompt` is read, as sequence 0 from its beginning on; the
        cells of other sequences stay.
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
        lib.llama_sampler_free(self._sampler)
        super().close()

    def _run(self, tokens: Sequence[int], position: int, sequence: int = 0) -> None:
        for start in range(0, len(tokens), self.n_batch):
            piece = tokens[start : start + self.n_batch]
            for i, token in enumerate(piece, start):
                self.put(i - start, token, position + i, sequence, logits=i == len(tokens) - 1)
            self._decode(len(piece))

    def _decode(self, n_tokens: int) -> None:
        if (rc := self.run(n_tokens)) != 0:
            raise ContextError(f"llama_decode returned {rc} in the bare loop, in a context of {self.n_ctx} cells.")


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
