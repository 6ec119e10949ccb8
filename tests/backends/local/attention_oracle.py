"""Attention weights by other means: from K as the live cache has it, cell by cell, and Q of the second context."""

from typing import Any, NamedTuple

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.llama.attention import reader as attention_reader
from kvdesk.backends.local.llama.attention.tensor import layer_of, numbers, parameters, source
from kvdesk.cache.state.blob import Section, parse_state
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.library.ggml_types import TYPES
from kvdesk.library.hyper import read_hyper
from kvdesk.protocol.attention import Attend, Attended, Queries

Floats = NDArray[np.float32]


class Fused(NamedTuple):
    """What a flash attention was given and made. `out` and `v`: heads, tokens or cells, numbers. `q`: as ggml rounds it
    before it multiplies it with K.
    """

    q: Floats
    v: Floats
    out: Floats
    scale: float
    softcap: float
    weights: Floats


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Fused]]:
    """Every flash attention that is read from now on, with its layer."""
    found: list[tuple[int, Fused]] = []
    original = attention_reader.fused_weights

    def record(tensor: Any) -> attention_reader.HeadWeights:
        weights = original(tensor)
        scale, _, softcap = parameters(tensor, 3)
        q = _rounded(numbers(source(tensor, 0))[0], TYPES[source(tensor, 1).type].name)
        v = numbers(source(tensor, 2))[0]
        out = numbers(tensor)[0].transpose(1, 0, 2)
        found.append((layer_of(tensor), Fused(q, v, out, scale, softcap, weights.weights)))
        return weights

    monkeypatch.setattr(attention_reader, "fused_weights", record)
    return found


def _rounded(q: Floats, type_k: str) -> Floats:
    kind = {"f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16}.get(
        type_k, gguf.GGMLQuantizationType.Q8_0
    )
    rows = q.reshape(-1, q.shape[-1])
    return np.asarray(gguf.dequantize(gguf.quantize(rows, kind), kind), np.float32).reshape(q.shape)


def attended(headless: HeadlessEngine, queries: Queries) -> Attended:
    """The answer to `Attend`."""
    (found,) = (event for event in headless.do(Attend(queries)) if isinstance(event, Attended))
    return found


def live_keys(headless: HeadlessEngine) -> list[dict[int, Floats]]:
    """For each layer with attention the K row of every used live cell of stream and cell number 1000 * stream + cell,
    as it is stored: rotated where it is.
    """
    session = session_of(headless)
    context, hyper = session.runtime.context, read_hyper(session.loaded.header)
    blob = context.states.get()
    state = parse_state(blob, context.traits.geometry)
    maps = session.runtime.cache_manager.snapshot().maps
    kept = [i for i, layer in enumerate(hyper.layers) if layer.k_width]
    rows: dict[int, dict[int, Floats]] = {i: {} for i in kept}
    for number, (streams, cache) in enumerate(zip(state.caches, maps, strict=True)):
        layers = [i for i in kept if len(maps) == 1 or hyper.layers[i].has_window == bool(number)]
        for s, (stored, cells) in enumerate(zip(streams, cache.streams, strict=True)):
            used = np.flatnonzero(cells.pos >= 0)
            keys = [section for section in stored.sections if section.kind == "k"]
            for layer, section in zip(layers, keys, strict=bool(keys)):
                rows[layer] |= {1000 * s + int(c): k for c, k in zip(used, _rows(blob, section), strict=True)}
    return [rows[i] for i in kept]


def _rows(blob: memoryview, section: Section) -> Floats:
    data = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset).reshape(-1, section.row_bytes)
    kind = gguf.GGMLQuantizationType[TYPES[section.ggml_type].name.upper()]
    return np.asarray(gguf.dequantize(data, kind), np.float32)


def from_live_cells(headless: HeadlessEngine, found: Attended, fused: list[tuple[int, Fused]]) -> list[Floats]:
    """The weights of the only token of `found`, by layer: softmax over Q and the K of the live cells that the columns
    are said to be, masked by position. ALiBi and learned sinks are not known here.
    """
    (p,) = found.pos.tolist()
    session = session_of(headless)
    hyper, maps = read_hyper(session.loaded.header), session.runtime.cache_manager.snapshot().maps
    expected = []
    for keys, (layer, one), read in zip(live_keys(headless), fused, found.layers, strict=True):
        assert layer == read.layer
        cells = found.columns.cells[read.cache]
        window = hyper.layers[layer].has_window and len(maps) > 1
        seen = (found.columns.pos <= p) & ((p - found.columns.pos < hyper.n_window) if window else True)
        assert (cells[seen] >= 0).all()
        k = np.stack([keys[1000 * found.columns.stream + int(c)] for c in cells[seen]])
        n_heads, d = len(one.q), one.q.shape[2]
        k = k.reshape(len(k), -1, d)  # cells, heads of K, numbers
        whose = np.arange(n_heads) // (n_heads // k.shape[1])
        scores = np.einsum("hd,chd->hc", one.q[:, 0].astype(np.float64), k[:, whose]) * one.scale
        if one.softcap:
            scores = one.softcap * np.tanh(scores / one.softcap)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        row = np.zeros((n_heads, len(cells)))
        row[:, seen] = weights / weights.sum(axis=1, keepdims=True)
        expected.append(row.astype(np.float32))
    return expected


def agrees(
    headless: HeadlessEngine, queries: Queries, fused: list[tuple[int, Fused]], *, edited: bool = False
) -> Attended:
    """Ask, and compare with the live cells: rows are 1 within 1e-4, weights equal within 1e-3 at every layer. `edited`:
    the token's own K in the live cache is of a text that is no longer there, so it is not compared.
    """
    fused.clear()
    found = attended(headless, queries)
    for layer in found.layers:
        np.testing.assert_allclose(layer.weights.sum(axis=-1) + layer.elsewhere, 1, atol=1e-4)
    for layer, wanted in zip(found.layers, from_live_cells(headless, found, fused), strict=True):
        row = layer.weights[:, 0]
        if edited:
            others = wanted[:, :-1] / (1 - wanted[:, -1:]) * (1 - row[:, -1:])
            wanted = np.concatenate((others, row[:, -1:]), axis=1)
        np.testing.assert_allclose(row, wanted, atol=1e-3, err_msg=f"layer {layer.layer}")
    return found
