"""How likely tokens were: packed and back, in JSON, and by the characters of their text."""

import json
import zlib

import numpy as np
import pytest

from kvdesk.protocol.chat import TokenLogprobs, TokenProb
from kvdesk.protocol.logprobs import as_values, of_values, pack, places, text_with, unknown, unpack
from kvdesk.values import replace
from tests.protocol.logprobs import answer_logprobs, prob, told


def as_kept(one: TokenProb) -> TokenProb:
    return replace(one, logprob=float(np.float32(one.logprob)))


def test_what_is_packed_comes_back_and_is_small() -> None:
    rng = np.random.default_rng(1)
    probs = [TokenProb(int(i), float(-lp), f" w{i}".encode()) for i, lp in zip(*rng.random((2, 9)) * 1000, strict=True)]
    some = [TokenLogprobs(as_kept(probs[i % 9]), tuple(map(as_kept, probs[: i % 9])), rank=i + 1) for i in range(300)]
    packed = pack(some)
    assert unpack(packed) == tuple(some)
    assert len(packed) < 300 * 9 * 8, "beside ids and float32 there is little"


def test_tokens_of_which_nothing_is_known_stay_in_their_place() -> None:
    kept = [*unknown(3, "once upon"), *answer_logprobs(2)]
    back = unpack(pack(kept))
    assert [one.rank for one in back] == [0, 0, 0, 1, 2]
    assert pack(unknown(3, "once")) == pack([]) == b""
    assert unknown(0, "") == []


@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"x" + b, lambda _: zlib.compress(b"\xff" * 40)])
def test_what_is_damaged_is_nothing(damage: object) -> None:
    assert unpack(damage(pack(answer_logprobs(4)))) == ()  # type: ignore[operator]


def test_json_has_what_openai_has_and_loses_nothing() -> None:
    some = [*unknown(1, "\u00e9"), *answer_logprobs(2), *told(prob(5, 0.25, "<|im_end|>", hidden=True))]
    values = json.loads(json.dumps([as_values(one) for one in some], allow_nan=False))
    assert pack(list(map(of_values, values))) == pack(some)
    assert values[1]["token"] == " a"
    assert values[1]["bytes"] == [32, 97]
    assert values[0]["logprob"] is None
    assert values[3]["hidden"]


@pytest.mark.parametrize("values", [{}, {"rank": 1, "top_logprobs": [{}], "id": 1, "logprob": 0.0, "bytes": []}])
def test_other_json_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no probabilities"):
        of_values(values)


def test_each_token_has_the_characters_that_it_completes() -> None:
    sun = "\u2600".encode()
    tokens = told(prob(1, 0.5, "Hi"), prob(2, 0.5, sun[:1]), prob(3, 0.5, sun[1:]), prob(4, 0.5, "<e>", hidden=True))
    assert places(tokens, "Hi\u2600") == [(0, 2), (2, 2), (2, 3), (3, 3)]
    assert places([*unknown(2, "Hi "), *tokens], "Hi Hi\u2600")[1:3] == [(0, 3), (3, 5)]


def test_what_a_stop_string_cut_off_belongs_to_no_token() -> None:
    assert places(told(prob(1, 0.5, "One"), prob(2, 0.5, " STOP"), prob(3, 0.5, "!")), "One S") == [
        (0, 3),
        (3, 5),
        (5, 5),
    ]


def test_the_text_with_another_token() -> None:
    sun = "\u2600".encode()
    tokens = told(prob(1, 0.5, "Hi"), prob(2, 0.5, sun[:2]), prob(3, 0.5, sun[2:]), prob(4, 0.5, " you"))
    text = "Hi\u2600 you"
    assert text_with(tokens, text, 0, prob(9, 0.1, "Ho")) == "Ho"
    assert text_with(tokens, text, 2, prob(9, 0.1, b"\x81")) == "Hi\u2601"
    assert text_with(tokens, text, 3, prob(9, 0.1, " we")) == "Hi\u2600 we"
    assert text_with(tokens, text, 1, prob(9, 0.1, sun[:1])) == "Hi", "the character is not whole"
    assert text_with(tokens, text, 4, prob(9, 0.1, "<end>", hidden=True)) == text
