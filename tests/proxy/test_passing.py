"""What passes the proxy: every byte, no header of a connection, errors as they are; and what does not."""

import gzip
import http.client
import json
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from kvdesk.proxy.exchange import MOST_BODY
from kvdesk.proxy.server import ProxyServer
from tests.places import free_port
from tests.proxy.upstream import WAIT_S, Findings, Upstream, proxy_to

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}
USAGE = {"prompt_tokens": 40, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 30}}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Upstream, ProxyServer, Findings]]:
    """A server and the proxy before it, whose threads all run. A test waits for the findings of its requests."""
    with Upstream() as upstream, proxy_to(upstream.url) as (server, findings):
        httpx.post(f"{server.url}{CHAT}", json=BODY, trust_env=False)
        findings.wait(1)
        yield upstream, server, findings


@pytest.fixture
def upstream(both: tuple[Upstream, ProxyServer, Findings]) -> Upstream:
    both[0].begin()
    return both[0]


@pytest.fixture
def passing(both: tuple[Upstream, ProxyServer, Findings]) -> tuple[ProxyServer, Findings]:
    _, server, findings = both
    findings.found.clear()
    return server, findings


def connected(server: ProxyServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)


def test_a_stream_passes_byte_for_byte_as_it_comes(upstream: Upstream, passing: tuple[ProxyServer, Findings]) -> None:
    go_on = threading.Event()
    odd = b": comment\r\n\r\ndata: \xff\xfe {\n\n"
    counted = f"data: {json.dumps({'usage': USAGE})}\n\n".encode()
    upstream.pieces = [b'data: {"choices": [{"delta": {"content": "Hi \xe4', odd + counted, b"data: [DONE]\n\n"]
    upstream.hold = lambda: go_on.wait(WAIT_S)
    server, findings = passing
    with httpx.stream("POST", f"{server.url}{CHAT}", json=BODY, timeout=WAIT_S, trust_env=False) as answer:
        raw = answer.iter_raw()
        first = next(raw)
        assert upstream.pieces[0].startswith(first), "the first piece comes before the second is sent"
        go_on.set()
        assert first + b"".join(raw) == b"".join(upstream.pieces)
    (found,) = findings.wait(1)
    assert (found.stats.prompt_tokens, found.stats.reused_tokens, found.stats.generated_tokens) == (40, 30, 2)
    assert not found.is_estimated


def test_headers_of_a_connection_stay_on_it_and_all_others_pass(
    upstream: Upstream, passing: tuple[ProxyServer, Findings]
) -> None:
    upstream.headers = [
        *(("Content-Type", "application/json"), ("Content-Length", "2"), ("X-Request-Id", "r1"), ("Date", "never")),
        *(("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Connection", "close, X-Hop"), ("X-Hop", "1")),
        *(("Keep-Alive", "timeout=5"), ("Proxy-Authenticate", "Basic")),
    ]
    upstream.pieces = [b"{}"]
    sent = [
        *(("Host", "localhost:1234"), ("Authorization", "Bearer secret"), ("X-Api-Key", "k"), ("X-Own", "ä")),
        *(("Connection", "keep-alive, X-Mine"), ("X-Mine", "1"), ("TE", "trailers"), ("Upgrade", "h2c")),
        ("Content-Length", "2"),
    ]
    server, findings = passing
    client = connected(server)
    for _ in range(2):
        client.putrequest("POST", f"{CHAT}?a=%2F&b=", skip_host=True, skip_accept_encoding=True)
        for name, value in sent:
            client.putheader(name, value.encode("latin-1"))
        client.endheaders(b"{}")
        answer = client.getresponse()
        assert answer.read() == b"{}"
        got = [(name.lower(), value) for name, value in answer.getheaders()]
        expected = [*(upstream.headers[:6])]
        assert [pair for pair in got if pair[0] != "connection"] == [(n.lower(), v) for n, v in expected]
    client.close()
    findings.wait(2)
    arrived = upstream.arrived[1]
    assert arrived.line == f"POST {CHAT}?a=%2F&b= HTTP/1.1"
    kept = {("authorization", "Bearer secret"), ("x-api-key", "k"), ("x-own", "ä"), ("content-length", "2")}
    assert set(arrived.headers) == {*kept, ("host", f"127.0.0.1:{upstream.port}")}, "no cookie is sent back"


@pytest.mark.parametrize(("status", "location"), [(429, ""), (500, ""), (307, "http://127.0.0.1:9/elsewhere")])
def test_errors_and_redirects_pass_as_they_are(
    upstream: Upstream, passing: tuple[ProxyServer, Findings], status: int, location: str
) -> None:
    upstream.status, upstream.pieces = status, [b"\x00 not JSON"]
    upstream.headers = [("Retry-After", "7"), *([("Location", location)] if location else [])]
    server, findings = passing
    found = httpx.post(f"{server.url}{CHAT}", json=BODY, trust_env=False)
    assert (found.status_code, found.content, found.headers["retry-after"]) == (status, b"\x00 not JSON", "7")
    assert found.headers.get("location", "") == location
    assert len(upstream.arrived) == 1
    assert findings.wait(1)[0].exchange.status == status


