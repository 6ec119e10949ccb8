"""Facts of models, the largest context that fits, and the speed that is expected."""

import math
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kvdesk import paths
from kvdesk.errors import ModelFileError
from kvdesk.library import bandwidth
from kvdesk.library.bandwidth import SIZE, measure
from kvdesk.library.catalogue import ENOUGH, _bytes_a_token, expected_tok_s, facts_of, fit_of
from kvdesk.library.estimate import estimate
from kvdesk.library.find import FoundModel, files_of
from kvdesk.library.gguf_header import read_header
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.values import replace
from tests.library.gguf_files import LAYOUTS, WEIGHTS, Raw, gguf, llama
from tests.places import SHARED_MODELS


@pytest.fixture(scope="module")
def embedded() -> FoundModel:
    path = paths.embedded_model()
    assert path is not None
    return FoundModel(path.stem, path, path.stat().st_size, "kvdesk")


def test_a_header_tells_what_a_person_asks(embedded: FoundModel) -> None:
    facts = facts_of(embedded)
    assert (facts.architecture, facts.quantization, facts.n_ctx_train, facts.n_layer) == ("llama", "Q4_1", 8192, 30)
    assert facts.licence == "apache-2.0"
    assert facts.problem == ""
    assert 134e6 < facts.n_params < 136e6
    assert 0.9 * embedded.size_bytes < facts.bytes_a_token < embedded.size_bytes  # its embedding is its output too


def test_a_file_that_is_no_model_says_so(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00")
    facts = facts_of(FoundModel("broken", file, 8, "LM Studio"))
    assert facts.title == "broken"
    assert "is cut off" in facts.problem


EXTREMES = {"fd": (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e30), "others": (0, 1, 2**31 - 1, 2**32 - 1, 2**64 - 1)}
KEYS = (
    *("block_count", "attention.head_count", "attention.head_count_kv", "attention.key_length", "embedding_length"),
    *("feed_forward_length", "expert_used_count", "context_length", "vocab_size", "ssm.state_size", "wkv.head_size"),
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_no_number_in_a_file_costs_the_list_of_models(tmp_path: Path, key: str, kind: int) -> None:
    layout = LAYOUTS[kind]
    for number in EXTREMES["fd" if layout in "fd" else "others"]:
        data = struct.pack(f"<{layout}", number) if layout in "fd" else struct.pack("<Q", number)
        one = Raw(kind, data[: struct.calcsize(layout)])
        file = tmp_path / "model.gguf"
        file.write_bytes(gguf(llama() | {f"llama.{key}": one}, WEIGHTS))
        found = FoundModel("model", file, file.stat().st_size, "kvdesk")
        if not facts_of(found).problem:
            with suppress(ModelFileError):
                fit_of(found, ContextSettings(), 8 << 30)


def test_of_several_experts_those_that_are_used_are_read() -> None:
    if not SHARED_MODELS.is_dir():
        pytest.skip("the models beside the project are not there")
    header = read_header(SHARED_MODELS / "gpt-oss-moe.gguf")
    one = replace(header, metadata={**header.metadata, f"{header.architecture}.expert_used_count": 1})
    experts = sum(t.n_bytes for t in header.tensors if "_exps." in t.name)
    others = sum(t.n_bytes for t in header.tensors if "_exps." not in t.name and t.name != "token_embd.weight")
    assert header.hyper("expert_count") == 2
    assert _bytes_a_token(header, header.tensors) == experts + others
    assert _bytes_a_token(one, one.tensors) == pytest.approx(experts / 2 + others, abs=1)


def test_it_fits_with_the_best_type_for_which_there_is_room(embedded: FoundModel) -> None:
    settings = ContextSettings(n_batch=64, n_ubatch=64)
    header = read_header(embedded.path)
    needed = estimate(header, settings.model_copy(update={"n_ctx": ENOUGH})).total
    assert fit_of(embedded, settings, 64 << 30).n_ctx == 8192
    assert fit_of(embedded, settings, needed).cache_type is CacheType.F16
    tight = fit_of(embedded, settings, int(0.8 * needed))
    assert tight.cache_type is CacheType.Q8_0
    assert tight.n_ctx >= ENOUGH
    assert tight.needed_bytes <= 0.8 * needed
    assert not fit_of(embedded, settings, 1 << 20).fits


def test_the_speed_follows_the_bytes_that_a_token_reads(embedded: FoundModel) -> None:
    facts = facts_of(embedded)
    assert expected_tok_s(facts, 100.0 * facts.bytes_a_token, 0.0) == pytest.approx(100)
    assert expected_tok_s(replace(facts, bytes_a_token=0), 1e9, 1e-4) == 0
    assert expected_tok_s(facts, 100.0 * facts.bytes_a_token, 0.01 / facts.n_layer) == pytest.approx(50)


def test_many_threads_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB for each of a hundred would be more than a container may have."""
    monkeypatch.setattr(bandwidth, "SIZE", 1 << 20)
    monkeypatch.setattr(bandwidth, "MOST", 2 << 20)
    made: list[int] = []

    def ones(n: int, kind: type) -> object:
        made.append(8 * n)
        return np.zeros(n, kind)

    monkeypatch.setattr(np, "ones", ones)
    assert measure(16) > 0
    assert made == [128 << 10] * 16


def test_the_bandwidth_is_one_of_memory() -> None:
    assert SIZE >= 32 << 20
    assert 5e8 < measure(1) < 1e12


def test_all_parts_of_a_split_model_are_its_files(tmp_path: Path) -> None:
    parts = [tmp_path / f"m-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    for part in parts[:2]:
        part.touch()
    assert files_of(parts[0]) == (parts[0], parts[1])
    assert files_of(tmp_path / "none.gguf") == ()
