"""A model without a chat template: kvdesk says that it was probably not trained to chat."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.headless import HeadlessEngine
from kvdesk.protocol.chat import LoadModel, ModelLoaded
from kvdesk.protocol.model import LocalFile
from tests.backends.local.conftest import SMALL
from tests.backends.local.talking import write_talking
from tests.backends.local.test_turns import of


@pytest.mark.parametrize(
    ("template", "mark", "said"),
    [("", b"<|zz_start|>", True), ("", b"<|im_start|>", False), ("{{ messages[0].content }}", b"<|zz_start|>", False)],
    ids=["a base model", "it knows ChatML", "it has a template"],
)
def test_a_base_model_is_said_to_be_one(
    model_file: Path, tmp_path: Path, template: str, mark: bytes, said: bool
) -> None:
    path = write_talking(tmp_path / "model.gguf", model_file, template)
    path.write_bytes(path.read_bytes().replace(b"<|im_start|>", mark))
    with closing(HeadlessEngine()) as headless:
        (loaded,) = of(headless.do(LoadModel(LocalFile(path), SMALL)), ModelLoaded)
    assert loaded.remark.startswith("This model has no chat template") is said
