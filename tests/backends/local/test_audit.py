"""The audit: nothing is found where the rules are right, something where one is broken, the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvdesk.__main__ import main
from kvdesk.backends.local.llama.model import Model
from kvdesk.benchmarks.audit import Audit, Tally, run
from kvdesk.cache import mirror
from kvdesk.cache.attention import AttentionCache, Undo
from kvdesk.cache.batch import split_simple
from kvdesk.cache.cells import StreamCells
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.tiny_models import ARCHITECTURES, write
from tests.cache.models import write_model

SMALL = ContextSettings(n_ctx=256, n_seq_max=4, n_batch=96, n_ubatch=32, n_threads=1, n_threads_batch=1)
STREAMS = SMALL.model_copy(update={"kv_unified": False, "n_ctx": 1024})
WINDOWS = ("iswa", "chunked", "hybrid_iswa")
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


def tiny_file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.gguf"
    if not path.exists():
        _ = write(path, name) if name in ARCHITECTURES else write_model(path, name)
    return path


def clean(tally: Tally, n_ops: int) -> None:
    assert tally.first == ""
    assert (tally.mismatches, tally.ops, tally.blobs) == (0, n_ops, n_ops)


@pytest.mark.parametrize("settings", [SMALL, STREAMS], ids=["unified", "streams"])
@pytest.mark.parametrize("name", [*ARCHITECTURES, *WINDOWS])
def test_no_mismatch(folder: Path, name: str, settings: ContextSettings) -> None:
    clean(run(tiny_file(folder, name), settings, 60, seed=3), 60)


def test_all_that_can_happen_happens(folder: Path) -> None:
    tally = run(tiny_file(folder, "llama"), SMALL, 400, seed=2)
    clean(tally, 400)
    assert set(tally.codes) == {-1, 0, 1, 2}
    assert min(tally.refused, tally.rejected, tally.calls["load"], tally.calls["load_seq"], tally.calls["keep"]) > 0
    assert tally.maps > 200


def test_same_seed_same_play(folder: Path) -> None:
    first, again, other = (run(tiny_file(folder, "llama"), STREAMS, 120, seed) for seed in (5, 5, 6))
    first.seconds = again.seconds = other.seconds = 0.0
    assert first == again
    assert first.calls != other.calls


def _head_stays(patch: Patch) -> None:
    patch.setattr(StreamCells, "_lower_head", lambda *_: None)


def _no_wrap(patch: Patch) -> None:
    right = StreamCells.find_slot

    def find_slot(self: StreamCells, n_tokens: int, *rest: Any) -> Any:
        found, tested = right(self, n_tokens, *rest)
        return (None, tested) if found is not None and bool((np.diff(found) < 0).any()) else (found, tested)

    patch.setattr(StreamCells, "find_slot", find_slot)


def _longer_ubatches(patch: Patch) -> None:
    patch.setattr(mirror, "split_simple", lambda batch, n: split_simple(batch, n + 1))


def _stopped_ubatch_stays(patch: Patch) -> None:
    patch.setattr(mirror.Mirror, "_clean_up", lambda *_: None)


def _right_head_after_undo(patch: Patch) -> None:
    patch.setattr(AttentionCache, "_head_after_undo", lambda _self, undo, i: _head(undo, i))


def _head(undo: Undo, i: int) -> int:
    return undo.heads[undo.slot.streams[i]]


def _shift_leaves_head(patch: Patch) -> None:
    right = StreamCells.seq_add

    def seq_add(self: StreamCells, *args: Any) -> Any:
        head = self.head
        freed = right(self, *args)
        self.head = head
        return freed

    patch.setattr(StreamCells, "seq_add", seq_add)


def _restore_leaves_head(patch: Patch) -> None:
    right = AttentionCache.restore

    def restore(self: AttentionCache, *args: Any, **more: Any) -> bool:
        ok = right(self, *args, **more)
        for cells in self.streams:
            cells.head = cells.used
        return ok

    patch.setattr(AttentionCache, "restore", restore)


def _nothing_purged(patch: Patch) -> None:
    patch.setattr(AttentionCache, "_purge", lambda *_: np.empty(0, dtype=np.int64))


SMALL_WINDOW = SMALL.model_copy(update={"swa_full": False, "n_ctx": 512})


@pytest.mark.parametrize(
    ("name", "settings", "break_rule"),
    [
        ("llama", SMALL, _head_stays),
        ("iswa", SMALL_WINDOW, _no_wrap),
        ("llama", SMALL, _longer_ubatches),
        ("llama", SMALL, _stopped_ubatch_stays),
        ("llama", STREAMS, _right_head_after_undo),
        ("llama", SMALL, _shift_leaves_head),
        ("llama", SMALL, _restore_leaves_head),
        ("iswa", SMALL_WINDOW, _nothing_purged),
    ],
)
def test_a_broken_rule_is_found(
    folder: Path, monkeypatch: Patch, name: str, settings: ContextSettings, break_rule: Callable[[Patch], None]
) -> None:
    break_rule(monkeypatch)
    model = Model(tiny_file(folder, name))
    audit = Audit(model, settings, seed=1, stop_rate=0.5 if break_rule is _stopped_ubatch_stays else 0.06)
    while audit.tally.ops < 500 and not audit.tally.mismatches:
        audit.step()
    audit.close()
    model.close()
    assert audit.tally.mismatches
    assert json.loads(audit.tally.report)["operations"] if audit.tally.report else audit.tally.first


def test_command(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Patch, tmp_path: Path) -> None:
    file = str(tiny_file(folder, "llama"))
    assert main(["audit", "--model", file, "--ops", "50", "--seed", "4", "--streams", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ops"], told["mismatches"], told["seed"]) == (50, 0, 4)
    assert told["settings"]["kv_unified"] is False
    assert main(["audit", "--model", str(tmp_path / "none.gguf")]) == 2
    assert main(["audit", "--model", file, "--no-flash-attn", "--type-v", "q8_0"]) == 2
    capsys.readouterr()
    _head_stays(monkeypatch)
    report = tmp_path / "report.json"
    assert main(["audit", "--model", file, "--ops", "300", "--report", str(report)]) == 1
    assert json.loads(report.read_text())["difference"]
    assert "mismatches" in capsys.readouterr().out


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [*ARCHITECTURES, *WINDOWS])
def test_long_play(folder: Path, name: str) -> None:
    """Every layout, with and without flash attention, f16 and q8_0."""
    seed = 0
    for settings in (SMALL, STREAMS, SMALL_WINDOW, STREAMS.model_copy(update={"swa_full": False, "n_ctx": 2048})):
        for flash_attn in (True, False):
            for kind in (CacheType.F16, CacheType.Q8_0):
                seed += 1
                wanted = {"flash_attn": flash_attn, "type_k": kind, "type_v": kind if flash_attn else CacheType.F16}
                clean(run(tiny_file(folder, name), settings.model_copy(update=wanted), 2000, seed), 2000)


@pytest.mark.stress
@pytest.mark.timeout(7200)
def test_long_play_of_the_embedded_model(model_file: Path) -> None:
    clean(run(model_file, SMALL.model_copy(update={"n_batch": 24, "n_ubatch": 8}), 20_000, seed=7), 20_000)
