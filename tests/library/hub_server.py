"""A server on this machine that speaks the protocol of Hugging Face's hub, and another that keeps the files, its CDN.

/api/models?search=… and /api/models/{repo} answer as the hub does; /{repo}/resolve/{revision}/{file} gives
X-Linked-Etag, X-Linked-Size and X-Repo-Commit and redirects to the other server, which knows Range and If-Range.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

COMMIT = "a" * 40
PIECE = 16 << 10
RESOLVE = re.compile(r"/([\w.-]+/[\w.-]+)/resolve/([^/]+)/(.+)")


@dataclass
class Asked:
    """A GET that the CDN was asked: the first byte it sent, and headers in lower case."""

    start: int
    headers: dict[str, str]


@dataclass
class HubServer:
    """files: by repository and name. The rest changes how it behaves.

    claimed    sha256 that the hub gives where it is not that of the content, by file
    cut_at     bytes after which the CDN ends the connection, one for each GET, from the first
    busy       requests that the hub refuses with 503
    refused    statuses that the CDN answers instead of the file, one for each GET, from the first
    leads_to   where the hub redirects to instead of its CDN
    on_piece   called with the bytes that a GET has sent so far
    """

    files: dict[str, dict[str, bytes]]
    token: str = ""
    ranges: bool = True
    claimed: dict[str, str] = field(default_factory=dict)
    cut_at: list[int] = field(default_factory=list)
    busy: int = 0
    refused: list[int] = field(default_factory=list)
    leads_to: str = ""
    on_piece: Callable[[int], None] | None = None
    asked: list[Asked] = field(default_factory=list)
    hub_authorizations: list[str | None] = field(default_factory=list)

    def __enter__(self) -> HubServer:
        self._cdn = self._serve(_Cdn)
        self._hub = self._serve(_Hub)
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._hub.server_address[1]}"

    @property
    def cdn(self) -> str:
        """By another name, so that it is another host."""
        return f"http://localhost:{self._cdn.server_address[1]}"

    def content(self, sha256: str) -> bytes | None:
        """Of the file that the hub gives this SHA-256."""
        contents = [(name, content) for files in self.files.values() for name, content in files.items()]
        return next((content for name, content in contents if self.sha256(name, content) == sha256), None)

    def sha256(self, name: str, content: bytes) -> str:
        return self.claimed.get(name) or hashlib.sha256(content).hexdigest()

    def _serve(self, handler: type[_Handler]) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type(handler.__name__, (handler,), {"of": self}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server


class _Handler(BaseHTTPRequestHandler):
    of: HubServer

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Hub(_Handler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        of, url = self.of, urlsplit(self.path)
        authorization = self.headers.get("Authorization")
        of.hub_authorizations.append(authorization)
        if of.busy:
            of.busy -= 1
            return self.answer(503)
        if of.token and authorization != f"Bearer {of.token}":
            return self.answer(401, X_Error_Code="GatedRepo", X_Error_Message="gated")
        if url.path == "/api/models":
            words = parse_qs(url.query)["search"][0].lower().split()
            found = [self.model(repo) for repo in of.files if all(word in repo.lower() for word in words)]
            return self.json(found)
        if url.path.startswith("/api/models/"):
            repo = url.path.removeprefix("/api/models/")
            if repo not in of.files:
                return self.answer(404, X_Error_Code="RepoNotFound")
            return self.json({**self.model(repo), "siblings": [self.sibling(repo, name) for name in of.files[repo]]})
        match = RESOLVE.fullmatch(url.path)
        content = of.files.get(match[1], {}).get(match[3]) if match else None
        if match is None or content is None:
            return self.answer(404, X_Error_Code="EntryNotFound")
        sha256 = of.sha256(match[3], content)
        self.answer(
            302,
            X_Repo_Commit=COMMIT,
            X_Linked_Etag=f'"{sha256}"',
            X_Linked_Size=str(len(content)),
            Location=of.leads_to or f"{of.cdn}/{sha256}?signature=secret",
        )
        return None

    def json(self, value: object) -> None:
        self.answer(200, json.dumps(value).encode(), Content_Type="application/json")

    def model(self, repo: str) -> dict[str, object]:
        tags = ["gguf", "license:apache-2.0"]
        return {"id": repo, "modelId": repo, "sha": COMMIT, "downloads": 7, "likes": 1, "gated": False, "tags": tags}

    def sibling(self, repo: str, name: str) -> dict[str, object]:
        content = self.of.files[repo][name]
        lfs = {"sha256": self.of.sha256(name, content), "size": len(content), "pointerSize": 134}
        return {"rfilename": name, "size": len(content), "blobId": "b" * 40, "lfs": lfs}


class _Cdn(_Handler):
    def do_GET(self) -> None:
        of = self.of
        name = urlsplit(self.path).path.strip("/")
        content = of.content(name)
        if content is None:
            return self.answer(404)
        etag, start = f'"cdn-{name[:16]}"', 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and of.ranges and self.headers.get("If-Range", etag) == etag:
            start = int(wanted[1])
        if of.refused:
            return self.answer(of.refused.pop(0), Content_Range=f"bytes */{len(content)}")
        of.asked.append(Asked(start, {key.lower(): value for key, value in self.headers.items()}))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = of.cut_at.pop(0) if of.cut_at else len(content)
        sent = 0
        try:
            for at in range(start, len(content), PIECE):
                self.wfile.write(content[at : at + PIECE])
                sent += PIECE
                if of.on_piece is not None:
                    of.on_piece(sent)
                if sent >= end:
                    break
        except OSError:
            pass
        return None
