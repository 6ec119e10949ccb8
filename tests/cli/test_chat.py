"""What `kvdesk chat` says beside its answers."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kvdesk.__main__ import main
from kvdesk.cli.chats_there import chats_there
from tests.backends.local.tiny_models import write
from tests.store.values import conversation


@pytest.mark.usefixtures("models_are_tried")
def test_a_chat_template_that_is_replaced_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KVDESK_LANGUAGE", "en")
    path = write(tmp_path / "model.gguf", "llama", text=True, more=lambda out: out.add_chat_template("{% for m in"))
    assert main(["chat", "--model", str(path), "--prompt", "hi", "--max-tokens", "1", "--n-ctx", "256"]) == 0
    assert capsys.readouterr().err.startswith("The model's chat template cannot be used, so a plain one is: ")


ARGUMENTS = ["chat", "--max-tokens", "2", "--n-ctx", "256", "--json"]


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KVDESK_LANGUAGE", "en")
    return tmp_path / "home"


@pytest.mark.usefixtures("home")
def test_from_a_pipe_each_line_is_a_message(
    talking_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Hi.\n\r\n/why\n\xff"), encoding="utf-8"))
    assert main([*ARGUMENTS, "--model", str(talking_file)]) == 0
    turns = lines(capsys)
    assert [turn["turn"] for turn in turns] == [1, 2, 3]  # a slash is no command here, and an empty line is nothing
    assert turns[1]["reused_tokens"] > 0


@pytest.mark.usefixtures("home")
def test_a_kept_chat_goes_on(talking_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGUMENTS, "--model", str(talking_file), "--prompt", "The sea", "--keep"]) == 0
    assert main([*ARGUMENTS, "--model", str(talking_file), "--prompt", "The sky.", "--chat", "The sea"]) == 0
    first, second = lines(capsys)
    assert second["prompt_tokens"] > first["prompt_tokens"] + first["generated_tokens"]
    with chats_there() as store:
        (kept,) = store.conversations()
        assert [message.role for message in store.all_messages(kept.id)] == ["user", "assistant"] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX is the full disk")
@pytest.mark.usefixtures("home")
def test_what_could_not_be_saved_is_an_error_at_the_end(
    talking_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever continues the chat would miss it. Without room the chats can still be read."""
    import resource

    monkeypatch.setattr("kvdesk.store.addition.PIECE", 1)
    with chats_there() as store:
        left = store.begin_addition([conversation("a"), conversation("b")])
        assert left.step()  # as when an import is killed
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        assert main([*ARGUMENTS, "--model", str(talking_file), "--prompt", "hi", "--keep"]) == 1
        assert "kvdesk was closed, and 2 messages could not be saved." in capsys.readouterr().err
        with chats_there() as store:
            assert store.conversations() == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with chats_there() as store:
        assert store.leftover() is None


@pytest.mark.usefixtures("home")
def test_a_chat_that_is_not_kept_leaves_nothing(talking_file: Path, home: Path) -> None:
    assert main([*ARGUMENTS, "--model", str(talking_file), "--prompt", "hi"]) == 0
    assert not (home / "kvdesk.sqlite3").exists()


@pytest.mark.usefixtures("home")
def test_no_such_chat_and_a_store_in_use_are_said(
    talking_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kvdesk.store.store.BUSY_MS", 1)
    arguments = [*ARGUMENTS, "--model", str(talking_file), "--prompt", "hi"]
    assert main([*arguments, "--chat", "nothing"]) == 2
    assert "No chat has the id or title nothing." in capsys.readouterr().err
    with chats_there():
        assert main([*arguments, "--keep"]) == 2
    assert "open in kvdesk's window" in capsys.readouterr().err


def test_probabilities_are_written_with_each_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KVDESK_LANGUAGE", "en")
    path = write(tmp_path / "model.gguf", "llama", text=True)
    options = "--prompt hi --max-tokens 3 --n-ctx 256 --temperature 0"
    asked = ["chat", "--model", str(path), *options.split()]
    assert main([*asked, "--logprobs", "--json"]) == 0
    turn = json.loads(capsys.readouterr().out)
    assert len(turn["logprobs"]) == turn["generated_tokens"] > 0
    for one in turn["logprobs"]:
        assert (one["rank"], one["id"]) == (1, one["top_logprobs"][0]["id"])
        assert len(one["top_logprobs"]) == 8
        assert one["logprob"] == one["top_logprobs"][0]["logprob"] < 0
    assert main([*asked, "--logprobs"]) == 0
    assert capsys.readouterr().out.count("%") == 8 * turn["generated_tokens"]
    assert main([*asked, "--json"]) == 0
    assert "logprobs" not in json.loads(capsys.readouterr().out)