@pytest.mark.parametrize(("path", "kind"), [(CHAT, "server_error"), ("/v1/messages", "api_error")])
def test_a_server_that_does_not_answer_is_an_error_in_the_protocols_form(path: str, kind: str) -> None:
    port = free_port()
    with proxy_to(f"http://127.0.0.1:{port}") as (server, _):
        found = httpx.post(f"{server.url}{path}", json=BODY, trust_env=False)
    assert (found.status_code, found.json()["error"]["type"]) == (502, kind)
    assert f"127.0.0.1:{port}" in found.json()["error"]["message"]


def test_an_answer_that_breaks_off_breaks_off(upstream: Upstream, passing: tuple[ProxyServer, Findings]) -> None:
    upstream.headers, upstream.pieces = [("Content-Length", "100")], [b"only this"]
    server, findings = passing
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{server.url}{CHAT}", json=BODY, trust_env=False)
    (found,) = findings.wait(1)
    assert not found.exchange.ended
    assert "(broken off)" in found.line


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_any_size_passes_and_only_a_part_is_kept(
    upstream: Upstream, passing: tuple[ProxyServer, Findings], chunked: bool
) -> None:
    body = bytes(range(256)) * (MOST_BODY // 256 + 1)
    pieces = iter([body[:1000], body[1000:]])
    server, findings = passing
    found = httpx.post(f"{server.url}{CHAT}", content=pieces if chunked else body, timeout=WAIT_S, trust_env=False)
    assert found.status_code == 200
    assert upstream.arrived[0].body == body
    names = {name for name, _ in upstream.arrived[0].headers}
    assert ("transfer-encoding" in names, "content-length" in names) == (chunked, not chunked)
    assert findings.wait(1)[0].exchange.body is None
    assert "cannot be compared" in findings.wait(1)[0].line


def test_a_client_that_goes_away_ends_its_request(upstream: Upstream, passing: tuple[ProxyServer, Findings]) -> None:
    upstream.pieces = [b"data: 1\n\n", *([b"data: " + b"x" * 65536] * 1000)]
    server, findings = passing
    with httpx.stream("POST", f"{server.url}{CHAT}", json=BODY, timeout=WAIT_S, trust_env=False) as answer:
        next(answer.iter_raw())
    assert upstream.gone.wait(WAIT_S)
    assert not findings.wait(1)[0].exchange.ended


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"host": "127.0.0.1.evil.example"}, {"origin": "https://evil.example"}]
)
def test_pages_and_names_of_others_are_refused(
    upstream: Upstream, passing: tuple[ProxyServer, Findings], headers: dict[str, str]
) -> None:
    found = httpx.post(f"{passing[0].url}{CHAT}", json=BODY, headers=headers, trust_env=False)
    assert found.status_code == 403
    assert upstream.arrived == []


def test_a_target_cannot_lead_elsewhere(upstream: Upstream, passing: tuple[ProxyServer, Findings]) -> None:
    client = connected(passing[0])
    client.request("GET", "http://evil.example/", headers={"Host": "localhost"})
    assert client.getresponse().status == 400
    client.close()
    assert upstream.arrived == []


def test_it_listens_to_this_computer_alone() -> None:
    server = ProxyServer("http://127.0.0.1:9", 0, print)
    with server.listen() as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_a_compressed_answer_passes_compressed_and_is_read(
    upstream: Upstream, passing: tuple[ProxyServer, Findings]
) -> None:
    packed = gzip.compress(json.dumps({"usage": USAGE}).encode())
    upstream.headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
    upstream.pieces = [packed[:9], packed[9:]]
    server, findings = passing
    with httpx.stream("POST", f"{server.url}{CHAT}", json=BODY, trust_env=False) as answer:
        assert b"".join(answer.iter_raw()) == packed
    assert findings.wait(1)[0].stats.reused_tokens == 30


def test_what_is_no_prompt_passes_without_a_word(upstream: Upstream, passing: tuple[ProxyServer, Findings]) -> None:
    server, findings = passing
    assert httpx.get(f"{server.url}/v1/models", trust_env=False).content == upstream.pieces[0]
    httpx.post(f"{server.url}{CHAT}", json=BODY, trust_env=False)
    assert [found.exchange.path for found in findings.wait(1)] == [CHAT]


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_requests_of_ollamas_own_protocol_are_counted(
    path: str, upstream: Upstream, passing: tuple[ProxyServer, Findings]
) -> None:
    lines = [{"response": "Hi", "done": False}, {"done": True, "prompt_eval_count": 40, "eval_count": 7}]
    upstream.headers = [("Content-Type", "application/x-ndjson")]
    upstream.pieces = [json.dumps(line).encode() + b"\n" for line in lines]
    server, findings = passing
    httpx.post(f"{server.url}{path}", json=BODY, trust_env=False)
    (found,) = findings.wait(1)
    assert (found.stats.prompt_tokens, found.stats.generated_tokens) == (40, 7)
