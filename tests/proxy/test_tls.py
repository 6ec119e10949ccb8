"""A server whose certificate nobody trusts gets no request: no prompt and no key."""

import ssl

import httpx2 as httpx

from tests.places import ROOT
from tests.proxy.upstream import Upstream, proxy_to

PEM = ROOT / "tests/proxy/self_signed.pem"
"""Certificate and key for localhost, made for this test alone."""


def test_a_certificate_that_nobody_trusts_is_refused() -> None:
    upstream = Upstream()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    upstream.server.socket = context.wrap_socket(upstream.server.socket, server_side=True)
    with upstream, proxy_to(f"https://localhost:{upstream.port}") as (server, _):
        found = httpx.post(f"{server.url}/v1/chat/completions", json={}, timeout=30, trust_env=False)
    assert found.status_code == 502
    assert "certificate" in found.json()["error"]["message"].lower()
    assert upstream.arrived == []
