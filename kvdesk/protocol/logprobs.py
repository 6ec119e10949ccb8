"""How likely the tokens of an answer were: packed as they are kept, as JSON, and by the characters of its text."""

from __future__ import annotations

import math
import struct
import sys
import zlib
from array import array
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from kvdesk.message import Message
from kvdesk.protocol.chat import TokenLogprobs, TokenProb

N_KEPT: Final = 8
"""Likeliest tokens that are kept beside each token of an answer."""
_HEAD: Final = struct.Struct("<III")  # tokens, alternatives of each, different tokens
_TOKEN: Final = struct.Struct("<iBH")  # id, whether it is hidden, bytes
_MOST_BYTES: Final = 1 << 28  # unpacked: 3 million tokens
_UTF8: Final = getincrementaldecoder("utf-8")


def unknown(n_tokens: int, text: str) -> list[TokenLogprobs]:
    """Of that many tokens, which are `text` together, nobody kept how likely they were: their ranks are 0."""
    none = TokenLogprobs(TokenProb(-1, math.nan, b""))
    last = TokenLogprobs(TokenProb(-1, math.nan, text.encode("utf-8", "replace")))
    return [*([none] * (n_tokens - 1)), last] if n_tokens else []


def pack(tokens: Sequence[TokenLogprobs]) -> bytes:
    """About 80 bytes a token; probabilities as float32. b"" if nothing of any token is known."""
    if not any(one.rank for one in tokens):
        return b""
    n_top = max(len(one.top) for one in tokens)
    known: dict[tuple[int, bool, bytes], int] = {}
    numbers, logprobs = array("i"), array("f")
    for one in tokens:
        row = (one.chosen, *one.top)
        numbers.extend(known.setdefault((p.token, p.hidden, p.piece[:0xFFFF]), len(known)) for p in row)
        logprobs.extend(p.logprob for p in row)
        n_missing = n_top - len(one.top)
        numbers.extend([-1] * n_missing)
        logprobs.extend([0.0] * n_missing)
    ranks = array("i", [one.rank for one in tokens])
    parts = [_HEAD.pack(len(tokens), n_top, len(known))]
    parts += [_TOKEN.pack(token, hidden, len(piece)) + piece for token, hidden, piece in known]
    parts += [_little(column).tobytes() for column in (numbers, logprobs, ranks)]
    return zlib.compress(b"".join(parts))


@lru_cache(maxsize=16)  # of the answers that are in sight
def unpack(packed: bytes) -> tuple[TokenLogprobs, ...]:
    """() for b"", and for bytes that are damaged: they are only shown."""
    if not packed:
        return ()
    try:
        return _unpack(packed)
    except (ValueError, IndexError, struct.error, zlib.error):
        return ()


def _unpack(packed: bytes) -> tuple[TokenLogprobs, ...]:
    reader = zlib.decompressobj()
    data = reader.decompress(packed, _MOST_BYTES)
    if not reader.eof:
        raise ValueError("not whole, or far too long")
    n, n_top, n_known = _HEAD.unpack_from(data)
    at = _HEAD.size
    known: list[tuple[int, bytes, bool]] = []
    for _ in range(n_known):
        token, hidden, length = _TOKEN.unpack_from(data, at)
        at += _TOKEN.size
        known.append((token, data[at : at + length], bool(hidden)))
        at += length
    width = 1 + n_top
    if len(data) != at + 4 * n * (2 * width + 1):
        raise ValueError("not as long as it says")
    numbers, logprobs, ranks = array("i"), array("f"), array("i")
    for column, length in ((numbers, n * width), (logprobs, n * width), (ranks, n)):
        column.frombytes(data[at : at + 4 * length])
        _little(column)
        at += 4 * length
    found = []
    for start, rank in zip(range(0, n * width, width), ranks, strict=True):
        row = range(start, start + width)
        probs = tuple(TokenProb(known[i][0], logprobs[at], *known[i][1:]) for at in row if (i := numbers[at]) >= 0)
        found.append(TokenLogprobs(probs[0], probs[1:], rank))
    return tuple(found)


