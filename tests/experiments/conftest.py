"""Contexts of the laboratory on the tiny model that talks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.model import Model
from kvdesk.experiments.raw_context import RawContext
from kvdesk.settings import ContextSettings


@pytest.fixture(scope="module")
def model(talking_file: Path) -> Iterator[Model]:
    with closing(Model(talking_file)) as model:
        yield model


@pytest.fixture
def open_context(model: Model) -> Iterator[Callable[..., RawContext]]:
    """Makes contexts of 256 cells for four sequences, with these options; closed at the end."""
    settings = ContextSettings(n_ctx=256, n_seq_max=4, n_batch=64, n_threads=1)
    with ExitStack() as ending:
        yield lambda **options: ending.enter_context(closing(RawContext(model, settings, **options)))
