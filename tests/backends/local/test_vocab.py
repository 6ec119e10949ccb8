from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.llama.model import Model
from tests.backends.local import tiny_models


def test_marks_of_reasoning_are_kept_where_other_control_tokens_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [*tiny_models.byte_tokens()[:-2], "[THINK]", "<|im_end|>"]
    monkeypatch.setattr(tiny_models, "byte_tokens", lambda: tokens)
    with closing(Model(tiny_models.write(tmp_path / "model.gguf", "llama", text=True))) as model:
        vocab = model.vocab
        assert vocab.is_control(len(tokens) - 2)
        assert vocab.piece(len(tokens) - 2) == b"[THINK]"
        assert vocab.piece(len(tokens) - 1) == b""
