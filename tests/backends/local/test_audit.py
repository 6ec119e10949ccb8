"""The audit: nothing is found where the rules are right, the same for the same seed.

`tests/cache/test_breakages.py` breaks the rules.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.__main__ import main
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.experiments.benchmarks.audit import Tally, run
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.ids import CLASSES
from tests.backends.local.tiny_models import ARCHITECTURES, written
from tests.cache.indexed_models import INDEXED
from tests.cache.models import KINDS
from tests.places import SHARED_MODELS

SMALL = ContextSettings(n_ctx=256, n_seq_max=4, n_batch=96, n_ubatch=32, n_threads=1, n_threads_batch=1)
STREAMS = SMALL.model_copy(update={"kv_unified": False, "n_ctx": 1024})
SMALL_WINDOW = SMALL.model_copy(update={"swa_full": False, "n_ctx": 512})
SMALL_WINDOWS = STREAMS.model_copy(update={"swa_full": False, "n_ctx": 2048})  # of 512 cells: a window of 256 is small
EARLIER = SMALL.model_copy(update={"n_rs_seq": 6})
EARLIER_STREAMS = STREAMS.model_copy(update={"n_rs_seq": 6})
WINDOWS = ("iswa", "chunked", "hybrid_iswa", "dsa_iswa", "dsv4")
FILES = sorted(SHARED_MODELS.glob("*.gguf"))


def in_turn(
    names: Sequence[str], unified: ContextSettings, streams: ContextSettings, others: Sequence[str] = ()
) -> list[object]:
    """Each class of memory in both layouts; in every run in one of them, the next in the other. `others`: in the matrix
    alone.
    """
    return [
        pytest.param(
            name, settings, id=f"{name}-{layout}", marks=[pytest.mark.matrix] * (name in others or (i + j) % 2)
        )
        for i, name in enumerate((*names, *others))
        for j, (layout, settings) in enumerate((("unified", unified), ("streams", streams)))
    ]


def clean(tally: Tally, n_ops: int) -> None:
    assert tally.first == ""
    assert (tally.mismatches, tally.ops, tally.blobs) == (0, n_ops, n_ops)


@pytest.mark.parametrize(
    ("name", "settings"),
    in_turn(
        ("msa", *INDEXED, *CLASSES), SMALL, STREAMS, others=[name for name in ARCHITECTURES if name not in CLASSES]
    ),
)
def test_no_mismatch(tiny_folder: Path, name: str, settings: ContextSettings) -> None:
    """The one walk that proves the mirror: codes, lines, maps, blobs and spans after every operation."""
    tally = run(written(tiny_folder, name), settings, 60, seed=3)
    clean(tally, 60)
    assert tally.maps > 20 or name not in KINDS


@pytest.mark.parametrize(("name", "settings"), in_turn(WINDOWS, SMALL_WINDOW, SMALL_WINDOWS))
def test_no_mismatch_in_a_small_window(tiny_folder: Path, name: str, settings: ContextSettings) -> None:
    clean(run(written(tiny_folder, name), settings, 60, seed=11), 60)


@pytest.mark.parametrize(
    ("name", "settings"), in_turn(("hybrid", "dsv4"), EARLIER, EARLIER_STREAMS, others=("hybrid_iswa", "hybrid_idx"))
)
def test_no_mismatch_with_earlier_states(tiny_folder: Path, name: str, settings: ContextSettings) -> None:
    clean(run(written(tiny_folder, name), settings, 90, seed=5), 90)


@pytest.mark.matrix
@pytest.mark.parametrize("settings", [SMALL, STREAMS], ids=["unified", "streams"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_mismatch_of_a_file(path: Path, settings: ContextSettings) -> None:
    clean(run(path, settings, 60, seed=5), 60)


def test_all_that_can_happen_happens(tiny_folder: Path) -> None:
    tally = run(written(tiny_folder, "llama"), SMALL, 300, seed=2)
    clean(tally, 300)
    assert set(tally.codes) == {-1, 0, 1, 2}
    assert min(tally.refused, tally.rejected, tally.calls["load"], tally.calls["load_seq"], tally.calls["keep"]) > 0
    assert tally.maps > 200


def test_a_part_copied_onto_itself_aborts_no_memory(tiny_folder: Path) -> None:
    settings = SMALL.model_copy(update={"n_seq_max": 1, "n_batch": 96, "n_ubatch": 33})
    with closing(Model(written(tiny_folder, "dsv4"))) as model, closing(Context(model, settings)) as context:
        context.decode(Batch.of(0, 0, range(1, 9), "none"))
        context.memory.seq_cp(0, 0, 2, 5)
        assert context.auditor.audit(whole=True).state == "verified"


def test_same_seed_same_play(tiny_folder: Path) -> None:
    first, again, other = (run(written(tiny_folder, "llama"), STREAMS, 60, seed) for seed in (5, 5, 6))
    first.seconds = again.seconds = other.seconds = 0.0
    assert first == again
    assert first.calls != other.calls


def test_command(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = str(written(tiny_folder, "llama"))
    assert main(["audit", "--model", file, "--ops", "50", "--seed", "4", "--streams", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ops"], told["mismatches"], told["seed"]) == (50, 0, 4)
    assert told["settings"]["kv_unified"] is False
    assert main(["audit", "--model", str(tmp_path / "none.gguf")]) == 2
    assert main(["audit", "--model", file, "--no-flash-attn", "--type-v", "q8_0"]) == 2
    capsys.readouterr()
    monkeypatch.setattr(StreamCells, "_lower_head", lambda *_: None)
    report = tmp_path / "report.json"
    assert main(["audit", "--model", file, "--ops", "300", "--report", str(report)]) == 1
    assert json.loads(report.read_text())["difference"]
    assert "mismatches" in capsys.readouterr().out


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["msa", *ARCHITECTURES, *WINDOWS, "hybrid_idx", *map(str, FILES)])
def test_long_play(tiny_folder: Path, name: str) -> None:
    """Every layout, with and without flash attention, f16 and q8_0."""
    path, seed = Path(name) if name.endswith(".gguf") else written(tiny_folder, name), 0
    for settings in (SMALL, STREAMS, SMALL_WINDOW, SMALL_WINDOWS, EARLIER, EARLIER_STREAMS):
        for flash_attn in (True, False):
            for kind in (CacheType.F16, CacheType.Q8_0):
                seed += 1
                wanted = {"flash_attn": flash_attn, "type_k": kind, "type_v": kind if flash_attn else CacheType.F16}
                clean(run(path, settings.model_copy(update=wanted), 2000, seed), 2000)


@pytest.mark.stress
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("settings", [SMALL, STREAMS], ids=["unified", "streams"])
def test_long_play_of_the_embedded_model(model_file: Path, settings: ContextSettings) -> None:
    clean(run(model_file, settings.model_copy(update={"n_batch": 24, "n_ubatch": 8}), 20_000, seed=7), 20_000)
