"""Models for the cache tests, and nothing of Qt."""

from pathlib import Path

import pytest

from tests.cache.models import KINDS, write_model


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny model per memory class."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: write_model(folder / f"{kind}.gguf", kind) for kind in KINDS}
