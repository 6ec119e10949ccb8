"""What is compared with the server is the same conversation."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.experiments.benchmarks import serve
from kvdesk.headless import running
from kvdesk.host.host import Host
from kvdesk.server.config import Key, ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings, Sampling

SMALL = ContextSettings(n_ctx=1024, n_seq_max=4, n_batch=128, n_ubatch=64, n_threads=1, n_threads_batch=1)


@pytest.fixture
def host(model_file: Path) -> Iterator[Host]:
    with running(model_file, SMALL) as served:
        yield served


def test_both_ways_get_the_same_answers(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MAX_TOKENS", 5)
    monkeypatch.setattr(serve, "_SAMPLING", Sampling(temperature=0.0, max_tokens=5))
    with closing(Server(host, ServerConfig(port=0, keys=(Key("sk-bench-key"),), share_prefixes=False))) as server:
        server.start()
        direct, http = serve._Direct(host).turns(7, 2), serve._Over(server.url, "sk-bench-key").turns(7, 2)
        pairs = list(zip(direct, http, strict=True))
    assert [(a.n_tokens, b.n_tokens) for a, b in pairs] == [(5, 5), (5, 5)]
    assert min(turn.seconds for pair in pairs for turn in pair) > 0
