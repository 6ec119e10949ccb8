"""`kvdesk proxy` as a process: a line a request, a private log where it is asked for, the score at the end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from kvdesk.__main__ import main
from tests.proxy.upstream import Upstream

TIMINGS = {"cache_n": 0, "prompt_n": 100, "prompt_per_second": 50.0, "predicted_n": 7}
SYSTEM = "It is 14:0{}. You are a careful assistant for a large garden, and answer in one short sentence."
if sys.platform == "win32":
    END, FLAGS = signal.CTRL_BREAK_EVENT, subprocess.CREATE_NEW_PROCESS_GROUP
else:
    END, FLAGS = signal.SIGTERM, 0


def test_a_run_has_a_line_a_request_and_a_score_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Upstream() as upstream:
        upstream.headers, upstream.pieces = (
            [("Content-Type", "application/json")],
            [json.dumps({"timings": TIMINGS}).encode()],
        )
        command = [sys.executable, "-m", "kvdesk", "proxy", "--to", upstream.url, "--port", "0", "--log", str(log)]
        environment = {**os.environ, "KVDESK_LANGUAGE": "en", "KVDESK_HOME": str(tmp_path / "home")}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, creationflags=FLAGS) as run:
            assert "only you can read it" in run.stdout.readline()
            at = run.stdout.readline().split(" at ")[1].split()[0]
            for minute in range(2):
                system = {"role": "system", "content": SYSTEM.format(minute)}
                body = {"messages": [system, {"role": "user", "content": "The beans?"}]}
                httpx.post(f"{at}/v1/chat/completions", json=body, headers={"x-api-key": "s3cret"}, trust_env=False)
            lines = [run.stdout.readline() for _ in range(2)]
            run.send_signal(END)
            rest = run.stdout.read()
    assert run.returncode == 0
    assert lines[0].startswith("1. /v1/chat/completions 200: 0 of 100 tokens reused, 100 read; first byte after 0.")
    assert "message 1, content, character 10: Message 1 changed. Usual cause: the system prompt" in lines[1]
    assert rest.startswith("0 % reused; 1 miss: date or time in the system prompt (1)\n  200 prompt tokens")
    assert [json.loads(line)["cause"] for line in log.read_text().splitlines()] == ["nothing", "date"]
    assert "s3cret" not in log.read_text()
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"log.jsonl"}
    if os.name == "posix":
        assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--to", "ftp://127.0.0.1"], "begins with http:// or https://"),
        (["--to", "http://me:secret@127.0.0.1"], "Write the key into the field"),
    ],
)
def test_what_is_no_address_gets_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["proxy", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_log_that_exists_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("mine")
    assert main(["proxy", "--to", "http://127.0.0.1:9", "--log", str(log)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert log.read_text() == "mine"
