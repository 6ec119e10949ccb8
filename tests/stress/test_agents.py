"""Real agents do a task of five turns on this cache, started by `kvdesk launch`: what they reused, and that the score
says so.

KVDESK_AGENTS=DIR[:DIR]   folders of PATH in which claude, codex, opencode, qwen and aider are

Each has an empty home and folder, keys of a person that must not be used, and a proxy that leads nowhere: it reaches
this computer alone. The model is tiny, and a grammar forces its answers, so that the agent is tested: four calls of the
tool that reads a file, then a text.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from kvdesk.agents import AGENTS
from kvdesk.backends.local.engine import Engine
from kvdesk.cache.reuse.score import Score, total
from kvdesk.call_format import GENERIC
from kvdesk.protocol.cache import ContextReady, RecordingTaken, TakeRecording
from kvdesk.protocol.chat import Generate, LoadModel, TurnEnded, TurnStarted
from kvdesk.protocol.model import LocalFile
from kvdesk.server.bridge import AnswerEvent, HostBridge
from kvdesk.server.config import Key, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings
from tests.backends.heard import Heard
from tests.places import ROOT

PROGRAMS: Final = os.environ.get("KVDESK_AGENTS", "")
KEY: Final = "sk-kvdesk-of-a-test"
N_CALLS: Final = 4
NOTES: Final = [f"notes{i}.txt" for i in range(1, N_CALLS + 1)]
TASK: Final = f"Read the files {', '.join(NOTES)}, one after the other, and then say that it is done."
ARGUMENTS: Final = {
    "claude": ["-p", TASK],
    "codex": ["exec", "--skip-git-repo-check", TASK],
    "opencode": ["run", TASK],
    "qwen": ["-p", TASK],
    "aider": ["--no-git", "--no-pretty", *NOTES],
}
TYPED: Final = "".join(f"What does {name} say?\n" for name in [*NOTES, "this folder"])
"""aider has no tools: five questions are typed."""
MOST_READ: Final = 300
"""Tokens that a turn reads after the first: what is new, and the reminder that aider writes behind it each time."""
READS: Final = ("Read", "read", "read_file", "exec_command", "shell", "shell_command")


def call_of(tools: list[dict[str, Any]], n: int, folder: Path) -> tuple[str, dict[str, Any]]:
    """The call that reads file `n`: the first tool that can, with what its schema requires."""
    offered = {tool["function"]["name"]: tool["function"] for tool in tools}
    name = next(name for name in READS if name in offered)
    schema = offered[name]["parameters"]
    given: dict[str, Any] = {}
    for key in schema.get("required", ()):
        if "path" in key.lower():
            given[key] = str(folder / NOTES[n])
        elif key in ("command", "cmd"):
            command = ["cat", NOTES[n]]
            given[key] = command if schema["properties"][key].get("type") == "array" else " ".join(command)
    return name, given


def forced(command: Generate, folder: Path) -> Generate:
    """The command whose answer can only be the next step of the task."""
    n_done = sum(message.role == "tool" for message in command.messages)
    text = "It is done."
    if command.tools and n_done < N_CALLS:
        tools = json.loads(command.tools)
        if any(tool["function"]["name"] in READS for tool in tools):
            text = GENERIC.written([call_of(tools, n_done, folder)])
    grammar = f"root ::= {json.dumps(text, ensure_ascii=False)}"
    sampling = command.sampling.model_copy(update={"grammar": grammar, "json_schema": ""})
    given = {name: getattr(command, name) for name in Generate.__annotations__}
    return Generate(**{**given, "sampling": sampling})


class Served(Heard):
    """A server that forces answers, and what its engine told."""

    wait_s = 300.0

    def __init__(self) -> None:
        super().__init__(Engine)
        self.server = Server(self.host, ServerConfig(port=0, keys=(Key(KEY),)))

    def n_decoded(self) -> int:
        """Tokens that were put into cells, by the engine's journal."""
        self.send(TakeRecording())
        self.wait(lambda: self.of(RecordingTaken))
        recording = self.of(RecordingTaken)[-1].recording
        entries = recording.operations(recording.first, recording.last)
        return sum(entry.n_cells for entry in entries if entry.operation.name in ("prefill", "decode"))

    def close(self) -> None:
        self.server.close()
        super().close()


@pytest.fixture
def served(talking_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    ask = HostBridge.ask

    def ask_forced(self: HostBridge, command: Generate, put: Callable[[AnswerEvent], None]) -> None:
        ask(self, forced(command, folder), put)

    monkeypatch.setattr(HostBridge, "ask", ask_forced)
    with closing(Served()) as found:
        found.send(LoadModel(LocalFile(talking_file), ContextSettings(n_ctx=65536)))
        found.wait(lambda: found.of(ContextReady))
        found.server.start()
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Empty but for the notes."""
    found = tmp_path / "work"
    found.mkdir()
    for name in NOTES:
        (found / name).write_text(f"This is what {name} says.\n", encoding="utf-8")
    return found


def launch(agent: str, served: Served, folder: Path) -> subprocess.CompletedProcess[str]:
    """`kvdesk launch` as a person types it, who has cloud keys and no network."""
    home = folder.parent / "home"
    home.mkdir()
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    environment = {
        **nowhere,
        "PATH": os.pathsep.join([PROGRAMS, os.defpath, str(Path(shutil.which("node") or "/").parent)]),
        "HOME": str(home),
        "KVDESK_HOME": str(home / "kvdesk"),
        "KVDESK_LANGUAGE": "en",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "of-a-person",
        "ANTHROPIC_API_KEY": "of-a-person",
    }
    root = served.server.url.removesuffix("/v1")
    command = [
        sys.executable,
        "-m",
        "kvdesk",
        "launch",
        agent,
        "--url",
        root,
        "--api-key",
        KEY,
        "--",
        *ARGUMENTS[agent],
    ]
    return subprocess.run(
        command, check=False, cwd=folder, env=environment, input=TYPED, capture_output=True, text=True, timeout=3000
    )


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("agent", [agent for agent in AGENTS if PROGRAMS and shutil.which(agent, path=PROGRAMS)])
def test_an_agent_works_on_a_warm_cache_and_its_score_is_the_engines(agent: str, served: Served, folder: Path) -> None:
    ran = launch(agent, served, folder)
    said = f"{ran.stdout[-4000:]}\n{ran.stderr[-8000:]}"
    assert ran.returncode == 0, said
    assert "It is done." in ran.stdout, said
    ended, started = [event.stats for event in served.of(TurnEnded)], served.of(TurnStarted)
    score = total(Score().with_request(stats) for stats in ended)
    assert score.sentence in ran.stderr, said
    assert all(line in ran.stderr for line in score.lines), said
    longest = sorted(started, key=lambda event: event.prompt_tokens)[-N_CALLS - 1 :]
    assert len(longest) == N_CALLS + 1, said
    turns = [(event.prompt_tokens, event.reused_tokens) for event in longest]
    sys.stdout.write(f"{agent}: turns {turns}; {score.sentence}; {score.lines}\n")
    assert all(n - reused <= MOST_READ for n, reused in turns[1:]), f"{turns}\n{said}"
    n_counted = sum(stats.prefilled_tokens + stats.generated_tokens for stats in ended)
    assert score.prompt_tokens - score.reused_tokens == sum(stats.prefilled_tokens for stats in ended)
    assert 0 <= n_counted - served.n_decoded() <= len(ended), "the last token of an answer is not decoded"
    assert not re.search(r"of-a-person", said)
