"""kvdesk.library's estimates and tables against what the engine itself says."""

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest

from kvdesk import paths
from kvdesk.library.estimate import estimate
from kvdesk.library.ggml_types import REMOVED, TYPES
from kvdesk.library.gguf_header import read_header
from kvdesk.settings import ContextSettings
from tests.places import SHARED_MODELS

SETTINGS = (
    ContextSettings(),
    ContextSettings(n_ctx=1024, n_ubatch=128),
    ContextSettings(kv_unified=False),
    ContextSettings(swa_full=False),
    ContextSettings.model_validate({"type_k": "q8_0", "type_v": "q4_0"}),
    ContextSettings(flash_attn=False),
)
CHILD = """
import json, sys
import llama_cpp.llama_cpp as lib
from kvdesk.settings import ContextSettings
lib.llama_backend_init()
files, tables = json.loads(sys.argv[1])
for file in files:
    model = lib.llama_model_load_from_file(file.encode(), lib.llama_model_default_params())
    for table in tables:
        settings = ContextSettings.model_validate(table)
        params = lib.llama_context_default_params()
        for name in ("n_ctx", "n_seq_max", "n_batch", "n_ubatch", "kv_unified", "swa_full"):
            setattr(params, name, getattr(settings, name))
        params.flash_attn_type = int(settings.flash_attn)
        params.type_k = getattr(lib, f"GGML_TYPE_{settings.type_k.value.upper()}")
        params.type_v = getattr(lib, f"GGML_TYPE_{settings.type_v.value.upper()}")
        sys.stderr.write("=====\\n")
        sys.stderr.flush()
        lib.llama_free(lib.llama_init_from_model(model, params))
    lib.llama_model_free(model)
"""


def model_files() -> list[Path]:
    embedded = paths.embedded_model()
    return ([embedded] if embedded else []) + sorted(SHARED_MODELS.glob("*.gguf"))


@pytest.fixture(scope="module")
def logs() -> dict[tuple[Path, int], str]:
    """What the engine prints when it makes each context of each model: one child process says it all."""
    files = model_files()
    argument = json.dumps([[str(file) for file in files], [settings.model_dump(mode="json") for settings in SETTINGS]])
    child = subprocess.run(
        [sys.executable, "-c", CHILD, argument], capture_output=True, text=True, timeout=100, check=True
    )
    cases = [(file, i) for file in files for i in range(len(SETTINGS))]
    return dict(zip(cases, child.stderr.split("=====\n")[1:], strict=True))


@pytest.mark.parametrize("path", model_files(), ids=lambda path: path.stem)
def test_estimates_are_those_of_the_engine(path: Path, logs: dict[tuple[Path, int], str]) -> None:
    """K, V and recurrent state exactly (the engine prints two decimals), everything together within 5 %."""
    header = read_header(path)
    for i, settings in enumerate(SETTINGS):
        e, log = estimate(header, settings), logs[path, i]
        for name, ours in (("K", e.k), ("V", e.v), ("R", e.r), ("S", e.s)):
            assert ours / 2**20 == pytest.approx(_mib(rf"\b{name} \(\w+\):", log), abs=0.0151), (settings, name)
        compute, output = _mib(r"compute buffer size =", log), _mib(r"output buffer size =", log)
        actual = (e.weights + e.k + e.v + e.r + e.s) / 2**20 + compute + output
        assert e.total / 2**20 == pytest.approx(actual, rel=0.05), settings


def _mib(pattern: str, log: str) -> float:
    return sum(float(found) for found in re.findall(pattern + r" +([\d.]+) MiB", log))


def test_the_table_of_types_is_that_of_the_engine() -> None:
    folder = Path(llama_cpp.__file__).parent / "lib"
    library = next(f for pattern in ("libggml-base.*", "ggml-base.dll") for f in folder.glob(pattern))
    ggml = ctypes.CDLL(str(library))
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_type_size.restype = ctypes.c_size_t
    ggml.ggml_blck_size.restype = ctypes.c_int64
    for number in range(llama_cpp.GGML_TYPE_COUNT):
        if ggml.ggml_type_name(number) is None:
            assert number not in TYPES
            continue
        if number in REMOVED:
            assert ggml.ggml_blck_size(number) == 0
            continue
        assert TYPES[number] == (
            ggml.ggml_type_name(number).decode(),
            ggml.ggml_blck_size(number),
            ggml.ggml_type_size(number),
        )
