"""`GET /metrics` for Prometheus: llama-server's names where they mean the same, `kvdesk_…` for the cells.

Its own registry, so that nothing of the process is reported. Counts only.
"""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.cache.metrics import shared_cells
from kvdesk.protocol.cache import CacheView
from kvdesk.server.bridge import COUNTS_S
from kvdesk.server.service import Service, key_of


async def metrics(service: Service, http: Request) -> Response:
    """For Prometheus: llama-server's names where they mean the same, and `kvdesk_…` for cells used, shared, holes, high
    water, prefix hits and memory. With an inspect key also what each program keeps.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(service, await service.bridge.view(COUNTS_S), inspect=key_of(http).inspect))
    headers = {"Process-Start-Time-Unix": str(service.began_s)}
    return Response(generate_latest(registry), headers=headers, media_type=CONTENT_TYPE_LATEST)


class _Metrics(Collector):
    """`view`: None if it did not come in time."""

    def __init__(self, service: Service, view: CacheView | None, *, inspect: bool) -> None:
        self._state, self._memory = service.state, service.memory
        self._n_waiting = service.places.n_waiting
        self._view, self._inspect = view, inspect

    def collect(self) -> Iterator[Metric]:
        """As prometheus_client asks."""
        yield from self._of_llama_server()
        yield from self._of_kvdesk()
        yield from self._of_memory()
        if self._inspect and self._view is not None:
            yield from _of_clients(self._view)

    def _of_memory(self) -> Iterator[Metric]:
        rows = [*self._state.ledger, *self._memory]
        yield _labelled("kvdesk_memory_bytes", "Memory in use.", "part", {r.name: r.measured or 0 for r in rows})
        most = {row.name: row.most for row in rows if row.most is not None}
        yield _labelled("kvdesk_memory_limit_bytes", "Most memory of a store that fills with use.", "part", most)

    def _of_llama_server(self) -> Iterator[Metric]:
        c = self._state.counters
        yield _counter("llamacpp:prompt_tokens", "Prompt tokens processed, without cached ones.", c.prompt_tokens)
        yield _counter("llamacpp:prompt_tokens_cached", "Prompt tokens reused from the cache.", c.prompt_tokens_cached)
        yield _counter("llamacpp:prompt_seconds", "Time spent processing prompts.", c.prompt_s)
        yield _counter("llamacpp:tokens_predicted", "Tokens generated.", c.predicted_tokens)
        yield _counter("llamacpp:tokens_predicted_seconds", "Time spent generating tokens.", c.predicted_s)
        yield _counter("llamacpp:n_decode", "Calls of llama_decode.", c.decodes)
        yield _counter("llamacpp:spec_decode_num_draft_tokens", "Tokens drafted.", c.drafted)
        yield _counter("llamacpp:spec_decode_num_accepted_tokens", "Drafted tokens accepted.", c.accepted)
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
        yield from self._of_misses()
        if self._view is None or not self._view.snapshot.maps:
            return
        streams = self._view.snapshot.maps[0].streams
        used = sum(stream.used for stream in streams)
        high_water = sum(stream.high_water for stream in streams)
        yield _gauge("kvdesk_cells", "Cells of the KV cache.", sum(stream.size for stream in streams))
        yield _gauge("kvdesk_cells_used", "Cells that hold a token.", used)
        yield _gauge("kvdesk_cells_shared", "Cells that several sequences hold.", sum(map(shared_cells, streams)))
        yield _gauge("kvdesk_cells_high_water", "Cells up to the last used one.", high_water)
        yield _gauge("kvdesk_cells_holes", "Empty cells below the last used one.", high_water - used)

    def _of_misses(self) -> Iterator[Metric]:
        """By cause, as in `/kv/score`."""
        for name, text, what in (
            ("kvdesk_prefix_misses", "Requests of programs that read again what the cache had held.", "n"),
            ("kvdesk_prefix_reread_tokens", "Prompt tokens that were read again.", "tokens"),
            ("kvdesk_prefix_reread_seconds", "Time spent reading them again.", "seconds"),
        ):
            family = CounterMetricFamily(name, text, labels=["cause"])
            for cause, found in self._state.score_of_all.misses.items():
                family.add_metric([cause], getattr(found, what))
            yield family


def _of_clients(view: CacheView) -> Iterator[Metric]:
    cells = {client.name: client.n_cells for client in view.clients}
    yield _labelled("kvdesk_client_cells", "Cells that only requests of this program have.", "client", cells)
    saved = {client.name: client.saved_bytes for client in view.clients}
    yield _labelled("kvdesk_client_saved_bytes", "Saved states of requests of this program.", "client", saved)


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for of, value in values.items():
        family.add_metric([of], value)
    return family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _per(n: float, of: float) -> float:
    return n / of if of else 0.0
