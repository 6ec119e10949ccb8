"""Probabilities of tokens, as completions and chat completions have them."""

import math
from collections.abc import Sequence
from typing import Any

from kvdesk.protocol.chat import TokenLogprobs, TokenProb
from kvdesk.protocol.logprobs import prob_values


def chat_logprobs(logprobs: Sequence[TokenLogprobs]) -> dict[str, Any]:
    """As chat completions have them."""
    return {
        "content": [
            {**prob_values(one.chosen), "top_logprobs": [prob_values(other) for other in one.top]} for one in logprobs
        ],
        "refusal": None,
    }


def sampled_probs(logprobs: Sequence[TokenLogprobs]) -> list[dict[str, Any]]:
    """After sampling, as llama-server has them (server-task.cpp, `probs_vector_to_json`)."""
    return [{**_sampled(one.chosen), "top_probs": [_sampled(other) for other in one.top]} for one in logprobs]


def _sampled(prob: TokenProb) -> dict[str, Any]:
    values = prob_values(prob)
    prob_value = min(1.0, math.exp(values.pop("logprob")))
    return {**values, "prob": prob_value}


def text_logprobs(logprobs: Sequence[TokenLogprobs], offset: int) -> dict[str, Any]:
    """As completions have them. `offset`: characters of the text before the first of them."""
    texts = [one.chosen.piece.decode("utf-8", "replace") for one in logprobs]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [one.chosen.logprob for one in logprobs],
        "top_logprobs": [{p.piece.decode("utf-8", "replace"): p.logprob for p in one.top} for one in logprobs],
        "text_offset": offsets,
    }
