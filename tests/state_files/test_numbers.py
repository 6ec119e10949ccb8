"""The numbers of every type that a cache may have, against the package that writes such tensors."""

import gguf
import numpy as np
import pytest

from kvdesk.cache.state.blob import Section
from kvdesk.library.ggml_rows import is_known, rows
from kvdesk.library.ggml_types import BY_NAME, TYPES
from kvdesk.settings import CacheType
from kvdesk.state_files.numbers import describe

WIDTH, CELLS = 64, 40


def stored(name: str, values: np.ndarray) -> bytes:
    """The values as ggml stores them."""
    if name == "iq4_nl":  # gguf writes none: every pattern is one
        n = values.size // 32 * 18
        data = np.random.default_rng(1).integers(0, 256, n, np.uint8).reshape(-1, 18)
        data[:, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        return data.tobytes()
    return gguf.quantize(values, gguf.GGMLQuantizationType[name.upper()]).tobytes()


@pytest.mark.parametrize("name", [one.value for one in CacheType])
def test_each_type(name: str) -> None:
    values = np.random.default_rng(0).normal(0, 3, (CELLS, WIDTH)).astype(np.float32)
    kind, number = BY_NAME[name], next(n for n, one in TYPES.items() if one.name == name)
    data = stored(name, values)
    section = Section("k", 0, len(data), kind.row_bytes(WIDTH), ggml_type=number)
    assert is_known(section)
    found = np.concatenate(list(rows(memoryview(data), section, CELLS)))
    raw = np.frombuffer(data, np.uint8)
    wanted = gguf.dequantize(raw.reshape(CELLS, -1), gguf.GGMLQuantizationType[name.upper()])
    np.testing.assert_array_equal(found, wanted.reshape(CELLS, WIDTH))
    numbers = describe(memoryview(data), section, 3, CELLS)
    norms = np.linalg.norm(wanted.astype(np.float64), axis=1)
    assert (numbers.type, numbers.layer, numbers.n_bad) == (name, 3, 0)
    assert numbers.norm_mean == pytest.approx(norms.mean(), rel=1e-6)
    assert numbers.norm_max == pytest.approx(norms.max(), rel=1e-6)
    assert (numbers.low, numbers.high) == (wanted.min(), wanted.max())


def test_a_transposed_v_with_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, too: a row of the result is a cell, however the bytes lie."""
    values = np.arange(CELLS * WIDTH, dtype=np.float16).reshape(CELLS, WIDTH) / 64
    values[2, 5], values[3, 6], values[3, 7] = np.nan, np.inf, -np.inf
    data = memoryview(np.ascontiguousarray(values.T).tobytes())
    section = Section("v", 0, len(data), 2 * WIDTH, n_rows=WIDTH, ggml_type=1)
    whole = describe(data, section, 0, CELLS)
    monkeypatch.setattr("kvdesk.library.ggml_rows.PIECE", 7 * 2 * WIDTH)
    parts = list(rows(data, section, CELLS))
    assert len(parts) == -(-CELLS // 7)
    np.testing.assert_array_equal(np.concatenate(parts), values.astype(np.float32))
    pieces = describe(data, section, 0, CELLS)
    good = np.where(np.isfinite(values), values, 0).astype(np.float64)
    for found in (whole, pieces):
        assert (found.n_bad, found.low, found.high) == (3, good.min(), good.max())
        assert found.norm_mean == pytest.approx(np.linalg.norm(good, axis=1).mean())


@pytest.mark.parametrize(("ggml_type", "row_bytes", "n_rows"), [(77, 64, 0), (8, 33, 0), (8, 68, 64), (1, 0, 0)])
def test_what_cannot_be_read_is_described_without_numbers(ggml_type: int, row_bytes: int, n_rows: int) -> None:
    section = Section("v", 0, row_bytes, row_bytes, n_rows, ggml_type)
    found = describe(memoryview(bytes(row_bytes)), section, 0, 1)
    assert (found.norm_mean, found.row_bytes) == (None, row_bytes)
    assert found.type == (TYPES[ggml_type].name if ggml_type in TYPES else "77")
