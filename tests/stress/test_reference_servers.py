"""Servers of tools that nobody here wrote: the reference servers of PyPI, with 30 calls that a person could want.

`KVDESK_TOOL_SERVERS` is the `bin` folder of an environment with mcp-server-git, mcp-server-sqlite, mcp-server-time and
mcp-server-fetch; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from kvdesk.tools.schemas import offer
from tests.tools.conftest import Heard

BIN = os.environ.get("KVDESK_TOOL_SERVERS", "")
pytestmark = [
    pytest.mark.stress,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not BIN, reason="KVDESK_TOOL_SERVERS names no folder"),
]
TOKYO = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
TASKS: dict[str, tuple[tuple[str, dict[str, Any], str], ...]] = {
    "git": (
        ("git_status", {}, "a.txt"),
        ("git_log", {}, "First"),
        ("git_diff_unstaged", {}, "+three"),
        ("git_add", {"files": ["a.txt"]}, "staged"),
        ("git_diff_staged", {}, "+three"),
        ("git_commit", {"message": "Second"}, "committed"),
        ("git_log", {"max_count": 1}, "Second"),
        ("git_show", {"revision": "HEAD"}, "+three"),
        ("git_create_branch", {"branch_name": "side"}, "side"),
        ("git_checkout", {"branch_name": "side"}, "side"),
        ("git_branch", {"branch_type": "local"}, "side"),
        ("git_show", {"revision": "no-such-revision"}, ""),
        ("git_checkout", {"branch_name": "--force"}, ""),
        ("git_log", {"repo_path": "/"}, ""),
    ),
    "sqlite": (
        ("list_tables", {}, "[]"),
        ("create_table", {"query": "CREATE TABLE t (a INTEGER, b TEXT)"}, "created"),
        ("list_tables", {}, "t"),
        ("describe_table", {"table_name": "t"}, "INTEGER"),
        ("write_query", {"query": "INSERT INTO t VALUES (1, 'äöü')"}, "1"),
        ("read_query", {"query": "SELECT b FROM t"}, "äöü"),
        ("read_query", {"query": "DROP TABLE t"}, ""),
        ("read_query", {"query": "SELECT * FROM nowhere"}, ""),
        ("append_insight", {"insight": "One row."}, "nsight"),
    ),
    "time": (
        ("get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"),
        ("get_current_time", {"timezone": "Nowhere"}, ""),
        ("convert_time", TOKYO, "21:00"),
        ("convert_time", {**TOKYO, "time": "25:00"}, ""),
    ),
    "fetch": (
        ("fetch", {"url": "PAGE"}, "Hello from a page"),
        ("fetch", {"url": "PAGE", "max_length": 5}, "Hello"),
        ("fetch", {"url": "http://127.0.0.1:9/"}, ""),
    ),
}
"""Of each server: tool, arguments, and what the result has; "" where it is an error, which not every server marks."""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"Hello from a page" if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that is called
        """Nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def repository(folder: Path) -> Path:
    repo = folder / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("one\ntwo\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-qm", "First"]):
        subprocess.run(["git", *command], cwd=repo, check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@b")):
        subprocess.run(["git", "config", name, value], cwd=repo, check=True)
    (repo / "a.txt").write_text("one\ntwo\nthree\n")
    return repo


def server(name: str, folder: Path) -> ToolServer:
    args = {
        "git": ("--repository", str(repository(folder))) if name == "git" else (),
        "sqlite": ("--db-path", str(folder / "test.db")),
        "time": ("--local-timezone", "UTC"),
        "fetch": ("--ignore-robots-txt", "--allow-private-ips"),
    }[name]
    return ToolServer(name="test", command=str(Path(BIN) / f"mcp-server-{name}"), args=args)


@pytest.mark.parametrize("name", TASKS)
def test_calls_that_a_person_could_want(name: str, tmp_path: Path, page: str) -> None:
    heard = Heard()
    with closing(heard.clients):
        listed = heard.started(server(name, tmp_path))
        schemas = {tool["function"]["name"] for tool in json.loads(offer([("test", listed.tools)]).text)}
        assert {tool for tool, _, _ in TASKS[name]} <= schemas
        for tool, arguments, wanted in TASKS[name]:
            given: dict[str, Any] = {key: page if value == "PAGE" else value for key, value in arguments.items()}
            if name == "git":
                given = {"repo_path": str(tmp_path / "repo"), **given}
            found = heard.call(tool, most=10_000, **given)
            assert wanted in found.text, (tool, found.text)
            assert found.text
            assert not (wanted and found.failed), (tool, found.text)
