"""What the command line says: its commands, and one sentence about wrong input."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kvdesk.__main__ import COMMANDS, main
from kvdesk.cli import checkout, options, selftest
from kvdesk.cli.parser import Parser
from kvdesk.errors import UserError


def said_to(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The whole of standard error; the command must have ended with 2 and written nothing else."""
    code: object
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    return err


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert out.startswith("usage: kvdesk [FILE]\n       kvdesk COMMAND")
    assert all(f"  kvdesk {name} " in out and what in out for name, what in COMMANDS.items())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["wibble"], "wibble is no command and no file. `kvdesk --help` lists the commands."),
        (["chta"], "chta is no command and no file. Did you mean `kvdesk chat`?"),
        (["none.gguf"], "There is no file none.gguf."),
        (["none/model"], "There is no file none/model."),
        (["."], ". is a folder; kvdesk opens a GGUF file."),
        (["--wibble"], "kvdesk: unrecognized arguments: --wibble. `kvdesk --help` shows the usage."),
        (["selftest", "x"], "kvdesk selftest: unrecognized arguments: x. `kvdesk selftest --help` shows the usage."),
    ],
)
def test_wrong_input_gets_one_sentence(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said_to(arguments, capsys) == sentence + "\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["chat", "--n-ctx", "abc"],
        ["bench", "x"],
        ["audit", "--ops", "-"],
        ["audit", "--ops", "0"],
        ["replay"],
        ["demo", "--x"],
    ],
)
def test_wrong_options_of_a_command_get_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    err = said_to(arguments, capsys)
    assert err.startswith(f"kvdesk {arguments[0]}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("arguments", "exact", "graph_tokens"), [([], False, 512), (["--exact"], True, 32)])
def test_exact_is_one_switch(arguments: list[str], exact: bool, graph_tokens: int) -> None:
    parser = Parser("", "")
    options.add_context(parser)
    settings = options.context_settings(parser.parse_args([*arguments, "--threads", "3"]))
    assert (settings.exact, settings.graph_tokens) == (exact, graph_tokens)
    assert settings.decode_threads == (1 if exact else 3)


def test_what_needs_a_checkout_says_so_in_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout.of_checkout("tour.command").main
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "kvdesk" / "cli" / "checkout.py"))
    with pytest.raises(UserError, match=r"in a checkout of kvdesk's source"):
        checkout.of_checkout("tour.command")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ImportError("libEGL.so.1: cannot open shared object file: No such file or directory"), "libEGL.so.1"),
        (ModuleNotFoundError("No module named 'PySide6'", name="PySide6"), "(PySide6 is missing)"),
    ],
)
@pytest.mark.usefixtures("own_home")
def test_what_is_not_installed_is_one_sentence(
    error: ImportError, sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the self-test, which is there to find it."""
    monkeypatch.setattr(selftest, "_run", fails_with(error))
    err = said_to(["selftest"], capsys)
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("own_home")
def test_another_error_of_an_import_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_run", fails_with(ImportError("cannot import name 'a' from 'kvdesk'")))
    with pytest.raises(ImportError, match="cannot import name"):
        main(["selftest"])


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The self-test takes another one."""
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))


def fails_with(error: Exception) -> Callable[..., int]:
    def run(*_: object, **__: object) -> int:
        raise error

    return run
