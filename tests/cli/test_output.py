"""What is written where the output is not UTF-8, and where the folder of kvdesk cannot be one."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvdesk.__main__ import COMMANDS, main
from tests.backends.local.talking import trust
from tests.places import ROOT

GRAMMAR = 'root ::= "你好 😀 grüße"\n'
TEXT = "你好 😀 grüße"


def kvdesk(*arguments: str, home: Path | str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    given = os.environ | {"KVDESK_HOME": str(home), "KVDESK_LANGUAGE": "en"} | environment
    return subprocess.run(
        [sys.executable, "-m", "kvdesk", *arguments], cwd=ROOT, env=given, capture_output=True, timeout=60, check=False
    )


@pytest.fixture
def chatting(tmp_path: Path) -> list[str]:
    """The arguments of a chat whose answer is `TEXT`."""
    grammar = tmp_path / "unicode.gbnf"
    grammar.write_text(GRAMMAR, "utf-8")
    return ["chat", "--prompt", "hi", "--grammar-file", str(grammar)]


@pytest.fixture
def asked(
    chatting: list[str], talking_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., bytes]:
    """What a chat in this process writes where the output has an encoding."""

    def run(encoding: str, *arguments: str) -> bytes:
        out = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding))
            assert main([*chatting, "--model", str(talking_file), *arguments]) == 0
            sys.stdout.flush()
            written = out.getvalue()
        assert capsys.readouterr().err == ""
        return written

    return run


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("cp1252", b"\\u4f60\\u597d \\ud83d\\ude00 gr\xfc\xdfe"),
        ("cp936", "你好 \\ud83d\\ude00 grü\\u00dfe".encode("cp936")),
        ("utf-8", TEXT.encode()),
    ],
)
def test_an_answer_is_written_in_every_encoding(asked: Callable[..., bytes], encoding: str, shown: bytes) -> None:
    assert asked(encoding).startswith(shown)


def test_a_process_writes_its_answer_in_ascii(
    chatting: list[str], talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    trust(talking_file)
    ended = kvdesk(*chatting, "--model", str(talking_file), home=tmp_path, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(rb"\u4f60\u597d \ud83d\ude00 gr\u00fc\u00dfe")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_json_stays_json(asked: Callable[..., bytes], encoding: str) -> None:
    assert json.loads(asked(encoding, "--json").decode(encoding))["text"] == TEXT


@pytest.mark.parametrize("command", ["", *(pytest.param(name, marks=pytest.mark.matrix) for name in COMMANDS)])
def test_help_is_written_in_every_encoding(tmp_path: Path, command: str) -> None:
    arguments = [command, "--help"] if command else ["--help"]
    ended = kvdesk(*arguments, home=tmp_path, PYTHONIOENCODING="ascii", KVDESK_LANGUAGE="zh_CN")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u" in ended.stdout


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_a_home_that_is_no_folder_gets_one_sentence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a file"
    file.touch()
    for home in (file, file / "below", Path("a\0b")):
        monkeypatch.setattr(os, "environ", {**os.environ, "KVDESK_HOME": str(home)})
        monkeypatch.delitem(os.environ, "KVDESK_LANGUAGE", raising=False)
        assert main([command] if command else []) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"The folder {home} cannot be made: ")
        assert err.count("\n") == 1


def test_that_sentence_is_written_in_every_encoding(tmp_path: Path) -> None:
    file = tmp_path / "файл 😀"
    file.touch()
    ended = kvdesk("export", "--list", home=file, PYTHONIOENCODING="ascii", KVDESK_LANGUAGE="")
    assert ended.returncode == 2
    assert rb"\u0444\u0430\u0439\u043b \ud83d\ude00 cannot be made" in ended.stderr
    assert ended.stderr.count(b"\n") == 1
