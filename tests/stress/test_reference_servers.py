"""Tool servers that nobody here wrote: reference servers of PyPI and npm, with 60 calls that a person could want.

`KVDESK_TOOL_SERVERS` names the folders, separated as those of PATH, of mcp-server-git, -sqlite (with `mcp<2`), -time,
-fetch, and npm's mcp-server-filesystem, -memory and -everything. Those that are in none are skipped.
"""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from kvdesk.settings import ToolServer
from kvdesk.tools.schemas import offer
from tests.tools.conftest import Heard

BIN = os.environ.get("KVDESK_TOOL_SERVERS", "")
ADA = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
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
    "filesystem": (
        ("list_allowed_directories", {}, "files"),
        ("write_file", {"path": "FILES/a.txt", "content": "one\ntwo äöü\n"}, "uccess"),
        ("read_text_file", {"path": "FILES/a.txt"}, "two äöü"),
        ("read_text_file", {"path": "FILES/a.txt", "head": 1}, "one"),
        ("edit_file", {"path": "FILES/a.txt", "edits": [{"oldText": "one", "newText": "1"}]}, "+1"),
        ("create_directory", {"path": "FILES/deep/er"}, "uccess"),
        ("move_file", {"source": "FILES/a.txt", "destination": "FILES/deep/b.txt"}, "uccess"),
        ("search_files", {"path": "FILES", "pattern": "**/*.txt"}, "b.txt"),
        ("directory_tree", {"path": "FILES"}, "deep"),
        ("get_file_info", {"path": "FILES/deep/b.txt"}, "size"),
        ("read_multiple_files", {"paths": ["FILES/deep/b.txt", "FILES/none"]}, "two"),
        ("read_text_file", {"path": "/etc/hostname"}, ""),
        ("read_text_file", {"path": "FILES/../../x"}, ""),
    ),
    "memory": (
        ("create_entities", {"entities": [ADA]}, "Ada"),
        ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["is 36"]}]}, "is 36"),
        ("create_relations", {"relations": [{"from": "Ada", "to": "Ada", "relationType": "is"}]}, "Ada"),
        ("search_nodes", {"query": "programs"}, "is 36"),
        ("read_graph", {}, "Ada"),
        ("delete_entities", {"entityNames": ["Ada"]}, "deleted"),
        ("open_nodes", {"names": ["Ada"]}, "[]"),
        ("create_entities", {"entities": "Ada"}, ""),
    ),
    "everything": (
        ("echo", {"message": "Grüße"}, "Grüße"),
        ("get-sum", {"a": 2, "b": 3}, "5"),
        ("get-tiny-image", {}, "not shown to the model"),
        ("get-resource-links", {"count": 2}, "demo://"),
        ("get-resource-reference", {"resourceId": 1, "resourceType": "Text"}, "esource"),
        ("get-structured-content", {"location": "Chicago"}, "temperature"),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}, "image"),
        ("trigger-long-running-operation", {"duration": 0.1, "steps": 2}, "ompleted"),
        ("get-env", {}, "PATH"),
    ),
    "fetch": (
        ("fetch", {"url": "PAGE"}, "Hello from a page"),
        ("fetch", {"url": "PAGE", "max_length": 5}, "Hello"),
        ("fetch", {"url": "http://127.0.0.1:9/"}, ""),
    ),
}
"""Of each server: tool, arguments, and what the result has; "" if it is an error, which not every server marks."""


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
        "filesystem": (str(folder / "files"),),
        "memory": (),
        "everything": (),
    }[name]
    found = shutil.which(f"mcp-server-{name}", path=BIN)
    if found is None:
        pytest.skip(f"no mcp-server-{name} there")
    (folder / "files").mkdir()
    return ToolServer(name="test", command=found, args=args)


@pytest.mark.parametrize("name", TASKS)
def test_calls_that_a_person_could_want(name: str, tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with Heard() as heard:
        listed = heard.started(server(name, tmp_path), MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
        schemas = {tool["function"]["name"] for tool in json.loads(offer([("test", listed.tools)]).text)}
        assert {tool for tool, _, _ in TASKS[name]} <= schemas
        for tool, arguments, wanted in TASKS[name]:
            text = json.dumps(arguments).replace("PAGE", page).replace("FILES", (tmp_path / "files").as_posix())
            given: dict[str, Any] = json.loads(text)
            if name == "git":
                given = {"repo_path": str(tmp_path / "repo"), **given}
            found = heard.call(tool, most=10_000, **given)
            assert wanted in found.text, (tool, found.text)
            assert found.text
            assert "OPENAI_API_KEY" not in found.text
            assert not (wanted and found.failed), (tool, found.text)
