"""10,000 requests, clients dying at random, 3,000 malformed bodies: no leak, no hang, and an audit passes."""

import gc
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from kvdesk.protocol.cache import AuditCache, UsePolicy
from kvdesk.settings import CachePolicy
from tests.server.conftest import Running, engine, http, running  # noqa: F401 - fixtures
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
from tests.stress.conftest import SEED, SHARE, Row
from tests.stress.serving import kvdesk_serve

N_REQUESTS = round(10_000 * SHARE)
MOST_GROWTH = 60 << 20
"""Bytes that the process may grow by after the first tenth: what is kept of answers is bounded, and is full then."""

pytestmark = [pytest.mark.stress, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    ("paths", "n_bodies"),
    [(PATHS, 2000), (MESSAGES, 500), (RESPONSES, 500), (OLLAMA, 500)],
    ids=["completions", "messages", "responses", "ollama"],
)
def test_malformed_requests_are_refused_and_leave_nothing(
    running: Running,  # noqa: F811
    http: httpx.Client,  # noqa: F811
    paths: tuple[str, ...],
    n_bodies: int,
) -> None:
    def send_bodies(n: int) -> None:
        @seed(SEED + n)
        @settings(max_examples=n, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.sampled_from(paths), BODIES)
        def any_body_is_answered_or_refused(path: str, body: bytes) -> None:
            send(http, path, body)

        any_body_is_answered_or_refused()
        wait_until_quiet(http, 60.0)
        gc.collect()

    running.host.submit(UsePolicy(CachePolicy(memory_mb=8, disk_mb=0)))
    process = psutil.Process()
    n_bodies = round(n_bodies * SHARE)
    send_bodies(max(1, n_bodies // 10))
    before, n_files = process.memory_info().rss, process.num_fds()
    send_bodies(n_bodies)
    grown = process.memory_info().rss - before
    assert grown < MOST_GROWTH, f"{grown:,} bytes more"
    assert process.num_fds() <= n_files + 8
    assert not running.server.n_asked
    audited = running.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_thousands_of_requests_leave_nothing(running: Running, http: httpx.Client) -> None:  # noqa: F811
    local = threading.local()

    def one(seed: int) -> None:
        rng = random.Random(SEED + seed)
        if rng.random() < 0.3:
            one_that_dies(running, rng)
            return
        if not hasattr(local, "client"):
            local.client = running.http(timeout=600.0)  # the machine may be busy with something else
            clients.append(local.client)
        local.client.post(PATHS[0], json=a_request(rng)).raise_for_status()

    clients: list[httpx.Client] = []
    running.host.submit(UsePolicy(CachePolicy(memory_mb=8, disk_mb=0)))
    process = psutil.Process()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(N_REQUESTS // 10)))
        gc.collect()
        before, n_files = process.memory_info().rss, process.num_fds()
        list(pool.map(one, range(N_REQUESTS // 10, N_REQUESTS)))
    wait_until_quiet(http, 60.0)
    gc.collect()
    grown = process.memory_info().rss - before
    assert grown < MOST_GROWTH, f"{grown:,} bytes more"
    assert process.num_fds() <= n_files + 8
    assert not running.server.n_asked
    for client in clients:
        client.close()
    audited = running.answered(AuditCache())
    assert audited.state == "verified", audited.sentence


def test_a_thousand_requests_take_as_much_memory_as_two_hundred(row: Row, talking_file: Path, tmp_path: Path) -> None:
    few, many = round(200 * SHARE), round(1000 * SHARE)
    sizes: list[int] = []
    with kvdesk_serve(talking_file, tmp_path) as served:
        with ThreadPoolExecutor(4) as pool:
            for first, end in ((0, few), (few, many)):
                list(
                    pool.map(lambda i: _conversation(served.http, random.Random(SEED + i)), range(first // 2, end // 2))
                )
                sizes.append(psutil.Process(served.pid).memory_info().rss)
        metrics = served.http.get("/metrics").text
    row.say(f"{sizes[0] / 1e6:.1f} MB after {few} requests, {sizes[1] / 1e6:.1f} MB after {many}")
    assert sizes[1] <= 1.1 * sizes[0], sizes
    shown, most = (_by_part(metrics, name) for name in ("kvdesk_memory_bytes", "kvdesk_memory_limit_bytes"))
    assert {"saved conversations", "remembered answers", "recording"} <= most.keys()
    assert all(shown[part] <= most[part] for part in most)


def _conversation(client: httpx.Client, rng: random.Random) -> None:
    """Two requests, the second one with the answer to the first."""
    asked = a_request(rng, stream=False, n=1, max_tokens=rng.randrange(2, 24))
    for _ in range(2):
        answer = client.post("/v1/chat/completions", json=asked).raise_for_status().json()
        more = {"role": "user", "content": " ".join(rng.choices(["and", "why", "where", "how"], k=9))}
        asked["messages"] += [answer["choices"][0]["message"], more]


def _by_part(metrics: str, name: str) -> dict[str, float]:
    lines = [line for line in metrics.splitlines() if line.startswith(f"{name}{{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}
