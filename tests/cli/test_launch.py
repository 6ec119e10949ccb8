"""`kvdesk launch` with a real server of a tiny model, and a program that does as an agent does."""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.__main__ import main
from kvdesk.agents import AGENTS
from kvdesk.cli import launch
from kvdesk.errors import UserError
from kvdesk.host.host import Host
from kvdesk.server.config import Key, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ServeSettings, Settings
from kvdesk.store.server_key import key_file, read_key
from kvdesk.store.settings_file import save_settings
from tests.server.conftest import engine  # noqa: F401 - a fixture

ASKS = """
import json, os, sys, urllib.request
assert "PERSON_API_KEY" not in os.environ
system = "The time is {}. You are a careful assistant of a small library by the sea, and answer in one short sentence."
for time in sys.argv[1:]:
    messages = [{"role": "system", "content": system.format(time)}, {"role": "user", "content": "Which is the oldest?"}]
    body = json.dumps({"messages": messages, "max_tokens": 2}).encode()
    headers = {"authorization": "Bearer " + os.environ["AIDER_OPENAI_API_KEY"], "content-type": "application/json"}
    url = os.environ["AIDER_OPENAI_API_BASE"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
print("the agent's own output")
sys.exit(7)
"""
Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a program of this name in PATH, alone. The home is empty, and a cloud key is set."""
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERSON_API_KEY", "cloud")
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def put(name: str, code: str) -> None:
        script = programs / f"{name}.py"
        script.write_text(code, encoding="utf-8")
        if os.name == "nt":
            (programs / f"{name}.cmd").write_text(f'@"{sys.executable}" "{script}" %*\r\n')
            return
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return put


def test_an_agent_runs_on_a_server_of_its_own_and_is_scored(
    install: Install, talking_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install("aider", ASKS)
    options = ["--model", str(talking_file), "--n-ctx", "1024", "--n-seq-max", "2", "--threads", "1"]
    assert main(["launch", "aider", *options, "--", "14:03", "14:03", "14:04"]) == 7
    out, err = capfd.readouterr()
    assert out == "the agent's own output\n"
    assert "with 1,024 tokens of context" in err
    assert "The context is small for an agent" in err
    assert "AIDER_OPENAI_API_KEY=…" in err
    assert "sk-kvdesk" not in err
    assert "AIDER_MAP_REFRESH=files: the map of the repository" in err
    assert "Removed variables in this run: PERSON_API_KEY" in err
    assert "% reused; 1 miss: date or time in the system prompt (1)\n" in err
    assert " prompt tokens in 3 requests, " in err
    assert not key_file().exists(), "the key of a run is not kept"


def test_the_server_of_the_window_is_used_where_it_runs(
    install: Install,
    engine: Host,  # noqa: F811 - the fixture
    capfd: pytest.CaptureFixture[str],
) -> None:
    install("aider", ASKS)
    with closing(Server(engine, ServerConfig(port=0, keys=(Key(read_key(key_file())),)))) as server:
        server.start()
        save_settings(Settings(serve=ServeSettings(port=server.port)), paths.settings_file())
        for times in (["14:03", "14:03"], ["15:00"]):
            assert main(["launch", "aider", "--", *times]) == 7
    err = capfd.readouterr().err
    assert err.count(f"at http://127.0.0.1:{server.port}, with") == 2
    assert " prompt tokens in 2 requests, " in err
    assert " prompt tokens in 1 request, " in err, "each run has a score of its own"


def test_an_agent_that_asks_elsewhere_is_told_of(
    install: Install,
    engine: Host,  # noqa: F811 - the fixture
    capfd: pytest.CaptureFixture[str],
) -> None:
    install("codex", "print('hello')")
    with closing(Server(engine, ServerConfig(port=0))) as server:
        server.start()
        assert main(["launch", "codex", "--url", server.url]) == 0
    assert "kvdesk: No request came.\n  Codex used another server" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["claude"],
            "Claude Code is not installed, or not in PATH. To install it: npm install -g @anthropic-ai/claude-code",
            id="not installed",
        ),
        pytest.param(
            ["aider", "--url", "http://127.0.0.1:9"],
            "There is no kvdesk at http://127.0.0.1:9 that accepts this key.",
            id="no server",
        ),
    ],
)
def test_what_is_missing_is_a_sentence(
    install: Install, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install("aider", ASKS)
    assert main(["launch", *arguments]) == 2
    assert capsys.readouterr().err == sentence + "\n"


def test_a_batch_file_gets_no_argument_that_cmd_would_run() -> None:
    launch._check_for_cmd(["claude", "a & b"])
    launch._check_for_cmd(["claude.CMD", "--model", "a b"])
    for argument in ("a & calc", '"', "%PATH%", "a\nb"):
        with pytest.raises(UserError, match="special meaning on Windows"):
            launch._check_for_cmd(["C:\\npm\\claude.CMD", argument])


def test_every_agent_is_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["launch", "--help"])
    assert "{" + ",".join(AGENTS) + "}" in capsys.readouterr().out
