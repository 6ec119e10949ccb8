"""What `kvdesk chat` says beside its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvdesk.__main__ import main
from tests.backends.local.tiny_models import write


@pytest.mark.usefixtures("models_are_tried")
def test_a_chat_template_that_is_replaced_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KVDESK_LANGUAGE", "en")
    path = write(tmp_path / "model.gguf", "llama", text=True, more=lambda out: out.add_chat_template("{% for m in"))
    assert main(["chat", "--model", str(path), "--prompt", "hi", "--max-tokens", "1", "--n-ctx", "256"]) == 0
    assert capsys.readouterr().err.startswith("The model's chat template cannot be used, so a plain one is: ")
