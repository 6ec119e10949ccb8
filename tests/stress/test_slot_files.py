"""Slot files of llama-server for a model of each memory class: `would restore` against what the server then does, each
time after a restart.

KVDESK_LLAMA_SERVER=…/llama-server   where it is (`serving`)
"""

import os
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import pytest

from kvdesk.library.gguf_header import read_header
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.state_files.reading import open_file
from kvdesk.state_files.restore import judge
from tests.backends.local.tiny_models import written
from tests.stress.serving import llama_server, needs_llama_server

PROMPT: Final = [3 + 7 * i % 100 for i in range(300)]
CONTEXTS: Final[list[tuple[list[str], dict[str, Any]]]] = [
    (["-c", "512", "-np", "1"], {"n_ctx": 512, "n_seq_max": 1}),
    (["-c", "256", "-np", "1"], {"n_ctx": 256, "n_seq_max": 1}),
    (["-c", "1024", "-np", "2"], {"n_ctx": 1024, "n_seq_max": 2, "kv_unified": False}),
    (["-c", "1024", "-np", "2", "--kv-unified"], {"n_ctx": 1024, "n_seq_max": 2}),
    (["-c", "512", "-np", "1", "-ctk", "f32"], {"n_ctx": 512, "n_seq_max": 1, "type_k": CacheType.F32}),
    (["-c", "512", "-np", "1", "-fa", "off"], {"n_ctx": 512, "n_seq_max": 1, "flash_attn": False}),
    (["-c", "512", "-np", "1", "--swa-full"], {"n_ctx": 512, "n_seq_max": 1, "swa_full": True}),
]
"""Options of llama-server, and what `kvdesk open` is told of them."""
SLOT: Final = {"id_slot": 0, "n_predict": 2, "temperature": 0.0, "ignore_eos": True}
MODELS: Final = ("llama", "iswa", "granitehybrid", "mamba2")
"""One of each memory class."""


def restored(http: httpx.Client, name: str) -> bool:
    """False also where the server ends of it: a file that was cut off fails an assertion (llama-context.cpp:3371)."""
    try:
        answer = http.post("/slots/0?action=restore", json={"filename": name})
    except httpx.TransportError:
        return False
    assert answer.status_code in (200, 400), answer.text
    return answer.status_code == 200


@pytest.fixture(scope="module")
def slots(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the slot file of each model, and three damaged ones of each."""
    slots = tmp_path_factory.mktemp("slots")
    for name in MODELS:
        with llama_server(written(tiny_folder, name, text=True), *CONTEXTS[0][0], *_folder(slots)) as http:
            answer = http.post("/completion", json={"prompt": PROMPT, **SLOT})
            assert answer.status_code == 200, answer.text
            saved = http.post("/slots/0?action=save", json={"filename": name}).json()
        data = (slots / name).read_bytes()
        assert len(open_file(slots / name).file.tokens or ()) == saved["n_saved"]
        (slots / f"{name}-cut").write_bytes(data[:-100])
        (slots / f"{name}-token").write_bytes(data[:24] + b"\xff\xff\xff\x7f" + data[28:])
        (slots / f"{name}-version").write_bytes(data[:4] + b"\x02" + data[5:])
    return slots


def _folder(slots: Path) -> tuple[str, str]:
    return "--slot-save-path", f"{slots}{os.sep}"


@pytest.mark.stress
@pytest.mark.timeout(3600)
@needs_llama_server
@pytest.mark.parametrize("name", MODELS)
def test_it_would_restore_what_llama_server_restores(name: str, slots: Path, tiny_folder: Path) -> None:
    """Each of four models in seven contexts, and in the first also another model's file, three damaged ones, and the
    right one behind them: 48 cases."""
    model = written(tiny_folder, name, text=True)
    answers = {True: 0, False: 0}
    for number, (options, changes) in enumerate(CONTEXTS):
        files = [name]
        if not number:
            other = next(one for one in MODELS if one != name)
            files += [other, f"{name}-token", f"{name}-version", name, f"{name}-cut"]
        settings = ContextSettings(swa_full=False).model_copy(update=changes)
        with llama_server(model, *options, *_folder(slots)) as http:
            for file in files:
                fit = judge(open_file(slots / file).file, read_header(model), settings)
                done = restored(http, file)
                assert fit.fits == done, (options, file, fit)
                answers[done] += 1
    assert sum(answers.values()) == len(CONTEXTS) + 5 == 12
    assert min(answers.values()) >= 2
