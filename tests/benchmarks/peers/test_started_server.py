"""Servers that are started here: kvdesk's answers and goes on after a restart; a program that ends says so."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.peer import PeerFailed, answer
from tests.benchmarks.peers.started_server import StartedServer, kvdesk_serve, llama_server
from tests.places import free_port

SETTINGS = ContextSettings(n_ctx=512, n_seq_max=2, n_batch=128, n_ubatch=64, n_threads=1, n_threads_batch=1)


def test_a_kvdesk_is_started_and_restarted(model_file: Path) -> None:
    with closing(kvdesk_serve(model_file, SETTINGS)) as server:
        for text in ("Name a bird.", "And a fish?"):
            assert answer(server, "chat", text, 4).text
            server.restart()


def test_a_llama_server_gets_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartedServer, "_start", lambda _: None)
    server = llama_server(Path("llama-server"), Path("m.gguf"), SETTINGS)
    told = " ".join(server._command)
    for part in ("--ctx-size 512", "--parallel 2", "--batch-size 128", "--ubatch-size 64", "--threads 1"):
        assert part in told
    assert told.endswith("--kv-unified")
    assert server.how == "wrote with 1 thread"
    server.close()


def test_a_program_that_ends_is_one_sentence() -> None:
    with pytest.raises(PeerFailed, match=r"^it ended at once \(exit code 3\)\.$") as failed:
        StartedServer("it", "", [sys.executable, "-c", "raise SystemExit(3)"], free_port())
    assert failed.value.gone
