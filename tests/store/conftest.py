"""The database of each test."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kvdesk.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store(path)) as store:
        yield store
