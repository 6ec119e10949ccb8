"""`GET /metrics` for Prometheus: llama-server's names where they mean the same, `kvdesk_…` for the cells.

A registry of its own, so that nothing of the process is told. Counts only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kvdesk.cache.metrics import shared_cells
from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.server.state import ServerState

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


def exposition(state: ServerState, n_waiting: int, snapshot: CacheSnapshot | None) -> bytes:
    """The text. `n_waiting`: requests without a place; `snapshot`: None where nobody said in time how the cache is."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(state, n_waiting, snapshot))
    return generate_latest(registry)


class _Metrics(Collector):
    def __init__(self, state: ServerState, n_waiting: int, snapshot: CacheSnapshot | None) -> None:
        self._state, self._n_waiting, self._snapshot = state, n_waiting, snapshot

    def collect(self) -> Iterator[Metric]:
        """As prometheus_client asks."""
        yield from self._of_llama_server()
        yield from self._of_kvdesk()

    def _of_llama_server(self) -> Iterator[Metric]:
        c = self._state.counters
        yield _counter("llamacpp:prompt_tokens", "Prompt tokens processed, without cached ones.", c.prompt_tokens)
        yield _counter("llamacpp:prompt_tokens_cached", "Prompt tokens reused from the cache.", c.prompt_tokens_cached)
        yield _counter("llamacpp:prompt_seconds", "Time spent processing prompts.", c.prompt_s)
        yield _counter("llamacpp:tokens_predicted", "Tokens generated.", c.predicted_tokens)
        yield _counter("llamacpp:tokens_predicted_seconds", "Time spent generating tokens.", c.predicted_s)
        yield _counter("llamacpp:n_decode", "Calls of llama_decode.", c.decodes)
        read = _per(c.prompt_tokens, c.prompt_s)
        yield _gauge("llamacpp:n_tokens_max", "Longest sequence so far, prompt and answer.", c.longest)
        yield _gauge("llamacpp:prompt_tokens_seconds", "Average prompt tokens a second.", read)
        predicted = _per(c.predicted_tokens, c.predicted_s)
        yield _gauge("llamacpp:predicted_tokens_seconds", "Average generated tokens a second.", predicted)
        yield _gauge("llamacpp:requests_processing", "Requests being processed.", self._state.n_processing)
        yield _gauge("llamacpp:requests_deferred", "Requests that wait.", self._n_waiting)
        busy = _per(c.busy_slots, c.decodes)
        yield _gauge("llamacpp:n_busy_slots_per_decode", "Average requests in a call of llama_decode.", busy)

    def _of_kvdesk(self) -> Iterator[Metric]:
        c = self._state.counters
        yield _counter("kvdesk_requests", "Requests and chats answered.", c.requests)
        yield _counter("kvdesk_prefix_hits", "Of those, how many found a beginning in the cache.", c.prefix_hits)
        snapshot = self._snapshot
        if snapshot is None or not snapshot.maps:
            return
        streams = snapshot.maps[0].streams
        used = sum(stream.used for stream in streams)
        high_water = sum(stream.high_water for stream in streams)
        yield _gauge("kvdesk_cells", "Cells of the KV cache.", sum(stream.size for stream in streams))
        yield _gauge("kvdesk_cells_used", "Cells that hold a token.", used)
        yield _gauge("kvdesk_cells_shared", "Cells that several sequences hold.", sum(map(shared_cells, streams)))
        yield _gauge("kvdesk_cells_high_water", "Cells up to the last used one.", high_water)
        yield _gauge("kvdesk_cells_holes", "Empty cells below the last used one.", high_water - used)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _per(n: float, of: float) -> float:
    return n / of if of else 0.0
