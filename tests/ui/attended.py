"""What a token looked at, written by hand: of sequence 0 of `samples.cache_view`, where cells are positions."""

import numpy as np

from kvdesk.cache.attention_weights import AttentionColumns, LayerAttention
from kvdesk.protocol.attention import Attended, AttentionPreview, Queries
from kvdesk.session import Store
from kvdesk.values import replace

N_COLUMNS, N_HEADS, SINK, SEA, IS = 20, 8, 0, 13, 15
LAYERS = (0, 3)  # that have attention
SPECIAL = (3, 2)  # a layer and a head that looked at `IS` most


def attended(queries: Queries, number: int = 1, operation: int = 7) -> Attended:
    """Of positions 0 to 20: all heads but one look at the first token, then at "sea"."""
    pos = np.arange(queries.p0, queries.p1, dtype=np.int32)
    n_rows, n_of_row = (pos.size, 1) if queries.each else (1, pos.size)
    row = np.full(N_COLUMNS, 0.1 / (N_COLUMNS - 3), np.float32)
    row[[SINK, SEA, IS]] = 0.6, 0.2, 0.1
    layers = []
    for layer in LAYERS:
        weights = np.broadcast_to(row, (N_HEADS, n_rows, N_COLUMNS)).copy()
        if layer == SPECIAL[0]:
            weights[SPECIAL[1]][:, [SINK, IS]] = 0.1, 0.6
        layers.append(LayerAttention(layer, 0, weights * n_of_row, np.zeros((N_HEADS, n_rows), np.float32)))
    at = np.arange(N_COLUMNS, dtype=np.int32)
    columns = AttentionColumns(at, at.copy(), (at.copy(),), 0)
    return Attended(queries, number, operation, pos, columns, tuple(layers), 0, 24_000_000, 120.0)


def indexed(found: Attended) -> Attended:
    """The same, and an indexer chose the first token and "sea" in both layers, "is" in one, and nothing else."""
    layers = []
    for i, layer in enumerate(found.layers):
        chosen = np.zeros(layer.weights.shape[1:], np.float32)
        chosen[:, [SINK, SEA, *([IS] if i else [])]] = 1 if found.queries.each else len(found.pos)
        weights = np.where(chosen > 0, layer.weights, np.float32(0))
        layers.append(replace(layer, weights=weights, chosen=chosen))
    return replace(found, layers=tuple(layers))


def show_attended(store: Store) -> None:
    """The back end has computed it."""
    store.look(store.attention.begun())
    store.apply(attended(Queries(0, 19, 20), store.attention.number))


def price(queries: Queries, seconds: float | None = 0.1) -> AttentionPreview:
    """A price for a person, as the engine says it."""
    sentence = "A second context of 24.0 MB, 1 token, about 0.1 s."
    return AttentionPreview(queries, "", sentence, 1, 0, 2_000_000, 24_000_000, seconds)
