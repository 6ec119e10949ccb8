"""Spans of OpenTelemetry: a request, its tokens, those that the cache had, and the cause of a miss. Never its texts.

Without an exporter in the environment nothing is imported, and nothing is sent. Needs the extra `otel`; the program's
own provider counts, else the SDK's with the exporters that the environment lists.
"""

import importlib
import logging
import os
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final

from kvdesk import __version__
from kvdesk.values import dataclass

_EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
_PLACES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PARENT: Final = ("traceparent", "tracestate")
"""Headers of a request that say which span it belongs to."""
_GROUP: Final = "opentelemetry_traces_exporter"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reused:
    """What a span has of a request's cache. at_token: the first that differs, -1 if none does or it is unknown;
    lost: tokens that were read again.
    """

    prompt: int
    cached: int
    answer: int
    cause: str = ""
    at_token: int = -1
    lost: int = 0


class Spans:
    """Makes a span of each request that has ended. Its methods may be called from any thread."""

    def __init__(self, trace: Any, propagate: Any) -> None:
        self._tracer = trace.get_tracer("kvdesk", __version__)
        self._kind = trace.SpanKind.SERVER
        self._extract = propagate.extract

    def add(self, path: str, model: str, parent: Mapping[str, str], began_ns: int, reused: Reused) -> None:
        """A request to `path` that began then and ends now. `parent`: its headers of that name."""
        is_text = path.endswith(("/completions", "/completion", "/infill")) and not path.endswith("/chat/completions")
        operation = "text_completion" if is_text else "chat"
        numbers = {
            "gen_ai.usage.input_tokens": reused.prompt,
            "gen_ai.usage.cache_read.input_tokens": reused.cached,
            "gen_ai.usage.output_tokens": reused.answer,
            "kvdesk.cache.first_differing_token": reused.at_token,
            "kvdesk.cache.tokens_lost": reused.lost,
        }
        span = self._tracer.start_span(
            f"{operation} {model}".strip(),
            context=self._extract(dict(parent)),
            kind=self._kind,
            start_time=began_ns,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": "anthropic" if path.endswith("/messages") else "openai",
                "gen_ai.request.model": model,
                "url.path": path,
                "kvdesk.cache.cause": reused.cause,
                **{name: number for name, number in numbers.items() if number >= 0},
            },
        )
        span.end(end_time=time.time_ns())


def spans_of(environment: Mapping[str, str] | None = None) -> Spans | None:
    """None if the environment sets no exporter, and where the API is not installed, which is logged."""
    environment = os.environ if environment is None else environment
    exporters, is_placed = environment.get(_EXPORTERS, ""), any(environment.get(name) for name in _PLACES)
    is_off = exporters == "none" or environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not (exporters or is_placed):
        return None
    try:
        trace, propagate = map(importlib.import_module, ("opentelemetry.trace", "opentelemetry.propagate"))
    except ModuleNotFoundError:
        _log.warning("the environment sets an exporter of traces, and its API is missing: pip install 'kvdesk[otel]'")
        return None
    if type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider":  # nobody has set one
        _provide(trace, exporters or "otlp")
    return Spans(trace, propagate)


def _provide(trace: Any, exporters: str) -> None:
    """Send spans by the exporters of these names that are installed. If none is, or one fails, that is logged."""
    found = [one for name in exporters.split(",") for one in entry_points(group=_GROUP, name=name.strip())]
    if not found:
        _log.warning("the exporter of traces %s is not installed: nothing is sent", exporters)
        return
    try:
        sdk, export = map(importlib.import_module, ("opentelemetry.sdk.trace", "opentelemetry.sdk.trace.export"))
        provider = sdk.TracerProvider()
        for one in found:
            provider.add_span_processor(export.BatchSpanProcessor(one.load()()))
    except Exception:  # noqa: BLE001 - a setting that it refuses, for one: it costs the spans, never the server
        _log.exception("the exporter of traces %s does not start: nothing is sent", exporters)
        return
    trace.set_tracer_provider(provider)
