"""Opens a model: reads its file, checks that it fits, tries it in a child process, and loads it, in this order.

Every command that takes a model file uses this. Knows nothing of contexts.
"""

from collections.abc import Callable
from pathlib import Path

from kvdesk.backends.local.llama.model import Model
from kvdesk.errors import ModelFileError
from kvdesk.library.estimate import Estimate, available_bytes, check_fits
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.library.preflight import run_preflight
from kvdesk.settings import ContextSettings
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that was tried and loaded. `template_problem`: why its chat template must not be rendered, or ""."""

    header: GgufHeader
    model: Model
    estimate: Estimate
    template_problem: str


def open_model(
    path: Path, settings: ContextSettings, on_progress: Callable[[float], bool] | None = None, *, freed_before: int = 0
) -> OpenedModel:
    """Load `path` for a context with these settings.

    on_progress    gets 0.0 to 1.0 and ends the load by returning False
    freed_before   bytes in use now that will be free when the context is made

    Raises ModelFileError, ContextError: the file cannot be used, or its context does not fit into memory.
    """
    tell = on_progress or (lambda _: True)
    path = path.absolute()
    header = read_header(path)
    estimate = check_fits(header, settings, available_bytes() + freed_before)
    tell(0.0)
    verdict = run_preflight(path, settings, cancelled=lambda: not tell(0.0))
    if not verdict.ok:
        raise ModelFileError(verdict.sentence, verdict.detail)
    model = Model(path, tell)
    model.vocab.longest_line = verdict.longest_line
    return OpenedModel(header, model, estimate, verdict.template_problem)
