"""The first token that differs, asked from a real llama-server: it is the first that the server itself does not reuse,
whether its slots show their prompts or the log has the messages alone. Servers of 2026 do not log bodies any more: the
lines of older ones are added.

KVDESK_LLAMA_SERVER=…/llama-server   where it is (`serving`)
"""

import json
import re
import time
from pathlib import Path
from typing import Final

import pytest

from kvdesk.engine_log.findings import HITS, Finding
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog
from kvdesk.engine_log.record import Request
from tests.stress.serving import llama_server, needs_llama_server

ENDED: Final = b" release: id "
OLDER: Final = """\
0.01.000.000 I srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200
0.01.000.000 D srv  log_server_r: request:  {body}
0.01.000.000 D srv  log_server_r: response: {{}}
"""
WRITTEN_S: Final = 60.0
QUESTIONS: Final = ("Is the lamp lit, and is it bright?", "Is the horn heard?", "Is the lamp lit, or out?")


@pytest.mark.stress
@pytest.mark.timeout(1200)
@needs_llama_server
@pytest.mark.parametrize("by", ["/slots", "/apply-template"])
def test_it_is_where_the_server_says(by: str, talking_file: Path, tmp_path: Path) -> None:
    said, missed = list[str](), list[Request]()

    def note(request: Request, finding: Finding) -> None:
        if finding.cause not in HITS:
            missed.append(request)

    live = LiveLog(said.append, with_cells=False, on_request=note, asks=lambda: True)
    log, at = tmp_path / "server.log", 0
    shown = {"LLAMA_SERVER_SLOTS_DEBUG": "1"} if by == "/slots" else {}
    with (
        log.open("wb") as file,
        llama_server(
            talking_file, "-c", "2048", "-np", "1", "-lv", "5", "--cache-ram", "0", environment=shown, log=file
        ) as http,
    ):
        for n in range(6):
            messages = [{"role": "system", "content": f"Day {n // 2}. {'You keep a lighthouse. ' * 20}"}]
            messages.append({"role": "user", "content": QUESTIONS[n % 3]})
            body = json.dumps({"messages": messages, "max_tokens": 4, "temperature": 0.0})
            http.post("/v1/chat/completions", content=body)
            over = time.monotonic() + WRITTEN_S
            while ENDED not in (new := log.read_bytes()[at:]) or not new.endswith(b"\n"):
                assert time.monotonic() < over, "the log does not show the end of the request"
                time.sleep(0.01)
            at += len(new)
            if by == "/apply-template":
                new += OLDER.format(body=body).encode()
            for line in read_lines([new]):
                live.feed(line)
            live.wait_for_answers()
        live.close()
    found = [int(match[1]) for text in said if (match := re.search(rf"{by} and /tokenize: (\d+)\.", text))]
    assert found == [request.reused for request in missed][-len(found) :]
    assert len(found) >= 2, said
