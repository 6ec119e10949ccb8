"""Reads the attention weights of a decode while llama.cpp computes it, with a callback of a context made for that.

Owns the arithmetic of attention. Flash attention never stores weights. They are computed from the inputs of the fused
operation, so that scale, mask, windows, softcap, ALiBi, learned sinks, grouped heads and the rotation of quantized K
are the engine's own for any model (ggml-cpu/ops.cpp:8843). Without flash attention the engine's weights are read
(`kq_soft_max`, llama-graph.cpp:2722). All `file:line` references are llama.cpp 0c1e57098.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.tensor import (
    Tensor,
    check_layout,
    is_view_of,
    layer_of,
    numbers,
    operation,
    parameters,
    source,
)
from kvdesk.errors import EngineError
from kvdesk.library.ggml_types import TYPES
from kvdesk.translation import tr

_FUSED, _SOFT_MAX = "FLASH_ATTN_EXT", "SOFT_MAX"
_NAMED: Final = b"kq_soft_max"

_Floats = NDArray[np.float32]


class HeadWeights(NamedTuple):
    """One layer. `weights`: shape (heads, tokens, cells up to n_kv); `sink`: shape (heads, tokens), the share of a
    learned sink. Both add up to 1 for each token, or to the number of tokens if these were summed.
    """

    weights: _Floats
    sink: _Floats


class AttentionReader:
    """`callback` is given to a context when it is made, and must outlive it. Outside of `reading` it declines
    everything. It never raises: the first error ends the reading, not the decode, and is raised afterwards.
    """

    def __init__(self) -> None:
        self.callback = lib.ggml_backend_sched_eval_callback(self._on_node)
        self._reading = self._sums = self._checked = False
        self._error: BaseException | None = None
        self._found: dict[int, HeadWeights] = {}

    @contextmanager
    def reading(self, *, summed: bool) -> Iterator[dict[int, HeadWeights]]:
        """Read the weights of the decode in the block, by layer. `summed`: added up over its tokens, which become one.

        Raises EngineError if they could not be read.
        """
        self._found, self._error, self._sums, self._reading = {}, None, summed, True
        found = self._found
        try:
            yield found
        finally:
            self._reading = False
        if self._error is not None:
            error = self._error
            if isinstance(error, EngineError):
                raise error
            raise EngineError(tr("The attention of this model could not be read."), repr(error)) from error
        if not found:
            raise EngineError(tr("This model computes no attention that could be read."))

    def _on_node(self, address: int, ask: bool, _data: object) -> bool:
        """ggml asks this before it computes a node, and calls it again afterwards if the answer was yes. Returning
        False to the second call would end the decode.
        """
        if not self._reading:
            return not ask
        try:
            if not self._checked:
                check_layout(address)
                self._checked = True
            tensor = Tensor.from_address(address)
            kind = operation(tensor.op)
            wanted = kind == _FUSED or (kind == _SOFT_MAX and tensor.name.startswith(_NAMED))
            if ask:
                return wanted
            self._take(tensor, fused_weights(tensor) if kind == _FUSED else plain_weights(tensor))
        except BaseException as error:  # noqa: BLE001 - it must not propagate through C
            self._error, self._reading = error, False
            return not ask
        return True

    def _take(self, tensor: Any, found: HeadWeights) -> None:
        layer = layer_of(tensor)
        if layer < 0 or layer in self._found:
            raise EngineError(tr("It cannot be told which layer computes an attention of this model."))
        if self._sums:
            found = HeadWeights(found.weights.sum(axis=1, keepdims=True), found.sink.sum(axis=1, keepdims=True))
        self._found[layer] = found


def plain_weights(tensor: Any) -> HeadWeights:
    """The weights of a `kq_soft_max`, whose shape is (stream, heads, tokens, cells)."""
    weights = _one_stream(numbers(tensor))
    sink = np.maximum(0, 1 - weights.sum(axis=-1)) if source(tensor, 2) is not None else _none(weights)
    return HeadWeights(weights, sink)


def fused_weights(tensor: Any) -> HeadWeights:
    """The weights of a flash attention, from its Q, K, mask and sinks."""
    inputs = [source(tensor, i) for i in range(5)]
    if not is_view_of(inputs[1], b"cache_k"):
        raise EngineError(tr("Which cells this attention looks at cannot be said: their K was picked out before."))
    q, k = (_one_stream(numbers(inputs[i])) for i in (0, 1))  # heads, tokens, numbers; heads of K, cells, numbers
    q = _multiplied(q, inputs[1].type)
    scale, max_bias, softcap = parameters(tensor, 3)
    n_heads, n_tokens, _ = q.shape
    n_heads_k, n_cells, _ = k.shape
    scores = _products(q.reshape(n_heads_k, -1, q.shape[2]), k).reshape(n_heads, n_tokens, n_cells)
    if softcap:
        scores = np.float32(softcap) * np.tanh(scores * np.float32(scale / softcap))
    else:
        scores *= np.float32(scale)
    if inputs[3] is not None:
        mask = _one_stream(numbers(inputs[3]))[:, :n_tokens]  # one for all heads, or one per head; rows may be padded
        scores = scores + mask * _slopes(n_heads, max_bias)[:, None, None]
    learned = numbers(inputs[4]).reshape(-1, 1)[:n_heads] if inputs[4] is not None else None
    most = scores.max(axis=-1)
    if learned is not None:
        most = np.maximum(most, learned)
    weights = np.exp(scores - most[..., None])
    sink = np.exp(learned - most) if learned is not None else _none(weights)
    total = weights.sum(axis=-1) + sink
    weights /= total[..., None]
    return HeadWeights(weights, sink / total)


def _products(q: _Floats, k: _Floats) -> _Floats:
    """Products of each row of Q with each of K, by head. A few rows avoid BLAS, whose threads wait for one another
    longer than the sums take: beside a busy process, 16 ms instead of 1 for 12 heads over 600 cells.
    """
    if q.shape[1] < 16:
        return np.asarray(np.einsum("hqd,hcd->hqc", q, k))
    return np.asarray(q @ k.transpose(0, 2, 1))


def _multiplied(q: _Floats, type_k: int) -> _Floats:
    """Q as ggml multiplies it with K of this type: rounded to the type of K, or for quantized K to 8 bits with one
    scale per 32 numbers (ggml-cpu.c:215, `vec_dot_type`; quants.c, `quantize_row_q8_0`).
    """
    if TYPES[type_k].name == "f16":
        return q.astype(np.float16).astype(np.float32)
    if TYPES[type_k].name == "bf16":
        bits = np.ascontiguousarray(q).view(np.uint32)
        return np.asarray(((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32))
    if TYPES[type_k].block == 1:
        return q
    blocks = q.reshape(*q.shape[:-1], -1, TYPES[type_k].block)
    step = np.abs(blocks).max(axis=-1, keepdims=True) / 127
    codes = np.rint(blocks / np.where(step, step, 1))
    return np.asarray(codes * step.astype(np.float16).astype(np.float32), np.float32).reshape(q.shape)


def _one_stream(found: _Floats) -> _Floats:
    """Remove the dimension of streams. Raises EngineError if there are several."""
    if len(found) != 1:
        raise EngineError(tr("It cannot be told whose attention this is: there are several streams."))
    return np.asarray(found[0])


def _none(weights: _Floats) -> _Floats:
    return np.zeros(weights.shape[:2], np.float32)


def _slopes(n_heads: int, max_bias: float) -> _Floats:
    """ALiBi's slope for each head: how much less each further position weighs (ggml-cpu/ops.cpp:8905)."""
    if max_bias <= 0:
        return np.ones(n_heads, np.float32)
    n_low = 1 << int(math.log2(n_heads))
    low, high = 2.0 ** (-max_bias / n_low), 2.0 ** (-max_bias / 2 / n_low)
    slopes = [low ** (h + 1) if h < n_low else high ** (2 * (h - n_low) + 1) for h in range(n_heads)]
    return np.array(slopes, np.float32)
