"""Greedy answers to prompts of token ids through the cache: for experiments on models that need not have any text.

Owns the loop over `llama_decode`; what is in the cache is the cache's.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.batch import Batch
from kvdesk.errors import DecodeError
from kvdesk.message import ConversationId

Logits = NDArray[np.float32]


class Answer(NamedTuple):
    """n_reused: tokens that were there already; the likeliest tokens, one after another; logits of shape (n_vocab,)
    from which the first one came.
    """

    n_reused: int
    tokens: list[int]
    logits: Logits


class ByIds:
    """Conversations of token ids, by name, in the cache of one context."""

    def __init__(self, context: Context, cache_manager: Cache) -> None:
        self.context = context
        self.cache_manager = cache_manager

    def lease(self, name: str) -> CacheSequence:
        """The conversation's sequence. Raises PromptError when there is none."""
        return self.cache_manager.lease(ConversationId(name))

    def read(self, name: str, prompt: list[int], marks: Sequence[int] = ()) -> int:
        """Have the whole prompt in the cache; returns how many tokens were there. Changes the cache.

        `marks`: where somebody may go back to, as the beginning of the last message is in a chat.

        The last token has just been decoded: its logits are the context's. Raises DecodeError.
        """
        sequence = self.lease(name)
        reused = self.cache_manager.acquire_prefix(sequence, prompt).n_tokens
        pauses = self.cache_manager.pauses(sequence, prompt, marks)
        while (start := len(sequence.tokens)) < len(prompt):
            end = min([start + self.context.n_batch, *(at for at in pauses if at > start)])
            self.decode([(name, prompt[start:end])])
            if end in pauses:
                self.cache_manager.swapper.checkpoint(sequence)
        return reused

    def answer(self, name: str, prompt: list[int], n_tokens: int, marks: Sequence[int] = ()) -> Answer:
        """The greedy answer of `n_tokens`, of which the last is not in the cache. Changes the cache."""
        reused = self.read(name, prompt, marks)
        logits = self.context.logits()
        tokens = [int(logits.argmax())]
        while len(tokens) < n_tokens:
            self.decode([(name, tokens[-1:])])
            tokens.append(int(self.context.logits().argmax()))
        return Answer(reused, tokens, logits)

    def decode(self, parts: Sequence[tuple[str, list[int]]]) -> list[Logits]:
        """One batch: these tokens behind what each conversation holds. Logits after the last token of each.

        Changes the cache. Raises DecodeError.
        """
        leased = [(self.lease(name), more) for name, more in parts]
        batches = [(s, Batch.of(s.seq_id, len(s.tokens), more, "last")) for s, more in leased]
        decoded = self.cache_manager.decode(batches)
        if decoded.rc != 0:
            n = decoded.batch.n_tokens
            raise DecodeError(decoded.rc, f"A batch of {n} tokens was not decoded (code {decoded.rc}).")
        ends = accumulate(len(more) for _, more in parts)
        return [self.context.logits(end - 1) for end in ends]
