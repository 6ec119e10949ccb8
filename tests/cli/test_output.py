"""What is written where the output is not UTF-8, and where the folder of kvdesk cannot be one."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from kvdesk.__main__ import COMMANDS, main
from kvdesk.cli import serve
from kvdesk.library.preflight import run_preflight
from kvdesk.protocol.cache import UsePolicy
from kvdesk.settings import CachePolicy, ContextSettings
from tests.backends.local.talking import trust
from tests.needs import FULL, needs_full_disk
from tests.places import ROOT

GRAMMAR = 'root ::= "你好 😀 grüße"\n'
TEXT = "你好 😀 grüße"


def kvdesk(
    *arguments: str, home: Path | str, stdout: IO[bytes] | int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "kvdesk", *arguments]
    given = os.environ | {"KVDESK_HOME": str(home), "KVDESK_LANGUAGE": "en"} | environment
    return subprocess.run(command, cwd=ROOT, env=given, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)


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
        ("cp936", "你好 \\ud83d\\ude00 grü\\u00dfe".encode("cp936")),
        pytest.param("cp1252", b"\\u4f60\\u597d \\ud83d\\ude00 gr\xfc\xdfe", marks=pytest.mark.matrix),
        pytest.param("utf-8", TEXT.encode(), marks=pytest.mark.matrix),
    ],
)
def test_an_answer_is_written_in_every_encoding(asked: Callable[..., bytes], encoding: str, shown: bytes) -> None:
    assert asked(encoding).startswith(shown)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("output", "written"), [(Terminal, "␛[2J"), (io.TextIOWrapper, "\x1b[2J")])
def test_an_answer_does_not_command_the_terminal(
    output: type[io.TextIOWrapper], written: str, talking_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output(out, "utf-8"))
        grammar = r'root ::= "\x1b[2J"'
        assert main(["chat", "--prompt", "hi", "--grammar", grammar, "--model", str(talking_file)]) == 0
        said = out.getvalue().decode()
    assert said.startswith(f"{written}\n")


def test_a_process_writes_its_answer_in_ascii(
    chatting: list[str], talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    trust(talking_file)
    ended = kvdesk(*chatting, "--model", str(talking_file), home=tmp_path, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(rb"\u4f60\u597d \ud83d\ude00 gr\u00fc\u00dfe")


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.matrix)])
def test_json_stays_json(asked: Callable[..., bytes], encoding: str) -> None:
    assert json.loads(asked(encoding, "--json").decode(encoding))["text"] == TEXT


@pytest.mark.parametrize("command", ["", *(pytest.param(name, marks=pytest.mark.matrix) for name in COMMANDS)])
def test_help_is_written_in_every_encoding(tmp_path: Path, command: str) -> None:
    arguments = [command, "--help"] if command else ["--help"]
    ended = kvdesk(*arguments, home=tmp_path, PYTHONIOENCODING="ascii", KVDESK_LANGUAGE="zh_CN")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u" in ended.stdout


BAD_HOMES = "a file", "a file/below", "a\0b"


def use_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "KVDESK_HOME": str(home)})
    monkeypatch.delitem(os.environ, "KVDESK_LANGUAGE", raising=False)


@pytest.mark.parametrize("home", BAD_HOMES)
@pytest.mark.parametrize("arguments", [["export", "--list"], ["chat", "--keep", "--prompt", "hi"]])
def test_a_home_that_is_no_folder_gets_one_sentence_where_one_is_needed(
    arguments: list[str], home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a file").touch()
    use_home(tmp_path / home, monkeypatch)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"The folder {tmp_path / home} cannot be made: ")
    assert err.count("\n") == 1


def test_so_does_the_window(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    ended = kvdesk(home=tmp_path / "a file", QT_QPA_PLATFORM="offscreen")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"cannot be made: " in ended.stderr


@pytest.mark.parametrize("home", ["a file", "a file/below", "none"])
def test_what_keeps_nothing_needs_no_home_and_makes_none(
    home: str, talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for a service, whose user has none."""
    (tmp_path / "a file").touch()
    use_home(tmp_path / home, monkeypatch)
    assert main(["--version"]) == 0
    assert main(["doctor", str(tmp_path / "a file")]) == 2
    assert "contains no request" in capsys.readouterr().err
    assert serve._policy(drafts=False) == UsePolicy(CachePolicy())
    assert serve._policy(drafts=True) == UsePolicy(CachePolicy(drafts=True))
    assert [file.name for file in tmp_path.iterdir()] == ["a file"]
    assert run_preflight(talking_file, ContextSettings()).ok


# --- an output that takes no more -----------------------------------------------------------------------------------


PRINTING = [
    ["--help"],
    ["lab", "list"],
    *(pytest.param(words, marks=pytest.mark.matrix) for words in (["--version"], ["export", "--help"])),
]


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")
@pytest.mark.parametrize("arguments", PRINTING)
def test_a_reader_that_went_away_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        ended = kvdesk(*arguments, home=tmp_path, stdout=pipe, PYTHONUNBUFFERED="")
    assert (ended.returncode, ended.stderr) == (141, b"")


@needs_full_disk
@pytest.mark.parametrize("arguments", PRINTING)
def test_a_full_disk_is_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        ended = kvdesk(*arguments, home=tmp_path, stdout=full, PYTHONUNBUFFERED="")
    assert (ended.returncode, ended.stderr) == (1, b"The output cannot be written: No space left on device.\n")


def test_that_sentence_is_written_in_every_encoding(tmp_path: Path) -> None:
    file = tmp_path / "файл 😀"
    file.touch()
    ended = kvdesk("export", "--list", home=file, PYTHONIOENCODING="ascii", KVDESK_LANGUAGE="")
    assert ended.returncode == 2
    assert rb"\u0444\u0430\u0439\u043b \ud83d\ude00 cannot be made" in ended.stderr
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of POSIX is the full disk")
def test_a_watched_server_goes_on_when_its_log_cannot_be_written_any_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import resource

    log, ended = tmp_path / "server.log", tmp_path / "ended"
    server = f"import pathlib; print('x' * 9000, flush=True); print('last'); pathlib.Path({str(ended)!r}).touch()"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        assert main(["watch", "--text", "--log", str(log), "--", sys.executable, "-c", server]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ended.exists()
    said = capsys.readouterr().err
    assert said.count(f"{log} cannot be written any more: File too large.") == 1
    assert "last" in said
