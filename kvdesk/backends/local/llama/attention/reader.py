"""Reads the attention weights of a decode while llama.cpp computes it, with a callback of a context made for that.

Owns the arithmetic of attention. Flash attention never stores weights. They are computed from the inputs of the fused
operation, so that scale, mask, windows, softcap, ALiBi, learned sinks, grouped heads and the rotation of quantized K
are the engine's own for any model (ggml-cpu/ops.cpp:8843). Without flash attention the engine's weights are read
(`kq_soft_max`, llama-graph.cpp:2722). Where an indexer chooses the cells that attention may look at, its choice is what
the mask leaves open (llama-graph.cpp:3075), or the rows that are picked out of K (models/glm5-next.cpp:971). All
`file:line` references are llama.cpp 0c1e57098.
"""

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.attention.tensor import (
    Tensor,
    ancestors,
    check_layout,
    integers,
    layer_of,
    numbers,
    operation,
    parameters,
    rows_of,
    source,
)
from kvdesk.backends.local.llama.binding import lib
from kvdesk.errors import EngineError
from kvdesk.library.ggml_types import TYPES
from kvdesk.translation import marked, tr

_FUSED, _SOFT_MAX, _PRODUCT, _SET_ROWS = "FLASH_ATTN_EXT", "SOFT_MAX", "MUL_MAT", "SET_ROWS"
_NAMED: Final = b"kq_soft_max"
_PICKED_OUT: Final = b"kq_soft_max_gathered"
_PICKED: Final = b"indexer_sel_idx"
"""The cells that are picked out of K before attention, by token."""
_PICKED_BEFORE: Final = marked("Which cells this attention looks at cannot be said: their K was picked out before.")

_Floats = NDArray[np.float32]


class HeadWeights(NamedTuple):
    """One layer. `weights`: shape (heads, tokens, cells up to n_kv); `sink`: shape (heads, tokens), the share of a
    learned sink. Both add up to 1 for each token, or to the number of tokens if these were summed.

    chosen  shape (tokens, cells): 1 for the cells that an indexer chose of those that the token may look at, else 0,
            added up like the weights; None if attention looks at all of them
    """

    weights: _Floats
    sink: _Floats
    chosen: _Floats | None = None


class AttentionReader:
    """`callback` is given to a context when it is made, and must outlive it. Outside of `reading` it declines
    everything. It never raises: the first error ends the reading, not the decode, and is raised afterwards.
    """

    def __init__(self) -> None:
        self.callback = lib.ggml_backend_sched_eval_callback(self._on_node)
        self._reading = self._sums = self._checked = False
        self._error: BaseException | None = None
        self._found: dict[int, HeadWeights] = {}
        self._picked: dict[int, NDArray[np.int32]] = {}  # by the tensor's address

    @contextmanager
    def reading(self, *, summed: bool) -> Iterator[dict[int, HeadWeights]]:
        """Read the weights of the decode in the block, by layer. `summed`: added up over its tokens, which become one.

        Raises EngineError if they could not be read.
        """
        self._found, self._picked, self._error, self._sums, self._reading = {}, {}, None, summed, True
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
            is_picked = tensor.name.startswith(_PICKED)
            if ask:
                return is_picked or kind == _FUSED or (kind == _SOFT_MAX and tensor.name.startswith(_NAMED))
            if is_picked:
                self._picked[address] = integers(tensor)
            elif kind == _FUSED:
                self._take(tensor, fused_weights(tensor))
            elif tensor.name.startswith(_PICKED_OUT):
                self._take(tensor, picked_weights(tensor, self._cells_of(tensor)))
            else:
                self._take(tensor, plain_weights(tensor))
        except BaseException as error:  # noqa: BLE001 - it must not propagate through C
            self._error, self._reading = error, False
            return not ask
        return True

    def _take(self, tensor: Any, found: HeadWeights) -> None:
        layer = layer_of(tensor)
        if layer < 0 or layer in self._found:
            raise EngineError(tr("It is unknown which layer computes an attention of this model."))
        if self._sums:
            weights, sink, chosen = found
            chosen = chosen.sum(axis=0, keepdims=True) if chosen is not None else None
            found = HeadWeights(weights.sum(axis=1, keepdims=True), sink.sum(axis=1, keepdims=True), chosen)
        self._found[layer] = found

    def _cells_of(self, tensor: Any) -> NDArray[np.int32]:
        """The cells whose K was picked out for this attention, shape (tokens, n)."""
        for one in ancestors(tensor):
            if (cells := self._picked.get(ctypes.addressof(one))) is not None:
                return cells.reshape(-1, int(tensor.ne[0]))  # perhaps a view of them in one row
        raise EngineError(tr(_PICKED_BEFORE))


