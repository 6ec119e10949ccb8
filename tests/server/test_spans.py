"""Spans of requests: what they hold, that they hold no text, and that nothing is imported without an exporter."""

import importlib
import logging
import sys
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest

from kvdesk.host.host import Host
from kvdesk.server import spans
from tests.proxy.upstream import Upstream, proxy_to
from tests.server.conftest import served

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "wombat"


class Tracer:
    """Keeps the spans in place of OpenTelemetry's: their names and what they were given."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []

    def start_span(self, name: str, **given: Any) -> Any:
        span = {"name": name, **given}
        self.spans.append(span)
        return SimpleNamespace(end=lambda end_time: span.update(end=end_time))


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    """An exporter is set, and the API is there."""
    made = Tracer()
    kinds = SimpleNamespace(SERVER="server")
    trace = SimpleNamespace(get_tracer=lambda *_: made, get_tracer_provider=object, SpanKind=kinds)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    monkeypatch.setitem(sys.modules, "opentelemetry.propagate", SimpleNamespace(extract=lambda carrier: carrier))
    return made


def test_an_answer_is_a_span_with_its_cached_tokens(engine: Host, tracer: Tracer) -> None:
    body = {"messages": [{"role": "user", "content": f"{SECRET} " * 30}], "max_tokens": 3}
    with served(engine) as running, running.http() as http:
        for _ in range(2):
            answer = http.post("/v1/chat/completions", json=body, headers={"traceparent": PARENT})
    usage = answer.raise_for_status().json()["usage"]
    last = tracer.spans[-1]
    found = last["attributes"]
    assert len(tracer.spans) == 2
    assert last["name"].startswith("chat ")
    assert (last["context"], last["kind"]) == ({"traceparent": PARENT}, "server")
    assert last["start_time"] < last["end"]
    assert found["gen_ai.usage.input_tokens"] == usage["prompt_tokens"]
    assert found["gen_ai.usage.cache_read.input_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] != 0
    assert found["gen_ai.usage.output_tokens"] == 3
    assert "kvdesk.cache.cause" in found
    assert SECRET not in str(tracer.spans)


def test_a_request_that_passes_the_proxy_is_one(tracer: Tracer) -> None:
    usage = b'{"usage": {"prompt_tokens": 40, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 30}}}'
    with Upstream() as upstream, proxy_to(upstream.url) as (server, findings):
        upstream.headers, upstream.pieces = [("Content-Type", "application/json")], [usage]
        for word in ("today", "tomorrow"):
            text = f"{SECRET} {word} " + "and more of it " * 40
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=30, trust_env=False)
        findings.wait(2)
    found = tracer.spans[-1]["attributes"]
    assert tracer.spans[-1]["name"] == "chat m"
    assert found["gen_ai.usage.cache_read.input_tokens"] == 30
    assert found["kvdesk.cache.cause"]
    assert "kvdesk.cache.first_differing_token" not in found
    assert SECRET not in str(tracer.spans)


@pytest.mark.parametrize(
    "environment",
    [{}, {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, {"OTEL_SERVICE_NAME": "x"}],
)
def test_without_an_exporter_nothing_is_imported(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr(importlib, "import_module", imported.append)
    assert spans.spans_of(environment) is None
    assert spans.spans_of({**environment, "OTEL_SDK_DISABLED": "true"}) is None
    assert imported == []


def test_an_exporter_that_does_not_start_costs_no_server(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class ProxyTracerProvider:
        """Of OpenTelemetry, while nobody has set one."""

    def refused() -> None:
        raise ValueError("OTEL_EXPORTER_OTLP_TIMEOUT")

    monkeypatch.setattr(sys.modules["opentelemetry.trace"], "get_tracer_provider", ProxyTracerProvider)
    sdk = SimpleNamespace(TracerProvider=lambda: None)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", sdk)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", SimpleNamespace(BatchSpanProcessor=None))
    monkeypatch.setattr(spans, "entry_points", lambda **_: [SimpleNamespace(load=lambda: refused)])
    assert spans.spans_of({"OTEL_TRACES_EXPORTER": "otlp"}) is not None
    assert "does not start" in caplog.text
    assert tracer.spans == []


def test_an_exporter_without_the_api_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("opentelemetry", "opentelemetry.trace", "opentelemetry.propagate"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level(logging.WARNING):
        assert spans.spans_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is None
    assert "kvdesk[otel]" in caplog.text
