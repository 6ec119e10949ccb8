"""Reads counters of the caches of vLLM and SGLang from Prometheus's text format."""

import math
from typing import Any

from kvdesk.protocol.blocks import ServerMetrics, metrics_of


def read(text: str) -> ServerMetrics:
    """The available figures; the others are None. Raises ValueError for text of another format."""
    values: dict[str, list[float]] = {}
    for sample in _samples(text):
        if (number := _finite(sample.value)) is not None:
            values.setdefault(sample.name, []).append(number)
    return metrics_of(values)


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
