"""The mirror against the engine: 0 mismatches in codes, lines, maps, blobs and spans over random operations."""

from __future__ import annotations

from pathlib import Path

import llama_cpp.llama_cpp as lc
import pytest

from kvdesk.cache.creation import compare_creation, parse_creation
from kvdesk.cache.geometry import ContextParams, plan
from kvdesk.cache.mirror import Mirror
from kvdesk.paths import embedded_model
from tests.cache.engine import engine
from tests.cache.models import KINDS
from tests.cache.walk import Tally, Walk
from tests.places import SHARED_MODELS

SHARED = sorted(SHARED_MODELS.glob("*.gguf"))
N_CTX = {"unified": 512, "streams": 2048}  # streams of 512 cells, so that a window of 256 is a small one


def params(layout: str, swa_full: bool = True, flash_attn: bool = True, type_kv: str = "f16") -> ContextParams:
    return ContextParams(
        n_ctx=256 if swa_full else N_CTX[layout],
        n_seq_max=4,
        n_batch=96,
        n_ubatch=32,
        kv_unified=layout == "unified",
        swa_full=swa_full,
        flash_attn=flash_attn,
        type_k=type_kv,
        type_v=type_kv if flash_attn else "f16",
    )


def walk(path: Path, asked: ContextParams, n_operations: int, seed: int) -> Tally:
    with engine(path, asked) as real:
        facts = real.facts()
        creation = parse_creation(real.creation)
        geometry = plan(facts, asked)
        assert (lc.llama_n_ctx(real.ctx), lc.llama_n_ctx_seq(real.ctx)) == (geometry.n_ctx, geometry.n_ctx_seq)
        if geometry.has_attention:
            assert lc.llama_memory_can_shift(real.mem) == geometry.can_shift
        assert compare_creation(geometry, creation) == ""
        return Walk(
            real,
            Mirror(geometry),
            seed,
            shift=creation.can_rotate,  # otherwise it aborts the process
            max_pos=256 if facts.architecture == "gpt2" else 1 << 20,  # learned positions: beyond them it aborts
            first_pos=8150 if facts.swa_type == "chunked" else 0,  # so that a chunk ends early
        ).run(n_operations)


@pytest.mark.parametrize("swa_full", [True, False])
@pytest.mark.parametrize("layout", ["unified", "streams"])
@pytest.mark.parametrize("kind", KINDS)
def test_written_models(models: dict[str, Path], kind: str, layout: str, swa_full: bool) -> None:
    tally = walk(models[kind], params(layout, swa_full), 100, seed=11)
    assert not tally.mismatch
    assert tally.maps > 50


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
@pytest.mark.parametrize("layout", ["unified", "streams"])
def test_given_models(path: Path, layout: str) -> None:
    assert not walk(path, params(layout), 60, seed=5).mismatch


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
def test_given_models_in_every_way(path: Path) -> None:
    seed = 0
    for layout in ("unified", "streams"):
        for swa_full in (True, False):
            for flash_attn in (True, False):
                for type_kv in ("f16", "q8_0"):
                    seed += 1
                    asked = params(layout, swa_full, flash_attn, type_kv)
                    assert not walk(path, asked, 2000, seed).mismatch, asked


@pytest.mark.stress
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("layout", ["unified", "streams"])
def test_embedded_model(layout: str) -> None:
    path = embedded_model()
    if path is None:
        pytest.skip("the embedded model is not installed")
    assert not walk(path, params(layout), 10_000, seed=77).mismatch
