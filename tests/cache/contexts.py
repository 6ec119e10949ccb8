"""Contexts of a model file for the tests of the cache: the engine and its mirror as kvdesk has them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.settings import ContextSettings


@contextmanager
def opened(path: Path, asked: ContextSettings) -> Iterator[Context]:
    """A context on one thread, compared with its mirror at every call, and audited at the end."""
    with (
        closing(Model(path)) as model,
        closing(Context(model, asked.model_copy(update={"n_threads": 1, "n_threads_batch": 1}))) as context,
    ):
        yield context
        assert context.auditor.audit(whole=True).state == "verified"
