"""Probabilities as an engine tells them, for tests."""

from collections.abc import Sequence
from math import log

import numpy as np

from kvdesk.protocol.chat import TokenLogprobs, TokenProb


def prob(token: int, p: float, piece: str | bytes = "", *, hidden: bool = False) -> TokenProb:
    """With its logarithm as float32 has it."""
    return TokenProb(token, float(np.float32(log(p))), piece.encode() if isinstance(piece, str) else piece, hidden)


def told(*chosen: TokenProb, n_top: int = 2) -> list[TokenLogprobs]:
    """Each of these was chosen; ids of the others follow."""
    return [
        TokenLogprobs(one, tuple(prob(one.token + 1 + i, 0.1, f" other{i}") for i in range(n_top)), rank=1 + i)
        for i, one in enumerate(chosen)
    ]


def answer_logprobs(n: int, texts: Sequence[str] = (" a", "b\u00e9", " c")) -> tuple[TokenLogprobs, ...]:
    """Of `n` tokens."""
    return tuple(told(*(prob(10 * i, 2.0 ** -(i % 4), texts[i % len(texts)]) for i in range(n))))
