"""run_preflight: a model that works, one that kills llama.cpp, one that never ends; and what is remembered."""

import json
import sys
from pathlib import Path

import pytest
from gguf import GGUFWriter

from kvdesk import paths
from kvdesk.errors import ModelFileError
from kvdesk.library import preflight
from kvdesk.library.preflight import LONG_LINE, SHORT_LINE, Verdict, run_preflight, small_settings, trial_command
from kvdesk.settings import CacheType, ContextSettings
from tests.backends.local.tiny_models import write
from tests.children.fake import fake_child
from tests.library.gguf_files import WEIGHTS, gguf, llama
from tests.library.test_estimate import other

SETTINGS = ContextSettings()
pytestmark = pytest.mark.usefixtures("models_are_tried")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file whose header is right; llama.cpp has never seen it."""
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(llama(), WEIGHTS))
    return path


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Python code that the next children run instead of a trial; the last one stays."""
    codes = ["say({'ok': True})"]

    def command(*_: object) -> list[str]:
        return fake_child(codes.pop(0) if len(codes) > 1 else codes[0])

    monkeypatch.setattr(preflight, "trial_command", command)
    return codes


@pytest.mark.matrix
def test_a_real_model_works(tmp_path: Path) -> None:
    embedded = paths.embedded_model()
    assert embedded is not None
    stranger = tmp_path / "stranger.gguf"
    stranger.symlink_to(embedded)
    assert run_preflight(stranger, SETTINGS) == Verdict(ok=True)
    assert run_preflight(stranger, SETTINGS) == Verdict(ok=True, remembered=True)


def test_a_file_that_makes_llama_cpp_abort_costs_nothing(tmp_path: Path) -> None:
    """More experts used than there are: an assertion of llama.cpp (llama-model.cpp, `load_hparams`)."""
    path = tmp_path / "killer.gguf"
    path.write_bytes(gguf(llama(expert_count=0, expert_used_count=3), WEIGHTS))
    verdict = run_preflight(path, SETTINGS)
    assert not verdict.ok
    assert "crash" in verdict.sentence
    assert "GGML_ASSERT" in verdict.detail


def test_a_file_that_llama_cpp_refuses(model: Path) -> None:
    verdict = run_preflight(model, SETTINGS)
    assert not verdict.ok
    assert verdict.sentence.startswith("llama.cpp cannot load model.gguf")


def test_the_embedded_model_is_trusted(children: list[str]) -> None:
    embedded = paths.embedded_model()
    assert embedded is not None
    children[:] = ["raise SystemExit(9)"]
    assert run_preflight(embedded, SETTINGS) == Verdict(ok=True)


def test_a_bad_header_needs_no_trial(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="There is no file"):
        run_preflight(tmp_path / "none.gguf", SETTINGS)


def test_one_that_never_ends_is_ended(model: Path, children: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    children[:] = ["import threading; threading.Event().wait()", "say({'ok': True})"]
    with monkeypatch.context() as short:
        short.setattr(preflight, "TIME_LIMIT_S", 0.3)
        assert "did not load within" in run_preflight(model, SETTINGS).sentence
    assert run_preflight(model, SETTINGS) == Verdict(ok=True)  # slowness is not remembered


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "crash (SIGABRT)"),
        ("raise SystemExit(3)", "exit code 3"),
        ("parent.send(b'no JSON')", "exit code 0"),
        ("say([1])", "exit code 0"),
        ("say({'ok': True}); raise SystemExit(1)", "exit code 1"),
        ("say({'ok': False, 'sentence': 'Too odd.'}); raise SystemExit(2)", "Too odd."),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_every_end_of_a_child_is_a_sentence(model: Path, children: list[str], code: str, words: str) -> None:
    children[:] = [code]
    verdict = run_preflight(model, SETTINGS)
    assert not verdict.ok
    assert words in verdict.sentence


def test_what_is_remembered(model: Path, children: list[str]) -> None:
    assert not run_preflight(model, SETTINGS).remembered
    children[:] = ["raise SystemExit(3)"]
    assert run_preflight(model, SETTINGS).remembered
    assert not run_preflight(model, SETTINGS, again=True).ok
    assert run_preflight(model, SETTINGS).remembered  # the newer verdict
    other_types = SETTINGS.model_copy(update={"type_k": CacheType.F32})
    assert not run_preflight(model, other_types).remembered
    model.write_bytes(gguf(llama() | {"general.name": "Tine"}, WEIGHTS))
    assert not run_preflight(model, SETTINGS).remembered


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}'])
def test_a_broken_memory_is_no_memory(model: Path, content: str) -> None:
    cache = paths.data_dir() / "preflight.json"
    cache.write_text(content)
    assert run_preflight(model, SETTINGS) == Verdict(ok=True)
    assert json.loads(cache.read_text())
    assert run_preflight(model, SETTINGS).remembered


