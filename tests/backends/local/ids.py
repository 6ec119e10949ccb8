"""Conversations of token ids on a tiny model of every kind of memory: written here, or of ../shared/models."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.cache_manager.state_swapper import StateSwapper
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.experiments.benchmarks.by_ids import ByIds
from kvdesk.policies.costs import Costs, Reads
from kvdesk.policies.swap import Limits, StateKind
from kvdesk.protocol.messages import Event
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.tiny_models import written
from tests.cache.models import KINDS
from tests.places import SHARED_MODELS

RECURRENT = "mamba2"
CLASSES = (*KINDS, RECURRENT)
"""A model for each class of memory: what every run of the tests asks."""
DENSE = ("llama", "qwen2", "gemma3", "lfm2", "mamba", "gpt2", "qwen2vl")
FILES = (*(f"{name}-dense" for name in DENSE), "gpt-oss-moe")
OTHERS = ("gpt2", "qwen2vl", *FILES)
"""Learned positions, several positions a token, and architectures of ../shared/models: for the matrix."""


class Ids(ByIds):
    """A keeper of its own, with saved states in `folder`. Nothing is guessed: a restore is always worth it."""

    def __init__(
        self,
        model: Model,
        folder: Path,
        type_kv: CacheType,
        *,
        memory: int = 1 << 24,
        n_ctx: int = 384,
        swa_full: bool = True,
        n_seq_max: int = 4,
        n_ubatch: int = 8,
        n_rs_seq: int = 0,
        kv_unified: bool = True,
    ) -> None:
        settings = ContextSettings(
            n_ctx=n_ctx, n_seq_max=n_seq_max, n_batch=32, n_ubatch=n_ubatch, n_threads=1, n_threads_batch=1,
            type_k=type_kv, type_v=type_kv, swa_full=swa_full, n_rs_seq=n_rs_seq, kv_unified=kv_unified,
        )  # fmt: skip
        context = Context(model, settings)
        kind = StateKind("tiny", "now", type_kv, type_kv, True, (1.0, 1.0))
        saved_states = SavedStateStore(folder, kind, Limits(memory, 1 << 24))
        self.events: list[Event] = []
        operation_journal = OperationJournal(context, self.events.append)
        swapper = StateSwapper(context, operation_journal, saved_states, lambda n_tokens, _: (1e3 * n_tokens, 1.0))
        super().__init__(context, Cache(context, operation_journal, swapper, Costs(Reads(1, 1, skips=True))))

    def close(self) -> None:
        assert self.context.auditor.audit(whole=True).state in ("verified", "mirrored")
        self.cache_manager.save_all()
        self.context.close()


def tiered(names: Iterable[str]) -> list[object]:
    """The names as parameters: those that stand for no class of memory go to the matrix."""
    return [pytest.param(name, marks=[] if name in CLASSES else [pytest.mark.matrix]) for name in names]


NAMES = tiered((*CLASSES, *OTHERS))


def open_model(name: str, folder: Path) -> Model:
    """The model that is written into `folder`, or the given file; skips the test if that is not here."""
    path = SHARED_MODELS / f"{name}.gguf" if name in FILES else written(folder, name)
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return Model(path)


def prompt_of(first: int, n: int) -> list[int]:
    return [(first + 7 * i * i + 3 * i) % 100 + 5 for i in range(n)]


def prompt_tokens(model: Model) -> int:
    """Tokens of a prompt: the gpt2 that is written here has learned 64 positions."""
    return 16 if model.facts.architecture == "gpt2" else 44
