"""Whether a file can be restored: what kvdesk says of it, and what llama.cpp then does."""

from pathlib import Path
from typing import Any

import pytest

from kvdesk.library.gguf_header import read_header
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.state_files.reading import open_file
from kvdesk.state_files.restore import judge
from tests.cache.models import KINDS
from tests.state_files.conftest import MORE
from tests.state_files.files import TOKENS, context, read, takes_session, takes_slot, write_session, write_slot

SAVED = ContextSettings(n_ctx=512, n_seq_max=2, n_batch=32, n_ubatch=32)
INTO: dict[str, dict[str, Any]] = {
    "the same": {},
    "more cells": {"n_ctx": 1024},
    "few cells": {"n_ctx": 256},
    "streams": {"kv_unified": False, "n_ctx": 1024},
    "K as f32": {"type_k": CacheType.F32},
    "V as q8_0": {"type_v": CacheType.Q8_0},
    "V transposed": {"flash_attn": False},
    "small windows": {"swa_full": False},
    "one sequence": {"n_seq_max": 1},
}
"""Changes of `SAVED`."""


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_it_agrees_with_llama_cpp(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    """Of each memory class, into contexts that differ in one setting, and into each other model."""
    many = TOKENS * 4
    with context(models[kind], SAVED) as made:
        read(made, many)
        slot, session = write_slot(made, tmp_path / "slot", many), write_session(made, tmp_path / "session", many)
    files = [open_file(path).file for path in (slot, session)]
    assert [file.problem for file in files] == ["", ""]
    seen, answers = set(), []
    cases = [(kind, name, changes) for name, changes in INTO.items()]
    cases += [(other, "another model", {}) for other in models if other != kind]
    for into, name, changes in cases:
        settings = SAVED.model_copy(update=changes)
        fits = [judge(file, read_header(models[into]), settings) for file in files]
        with context(models[into], settings) as made:
            has_room = len(many) <= settings.n_ctx  # which llama-server asks for behind llama.cpp
            done = [takes_slot(made, slot) and has_room, takes_session(made, session)]
        assert [fit.fits for fit in fits] == done, (into, name, [fit.reasons for fit in fits])
        assert all(bool(fit.reasons) != fit.fits for fit in fits)
        seen |= set(done)
        answers += done
    assert seen == {True, False}
    assert len(answers) == 2 * (len(INTO) + len(models) - 1)