def plain_weights(tensor: Any) -> HeadWeights:
    """The weights of a `kq_soft_max`, whose shape is (stream, heads, tokens, cells)."""
    weights = _one_stream(numbers(tensor))
    sink = np.maximum(0, 1 - weights.sum(axis=-1)) if source(tensor, 2) is not None else _none(weights)
    product, mask = source(tensor, 0), source(tensor, 1)
    while product is not None and operation(product.op) != _PRODUCT:
        product = source(product, 0)  # scaled, or with a softcap
    k = source(product, 0) if product is not None else None
    return _of_cells(weights, sink, k, mask)


def picked_weights(tensor: Any, cells: NDArray[np.int32]) -> HeadWeights:
    """The weights of a `kq_soft_max_gathered`, whose shape is (tokens, heads, 1, n): over `cells`, shape (tokens, n).
    Where less was chosen the mask closes the rest, whatever cells they name.
    """
    found = numbers(tensor)[:, :, 0].transpose(1, 0, 2)  # heads, tokens, n
    is_open = np.isfinite(numbers(source(tensor, 1)).reshape(cells.shape))
    n_heads, n_tokens, _ = found.shape
    n_cells = int(cells[is_open].max(initial=0)) + 1
    weights, chosen = np.zeros((n_heads, n_tokens, n_cells), np.float32), np.zeros((n_tokens, n_cells), np.float32)
    for token in range(n_tokens):
        which = is_open[token]
        weights[:, token, cells[token, which]] = found[:, token, which]
        chosen[token, cells[token, which]] = 1
    return HeadWeights(weights, _none(weights), chosen)


def fused_weights(tensor: Any) -> HeadWeights:
    """The weights of a flash attention, from its Q, K, mask and sinks."""
    inputs = [source(tensor, i) for i in range(5)]
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
    return _of_cells(weights, sink / total, inputs[1], inputs[3])


def _of_cells(weights: _Floats, sink: _Floats, k: Any, mask: Any) -> HeadWeights:
    """The weights over the rows of `k` by cell. Behind the cells there may be compressed keys (models/deepseek4.cpp),
    whose weights count as the sink's. Raises EngineError if the rows are not those of the cache.
    """
    n = rows_of(k, b"cache_k") if k is not None else 0
    if not n:
        raise EngineError(tr(_PICKED_BEFORE))
    if n < weights.shape[-1]:
        return HeadWeights(weights[..., :n], sink + weights[..., n:].sum(axis=-1))
    return HeadWeights(weights, sink, _chosen(mask, weights.shape[1]))


def _chosen(mask: Any, n_tokens: int) -> _Floats | None:
    """`HeadWeights.chosen`: what an indexer left open of a mask that was closed, and opened row by row."""
    if mask is None or not any(operation(one.op) == _SET_ROWS for one in ancestors(mask)):
        return None
    return np.isfinite(_one_stream(numbers(mask))[0, :n_tokens]).astype(np.float32)


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
        raise EngineError(tr("It is unknown whose attention this is: there are several streams."))
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
