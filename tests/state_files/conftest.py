"""A tiny model of each memory class."""

from pathlib import Path

import pytest

from tests.backends.local import tiny_models
from tests.cache.models import KINDS, write_model
from tests.state_files.files import read_here  # noqa: F401 - the fixture

MORE = {"mamba": "mamba2", "rwkv": "rwkv6", "mrope": "qwen2vl", "parallel": "falcon-h1"}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    found = {kind: write_model(folder / f"{kind}.gguf", kind) for kind in KINDS}
    return found | {kind: tiny_models.write(folder / f"{kind}.gguf", name) for kind, name in MORE.items()}