@pytest.mark.parametrize("pre", ["gpt-4o", pytest.param("whitespace", marks=pytest.mark.matrix)])
def test_a_vocabulary_is_tried_with_every_byte(tmp_path: Path, pre: str) -> None:
    """Two blanks end the process with the pre-tokenizer "whitespace" (llama-vocab.cpp, `find_bpe_rank`)."""
    verdict = run_preflight(write(tmp_path / "model.gguf", "llama", text=True, pre=pre), SETTINGS)
    assert verdict.ok == (pre == "gpt-4o"), verdict
    assert verdict.longest_line == LONG_LINE


def test_a_vocabulary_without_bytes(tmp_path: Path) -> None:
    """SentencePiece without byte tokens throws at the first character that it does not have, through C."""

    def no_bytes(out: GGUFWriter) -> None:
        out.add_tokenizer_model("llama")
        out.add_token_list(
            ["<unk>", "<s>", "</s>", "▁", *(chr(97 + i) for i in range(26))] + [f"x{i}" for i in range(98)]
        )
        out.add_token_types([2, 3, 3, *[1] * 125])
        out.add_token_scores([0.0] * 128)

    verdict = run_preflight(write(tmp_path / "model.gguf", "llama", tokenizer=no_bytes), SETTINGS)
    assert not verdict.ok
    assert "crash" in verdict.sentence


def test_numbers_that_are_none(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", "llama")
    data = path.read_bytes()
    path.write_bytes(data[:-4096] + b"\xff" * 4096)
    verdict = run_preflight(path, SETTINGS)
    assert verdict.sentence == "model.gguf computes no numbers (NaN): its weights are damaged."


def test_a_template_that_is_no_good_costs_only_the_template(tmp_path: Path) -> None:
    path = write(
        tmp_path / "model.gguf", "llama", text=True, more=lambda out: out.add_chat_template("{{ 'a' * 9000000000 }}")
    )
    verdict = run_preflight(path, SETTINGS)
    assert verdict.ok, verdict
    assert verdict.template_problem.startswith("The model's chat template was stopped")


def test_a_tokenizer_that_dies_of_long_lines_gets_short_ones(model: Path, children: list[str]) -> None:
    children[:] = ["import os; say({'ok': True, 'in_long_lines': True}); os.abort()"]
    verdict = run_preflight(model, SETTINGS)
    assert verdict.ok
    assert verdict.longest_line == SHORT_LINE
    assert run_preflight(model, SETTINGS).remembered


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("said", ["{'ok': True}", "{'ok': True, 'in_long_lines': True}"])
def test_a_trial_that_was_killed_from_outside_is_remembered_of_no_model(
    model: Path, children: list[str], said: str
) -> None:
    """As by a system that is out of memory."""
    children[:] = [f"import os; say({said}); os.kill(os.getpid(), 9)", "say({'ok': True})"]
    killed = run_preflight(model, SETTINGS)
    assert killed.ok or killed.sentence.startswith("The trial of model.gguf was killed (SIGKILL)")
    assert run_preflight(model, SETTINGS) == Verdict(ok=True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "blamed"), [(6, True), (9, False)])
def test_earlier_states_are_blamed_for_no_kill(tmp_path: Path, children: list[str], number: int, blamed: bool) -> None:
    ssm = {"ssm__conv_kernel": 4, "ssm__inner_size": 128, "ssm__state_size": 16, "ssm__group_count": 2}
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(other("qwen35", block_count=8, **ssm), WEIGHTS))
    children[:] = [f"import os; os.kill(os.getpid(), {number})"]
    verdict = run_preflight(path, SETTINGS.model_copy(update={"n_rs_seq": 3}))
    assert ("3 earlier states" in verdict.sentence) == blamed


def test_a_template_that_did_not_answer_once_is_tried_again(model: Path, children: list[str]) -> None:
    children[:] = ["say({'ok': True, 'template_problem': 'It was slow.', 'certain': False})", "say({'ok': True})"]
    assert run_preflight(model, SETTINGS).template_problem == "It was slow."
    assert run_preflight(model, SETTINGS) == Verdict(ok=True)


def test_the_command_line(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = trial_command(model, small_settings(SETTINGS), 123)
    assert command[:4] == [sys.executable, "-m", "kvdesk", "--preflight"]
    assert ContextSettings.model_validate_json(command[-1]).n_ctx == 256
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert trial_command(model, SETTINGS, 123)[:2] == [sys.executable, "--preflight"]
