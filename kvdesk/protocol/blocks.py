"""What is reported of a server that shows its cache as hashed blocks, and of others that count what theirs saved."""

from collections.abc import Mapping, Sequence
from typing import Final

from kvdesk.blocks.tree import EMPTY, BlockMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """A server's own counters; None if it does not tell. usage: share of the cache that is taken, 0 to 1; hit_rate:
    share of prompt tokens that were in it; tokens since the server's start (read_tokens: those that were not); requests
    now, and those preempted since then.
    """

    usage: float | None = None
    hit_rate: float | None = None
    queried_tokens: float | None = None
    hit_tokens: float | None = None
    running: float | None = None
    waiting: float | None = None
    read_tokens: float | None = None
    preempted: float | None = None

    @property
    def share_of_hits(self) -> float | None:
        """Of prompt tokens that were asked for, those that were in the cache."""
        if self.hit_rate is not None:
            return self.hit_rate
        queried = self.queried_tokens or (self.hit_tokens or 0.0) + (self.read_tokens or 0.0)
        return self.hit_tokens / queried if self.hit_tokens is not None and queried else None


_METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    "usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "hit_rate": ("sglang:cache_hit_rate",),
    "queried_tokens": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "hit_tokens": (
        *("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"),
        "llamacpp:prompt_tokens_cached_total",
    ),
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"),
    "read_tokens": ("llamacpp:prompt_tokens_total",),
    "preempted": ("vllm:num_preemptions_total",),
}
"""By the field of `ServerMetrics`; the first metric that exists counts, because newer versions renamed some."""
_MEANS: Final = {"usage", "hit_rate"}
"""Averaged over several engines; the others are summed."""
METRIC_NAMES: Final = frozenset(name for names in _METRICS.values() for name in names)


def metrics_of(samples: Mapping[str, Sequence[float]]) -> ServerMetrics:
    """From the values of each metric, one of each engine."""
    found: dict[str, float | None] = {}
    for field, names in _METRICS.items():
        numbers = next((samples[name] for name in names if samples.get(name)), None)
        found[field] = None if numbers is None else sum(numbers) / (len(numbers) if field in _MEANS else 1)
    return ServerMetrics(**found)


@dataclass(frozen=True, slots=True)
class BlockMapView:
    """The blocks of a server as known now, and what it counts. `address`: where its events come from; `problem`: a
    sentence if they cannot be heard or read.
    """

    blocks: BlockMap = EMPTY
    metrics: ServerMetrics = ServerMetrics()
    address: str = ""
    problem: str = ""
