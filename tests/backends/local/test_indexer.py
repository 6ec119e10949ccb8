"""What an indexer chooses of the cells: as the engine's own tensors have it, each in the cell that it belongs to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from kvdesk.backends.local.attention import job
from kvdesk.backends.local.llama.attention.reader import AttentionReader
from kvdesk.backends.local.llama.attention.second_context import SecondContext
from kvdesk.backends.local.llama.attention.tensor import Tensor, integers, layer_of
from kvdesk.cache.attention_weights import chosen
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.attention import Attended, Queries
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.operations import RemoveRange
from kvdesk.settings import ContextSettings
from tests.backends.local.attention_oracle import attended
from tests.backends.local.conftest import opened_with
from tests.backends.local.test_attention import PLAIN, PLENTY, SPLIT, by_hand, emptied, held
from tests.backends.local.tiny_models import written

TOP_K = 8  # of the tiny models


class Choice(NamedTuple):
    """One decode of the second context: the engine's `top_k` by layer, shape (tokens, k), and the position of each of
    its cells afterwards.
    """

    top_k: dict[int, NDArray[np.int32]]
    pos: NDArray[np.int32]


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """What the engine chose in each decode that is read from now on."""
    found: list[Choice] = []
    now: dict[int, NDArray[np.int32]] = {}
    original = AttentionReader._on_node

    def on_node(self: AttentionReader, address: int, ask: bool, data: object) -> bool:
        tensor = Tensor.from_address(address)
        if not self._reading or not tensor.name.startswith(b"top_k-"):
            return original(self, address, ask, data)
        if not ask:
            cells = integers(tensor)
            now[layer_of(tensor)] = cells.reshape(-1, cells.shape[-1])
        return True

    class Recording(SecondContext):
        def attend(self, *args: Any, **kwargs: Any) -> Any:
            now.clear()
            weights = super().attend(*args, **kwargs)
            found.append(Choice(dict(now), self.positions()[0].copy()))
            return weights

    monkeypatch.setattr(AttentionReader, "_on_node", on_node)
    monkeypatch.setattr(job, "SecondContext", Recording)
    return found


def agrees(headless: HeadlessEngine, queries: Queries, choices: list[Choice]) -> Attended:
    """Ask, and compare each token's choice with the engine's, by position, and each column with its live cell."""
    choices.clear()
    found = attended(headless, queries)
    (said,) = choices
    n_layers = 0
    for layer in found.layers:
        if layer.layer not in said.top_k:
            assert layer.chosen is None
            continue
        n_layers += 1
        assert layer.chosen is not None
        for row, (at, cells) in enumerate(zip(found.pos.tolist(), said.top_k[layer.layer], strict=True)):
            asked = {int(said.pos[cell]) for cell in cells if cell < len(said.pos)}
            expected = {pos for pos in asked if 0 <= pos <= at}  # the rest is masked: too few cells were there
            assert set(found.columns.pos[layer.chosen[row] == 1].tolist()) == expected
            assert len(expected) == min(TOP_K, int((found.columns.pos <= at).sum()))
            assert not layer.weights[:, row, layer.chosen[row] == 0].any(), "nothing goes to what was left out"
            np.testing.assert_allclose(layer.weights[:, row].sum(axis=-1), 1, atol=1e-4)
    assert n_layers
    live = session_of(headless).runtime.cache_manager.snapshot().maps
    for cache in {layer.cache for layer in found.layers}:
        stream, cells = live[cache].streams[found.columns.stream], found.columns.cells[cache]
        np.testing.assert_array_equal(stream.pos[cells], found.columns.pos)
        np.testing.assert_array_equal(stream.token[cells], found.columns.token)
    return found


@pytest.fixture(
    params=[
        pytest.param(("dsa", {}), id="dsa"),
        pytest.param(("dsa_iswa", {}), id="dsa_iswa"),
        pytest.param(("dsa", PLAIN), id="dsa without flash attention"),
        pytest.param(("dsa", SPLIT), id="dsa with streams", marks=pytest.mark.matrix),
        pytest.param(("dsa_iswa", PLAIN), id="dsa_iswa without flash attention", marks=pytest.mark.matrix),
    ]
)
def indexed(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    name, settings = request.param
    yield from opened_with(written(tiny_folder, name), PLENTY.model_copy(update={"n_seq_max": 4, **settings}))


def test_what_the_indexer_chose_is_what_the_engine_says(indexed: HeadlessEngine, choices: list[Choice]) -> None:
    """In a fresh cache and in a fragmented one, before and after a removal; of a token alone and of several."""
    held(indexed, 20, seed=1)
    sequence = held(indexed, 60)
    agrees(indexed, Queries(sequence.seq_id), choices)
    several = agrees(indexed, Queries(sequence.seq_id, p0=2, p1=50, each=True), choices)
    total = attended(indexed, Queries(sequence.seq_id, p0=2, p1=50))
    for one, both in zip(several.layers, total.layers, strict=True):
        if one.chosen is not None and both.chosen is not None:
            np.testing.assert_array_equal(one.chosen.sum(axis=0, keepdims=True), both.chosen)
    share = chosen(several.layers, 48)
    assert share is not None
    np.testing.assert_array_equal(share, chosen(total.layers, 48))
    assert ((share >= 0) & (share <= 1)).all()
    by_hand(indexed, RemoveRange(sequence.seq_id, 10, 20))
    holed = agrees(indexed, Queries(sequence.seq_id), choices)
    assert holed.columns.pos.tolist() == [*range(10), *range(20, 60)]


def test_cells_elsewhere_are_chosen_by_their_tokens(indexed: HeadlessEngine, choices: list[Choice]) -> None:
    """The same text in other cells: the same positions are chosen."""
    fresh = agrees(indexed, Queries(held(indexed, 40).seq_id), choices)
    emptied(indexed)
    others = [held(indexed, 20, seed=seed) for seed in (1, 2)]
    indexed.do(Forget(others[0].conversation))
    scattered = agrees(indexed, Queries(held(indexed, 40).seq_id), choices)
    for one, two in zip(fresh.layers, scattered.layers, strict=True):
        if one.chosen is not None and two.chosen is not None:
            np.testing.assert_array_equal(one.chosen, two.chosen)


@pytest.mark.parametrize("flash_attn", [True, pytest.param(False, marks=pytest.mark.matrix)])
def test_k_that_is_picked_out_belongs_to_its_cells(flash_attn: bool, tiny_folder: Path) -> None:
    """glm5-next picks the K of few tokens out of the cache, and masks that of many (models/glm5-next.cpp:331): both
    say the same of a token.
    """
    settings: ContextSettings = PLENTY.model_copy(update={"flash_attn": flash_attn})
    for headless in opened_with(written(tiny_folder, "hybrid_idx"), settings):
        held(headless, 8, seed=1)
        sequence = held(headless, 60)
        many = attended(headless, Queries(sequence.seq_id, p0=20, p1=60, each=True))
        few = attended(headless, Queries(sequence.seq_id, p0=50, p1=60, each=True))
        alone = attended(headless, Queries(sequence.seq_id))
        for layer, some, one in zip(many.layers, few.layers, alone.layers, strict=True):
            assert layer.chosen is not None
            assert some.chosen is not None
            np.testing.assert_array_equal(layer.chosen[-10:], some.chosen)
            np.testing.assert_array_equal(some.chosen[-1:], one.chosen)
            np.testing.assert_allclose(layer.weights[:, -10:], some.weights, atol=2e-3)
            np.testing.assert_allclose(some.weights[:, -1:], one.weights, atol=2e-3)
            np.testing.assert_allclose(some.weights.sum(axis=-1) + some.elsewhere, 1, atol=1e-4)
            assert 0 < one.chosen.sum() < 60
            assert not one.weights[:, one.chosen == 0].any()


@pytest.mark.parametrize("flash_attn", [True, False])
def test_compressed_keys_are_no_cells(flash_attn: bool, tiny_folder: Path) -> None:
    """What DeepSeek V4 gives to rows for several positions goes to no cell; the rest to those in its window."""
    for headless in opened_with(written(tiny_folder, "dsv4"), PLENTY.model_copy(update={"flash_attn": flash_attn})):
        held(headless, 8, seed=1)
        sequence = held(headless, 300)
        found = attended(headless, Queries(sequence.seq_id))
        maps = session_of(headless).runtime.cache_manager.snapshot().maps
        assert (found.n_read, [layer.layer for layer in found.layers]) == (299, [0, 1, 2])
        elsewhere = [float(layer.elsewhere.max()) for layer in found.layers]
        for layer in found.layers:
            assert layer.chosen is None
            assert maps[layer.cache].name == "window"
            np.testing.assert_allclose(layer.weights.sum(axis=-1) + layer.elsewhere, 1, atol=1e-4)
            seen = found.columns.pos > 299 - maps[layer.cache].n_swa
            assert not layer.weights[..., ~seen].any()
            assert (layer.weights[..., seen] > 0).all()
        assert elsewhere[1] > elsewhere[0], "the first layer has a sink and no compressed keys"


def test_a_model_without_an_indexer_says_none(tiny_folder: Path) -> None:
    for headless in opened_with(written(tiny_folder, "iswa"), PLENTY):
        found = attended(headless, Queries(held(headless, 20).seq_id))
        assert all(layer.chosen is None for layer in found.layers)
        assert chosen(found.layers, 1) is None
