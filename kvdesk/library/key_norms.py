"""How long the keys of cells are: norms of K from a saved state, all layers and heads together.

A key has the same norm before and after its rotation by position, and before and after the Hadamard rotation of a
quantized cache: what is stored is enough. Heads have keys of very different sizes, so each is measured by its own mean.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.geometry import Geometry
from kvdesk.cache.state.blob import Blob, StreamBlob, parse_seq_state
from kvdesk.errors import UserError
from kvdesk.library.ggml_rows import is_known, rows
from kvdesk.library.hyper import Hyper
from kvdesk.translation import tr


def norms_by_position(blob: Blob, geometry: Geometry, hyper: Hyper, seq_id: int, n: int) -> NDArray[np.float32]:
    """`key_norms` of the cells of a sequence's saved state, by position: shape (n,), or up to its last position if that
    is behind; 0 at a position without a cell.

    Raises UserError where K is of a type that cannot be read, BlobError for a damaged state.
    """
    stored = parse_seq_state(blob, geometry).caches[0][seq_id if geometry.n_stream > 1 else 0]
    layers = [layer for layer in hyper.layers if layer.k_width]
    if geometry.has_window:  # its cache has the layers with a window, and only what that sees
        layers = [layer for layer in layers if not layer.has_window]
    found = np.zeros(max(n, int(stored.pos.max(initial=-1)) + 1), np.float32)
    found[stored.pos] = key_norms(memoryview(blob), stored, [layer.n_head_kv for layer in layers])
    return found


def key_norms(blob: memoryview, stored: StreamBlob, n_heads: Sequence[int]) -> NDArray[np.float32]:
    """Of each cell, in the order of the blob: the norm of its keys over the mean norm of that head, the mean of all
    heads of all layers; shape (n_cells,).

    n_heads  of K, of each layer that has K in this cache, in order

    Raises UserError where K is of a type that cannot be read.
    """
    keys = [section for section in stored.sections if section.kind == "k" and section.n_bytes]
    if len(keys) != len(n_heads) or not all(map(is_known, keys)):
        raise UserError(tr("The keys of this cache cannot be read."))
    total = np.zeros(stored.n_cells, np.float64)
    for section, n in zip(keys, n_heads, strict=True):
        norms = np.concatenate([_norms(part, n) for part in rows(blob, section, stored.n_cells)])
        total += (norms / np.maximum(norms.mean(axis=0), np.finfo(np.float32).tiny)).sum(axis=1)
    return np.asarray(total / max(1, sum(n_heads)), np.float32)


def _norms(part: NDArray[np.float32], n_heads: int) -> NDArray[np.float64]:
    """Shape (n_cells, n_heads)."""
    heads = part.reshape(len(part), n_heads, -1)
    return np.asarray(np.sqrt(np.einsum("chd,chd->ch", heads, heads, dtype=np.float64)), np.float64)
