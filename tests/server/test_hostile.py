"""Malformed bodies, clients that die, slow readers: the server answers on, and the map is right afterwards."""

import random
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvdesk.protocol.cache import AuditCache
from tests.server.conftest import Running, raw_request
from tests.server.hostile import (
    BODIES,
    MESSAGES,
    OLLAMA,
    PATHS,
    RESPONSES,
    a_request,
    one_that_dies,
    send,
    wait_until_quiet,
)

CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 3}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sampled_from(PATHS + MESSAGES + RESPONSES + OLLAMA), BODIES)
def test_any_body_is_answered_or_refused(http: httpx.Client, path: str, body: bytes) -> None:
    send(http, path, body)


def test_clients_that_die_leave_nothing(running: Running, http: httpx.Client) -> None:
    def one(seed: int) -> None:
        rng = random.Random(seed)
        if seed % 4:
            one_that_dies(running, rng)
        else:
            with running.http() as client:
                client.post(PATHS[0], json=a_request(rng)).raise_for_status()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(40)))
    wait_until_quiet(http)
    assert not running.server.n_asked
    assert http.post(PATHS[0], json=CHAT).json()["choices"][0]["message"]["content"]
    audited = running.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_one_who_does_not_read_holds_nobody_up(running: Running, http: httpx.Client) -> None:
    body = {**CHAT, "max_tokens": 200, "stream": True, "logprobs": True, "top_logprobs": 20}
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        raw.connect(("127.0.0.1", running.server.port))
        raw.sendall(raw_request(PATHS[0], body))
        for _ in range(3):
            assert http.post(PATHS[0], json=CHAT).status_code == 200
    wait_until_quiet(http)
