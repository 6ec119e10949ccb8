"""Rows of K and V that kvdesk quantizes, against those that the engine wrote into a cache from the same numbers."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.ggml_quantizers import encode
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.params import ggml_type
from kvdesk.cache.batch import Batch
from kvdesk.cache.state.blob import Section, parse_seq_state
from kvdesk.library.ggml_rows import decode, rotate
from kvdesk.settings import CacheType, ContextSettings
from tests.cache.models import N_VOCAB

SMALL = ContextSettings(n_ctx=512, n_seq_max=1, n_batch=64, n_ubatch=64, n_threads=1, n_threads_batch=1)
N = 50


def first_layer(model: Model, kind: CacheType) -> tuple[dict[str, NDArray[np.uint8]], Context]:
    """K and V of the first layer, a row of bytes for each of `N` cells: of its input, whatever the cache holds."""
    context = Context(model, SMALL.model_copy(update={"type_k": kind, "type_v": kind}))
    tokens = tuple((3 + 7 * i) % N_VOCAB for i in range(N))
    context.decode(Batch(tokens, tuple(range(N)), ((0,),) * N, (False,) * (N - 1) + (True,)))
    blob = context.states.seq_get(0)
    ((stored,),) = parse_seq_state(blob, context.memory.mirror.geometry).caches
    found: dict[str, Section] = {}
    for section in stored.sections:
        found.setdefault(section.kind, section)
    rows = {
        of: np.frombuffer(blob, np.uint8, one.n_bytes, one.offset).reshape(N, one.row_bytes)
        for of, one in found.items()
    }
    context.close()
    return rows, context


@pytest.mark.parametrize("kind", list(CacheType))
def test_rows_are_bit_for_bit_what_the_engine_stores(llama: Model, kind: CacheType) -> None:
    """The numbers are those of a cache of f32: the first layer computes them from the tokens alone."""
    exact, _ = first_layer(llama, CacheType.F32)
    stored, context = first_layer(llama, kind)
    for of, n_rot in (("k", context.traits.rotated_k[0]), ("v", context.traits.rotated_v[0])):
        assert n_rot == (0 if kind in (CacheType.F32, CacheType.F16, CacheType.BF16) else 64)
        mine = encode(rotate(decode(exact[of], ggml_type(CacheType.F32)), n_rot), ggml_type(kind))
        np.testing.assert_array_equal(mine, stored[of])


def test_a_rotation_is_its_own_inverse_and_that_of_the_hadamard_matrix() -> None:
    values = np.random.default_rng(0).normal(0, 3, (7, 384)).astype(np.float32)
    matrix = np.ones((1, 1))
    while len(matrix) < 128:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    wanted = values.reshape(-1, 128) @ (matrix / np.sqrt(128))
    turned = rotate(values, 128)
    np.testing.assert_allclose(turned, wanted.reshape(values.shape), atol=1e-5)
    np.testing.assert_allclose(rotate(turned, 128), values, atol=1e-5)
    assert rotate(values, 0) is values
