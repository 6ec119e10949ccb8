"""Reads counters of the caches of vLLM and SGLang from Prometheus's text format."""

import math
from collections.abc import Mapping
from typing import Any, Final

from kvdesk.protocol.blocks import ServerMetrics

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "hit_rate": ("sglang:cache_hit_rate",),
    "queried_tokens": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "hit_tokens": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"),
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
}
"""By the field of `ServerMetrics`; the first metric that exists counts, because newer versions renamed some."""
_MEANS: Final = {"usage", "hit_rate"}
"""Averaged over several engines; the others are summed."""


def read(text: str) -> ServerMetrics:
    """The available figures; the others are None. Raises ValueError for text of another format."""
    values: dict[str, list[float]] = {}
    for sample in _samples(text):
        if (number := _finite(sample.value)) is not None:
            values.setdefault(sample.name, []).append(number)
    found: dict[str, float | None] = {}
    for field, names in NAMES.items():
        numbers = next((values[name] for name in names if name in values), None)
        found[field] = None if numbers is None else sum(numbers) / (len(numbers) if field in _MEANS else 1)
    return ServerMetrics(**found)


def _samples(text: str) -> list[Any]:
    """Raises ValueError."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (IndexError, OverflowError) as error:  # a name of blanks, a time of 400 digits
        raise ValueError(str(error)) from error


def _finite(value: float) -> float | None:
    """None for a number that no counter has: NaN, infinity, an integer that is no float."""
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