def _little(column: array[Any]) -> array[Any]:
    """Little-endian on every machine, and back."""
    if column.itemsize != 4:
        raise ValueError("this machine has other numbers")
    if sys.byteorder == "big":
        column.byteswap()
    return column


def alternatives(answer: Message, at: int) -> tuple[TokenProb, ...]:
    """The likeliest tokens in the place of token `at` of an answer, without the one that is there; () if that was
    not kept.
    """
    known = unpack(answer.probabilities)
    if not 0 <= at < len(known):
        return ()
    return tuple(one for one in known[at].top if one.token != known[at].chosen.token)


# --- JSON -------------------------------------------------------------------------------------------------------------


def prob_values(prob: TokenProb) -> dict[str, Any]:
    """As OpenAI's completions have a token, with its id."""
    text = prob.piece.decode("utf-8", "replace")
    return {"token": text, "logprob": prob.logprob, "bytes": list(prob.piece), "id": prob.token}


def as_values(one: TokenLogprobs) -> dict[str, Any]:
    """For JSON: as in `choices[].logprobs.content` of OpenAI's chat completions, with id and rank. `logprob` is null
    and the rank 0 if they were not kept.
    """
    chosen, *top = map(_with_hidden, (one.chosen, *one.top))
    if not one.rank:
        chosen["logprob"] = None
    return {**chosen, "rank": one.rank, "top_logprobs": top}


def of_values(values: Mapping[str, Any]) -> TokenLogprobs:
    """What `as_values` was given. Raises ValueError."""
    try:
        rank = int(values["rank"])
        if not 0 <= rank < 1 << 31:
            raise ValueError("no probabilities of a token: not a rank")
        return TokenLogprobs(_prob_of(values), tuple(map(_prob_of, values["top_logprobs"])), rank)
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError("no probabilities of a token") from error


def _with_hidden(prob: TokenProb) -> dict[str, Any]:
    return {**prob_values(prob), **({"hidden": True} if prob.hidden else {})}


def _prob_of(values: Mapping[str, Any]) -> TokenProb:
    token, logprob = int(values["id"]), values["logprob"]
    if not -1 <= token < 1 << 31:
        raise ValueError("not a token")
    return TokenProb(
        token, math.nan if logprob is None else float(logprob), bytes([*values["bytes"]]), bool(values.get("hidden"))
    )


# --- the text of an answer --------------------------------------------------------------------------------------------


def places(tokens: Sequence[TokenLogprobs], text: str) -> list[tuple[int, int]]:
    """Characters `[first, last)` of an answer's text that each token completes; of one that completes none both are
    where the next begins.
    """
    return [(first, last) for first, last, _ in _walk(tokens, text)]


def text_with(tokens: Sequence[TokenLogprobs], text: str, at: int, other: TokenProb) -> str:
    """The text of an answer up to token `at`, in whose place is `other`. The end of a character may be missing."""
    _, end, pending = _walk(tokens[:at], text)[-1] if at else (0, 0, b"")
    return text[:end] + ("" if other.hidden else _UTF8("replace").decode(pending + other.piece))


def _walk(tokens: Sequence[TokenLogprobs], text: str) -> list[tuple[int, int, bytes]]:
    """The same with the bytes after each that are not a character yet. What a stop string cut off completes nothing."""
    decoder, at, found = _UTF8("replace"), 0, []
    for one in tokens:
        first = at
        new = "" if one.chosen.hidden else decoder.decode(one.chosen.piece)
        if text.startswith(new, at):
            at += len(new)
        else:
            at += next((i for i, (a, b) in enumerate(zip(new, text[at:], strict=False)) if a != b), len(text) - at)
        found.append((first, at, decoder.getstate()[0]))
    return found
