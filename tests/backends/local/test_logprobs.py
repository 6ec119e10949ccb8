"""Probabilities that are told with an answer are a softmax over all logits."""

from typing import Any

import numpy as np
import pytest

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.samplers.logprob_sampler import LogprobSampler, likeliest_of, log_of_sum
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import new_message_id
from kvdesk.protocol.chat import Generate, TextDelta, TokenLogprobs
from kvdesk.settings import Sampling
from tests.backends.local.test_turns import of

N = 6


def asked(chat: HeadlessChat, n_probs: int, sampling: Sampling) -> Generate:
    return Generate(chat.id, new_message_id(), tuple(chat.messages), sampling, n_probs=n_probs)


def told(headless: HeadlessEngine, sampling: Sampling, n_probs: int = N) -> tuple[list[int], list[TokenLogprobs]]:
    chat = HeadlessChat(headless)
    chat.add_question("Name three colours of the sea.")
    deltas = of(headless.do(asked(chat, n_probs, sampling)), TextDelta)
    return [t for d in deltas for t in d.tokens], [one for d in deltas for one in d.logprobs]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_they_are_the_softmax_of_all_logits(
    headless: HeadlessEngine, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocab = session_of(headless).loaded.model.vocab
    wanted: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    sample = LogprobSampler.sample

    def seen(self: LogprobSampler, ctx: Any, row: int) -> int:
        pointer = lib.llama_get_logits_ith(ctx, row)
        powers = np.exp(np.ctypeslib.as_array(pointer, shape=(vocab.n_tokens,)).astype(np.float64))
        wanted.append(powers / powers.sum())
        return sample(self, ctx, row)

    monkeypatch.setattr(LogprobSampler, "sample", seen)
    sampling = Sampling(temperature=temperature, top_k=0, seed=7, max_tokens=24)
    tokens, found = told(headless, sampling)
    assert len(tokens) == len(found) > 8
    for token, one, p in zip(tokens, found, wanted, strict=False):
        assert one.chosen.token == token
        assert abs(np.exp(one.chosen.logprob) - p[token]) < 1e-5
        assert one.rank == 1 + int((p > p[token]).sum())
        assert len({other.token for other in one.top}) == N
        assert [np.exp(o.logprob) for o in one.top] == pytest.approx(np.sort(p)[: -N - 1 : -1], abs=1e-5)
        assert all(abs(np.exp(other.logprob) - p[other.token]) < 1e-5 for other in one.top)
        assert all(other.piece == vocab.written(other.token) for other in one.top)
        assert all(other.hidden == (vocab.piece(other.token) != other.piece) for other in one.top)
    if temperature:
        assert max(one.rank for one in found) > 1, "it was to choose others than the likeliest"


def test_what_is_asked_for_changes_no_token(headless: HeadlessEngine) -> None:
    sampling = Sampling(temperature=0.8, seed=11, max_tokens=16)
    plain, none = told(headless, sampling, n_probs=-1)
    tokens, found = told(headless, sampling)
    assert (tokens, none) == (plain, [])
    assert len(found) == len(tokens)


@pytest.mark.parametrize("n_vocab", [5, 128, 1000, 151_936])
@pytest.mark.parametrize("n", [0, 1, 8])
def test_the_likeliest_are_found_in_order(n_vocab: int, n: int) -> None:
    rng = np.random.default_rng(n_vocab + n)
    logits = (rng.integers(-40, 40, n_vocab) / 2).astype(np.float32)  # many are equal
    n = min(n, n_vocab)
    assert likeliest_of(logits, n) == np.argsort(-logits, kind="stable")[:n].tolist()


def test_no_probability_is_lost_where_logits_are_large() -> None:
    logits = np.array([3e4, 3e4 - 1, -3e4], np.float32)
    assert float(logits[0]) - log_of_sum(logits) == pytest.approx(-np.log(1 + np.exp(-1)), abs=1e-6)
