"""Reads the engine's log of making a context's memory: the real numbers of caches, cells and layers.

Owns parsing those lines and comparing them with the plan, so that a misjudged memory class is noticed before the first
token. Must never know the mirror. llama-kv-cache.cpp:300, llama-memory-recurrent.cpp:118.
"""

import re
from collections.abc import Iterable

from kvdesk.cache.geometry import Geometry
from kvdesk.values import dataclass

_CACHE = re.compile(r"llama_kv_cache: size = +[\d.]+ MiB \( *(\d+) cells, +(\d+) layers, +(\d+)/(\d+) seqs\)")
_STATES = re.compile(r"llama_memory_recurrent: size = +[\d.]+ MiB \( *(\d+) cells, +(\d+) layers, +(\d+) seqs")


@dataclass(frozen=True, slots=True)
class CreatedCache:
    """One attention cache: cells per stream, layers that use it, and streams."""

    n_cells: int
    n_layer: int
    n_seq_max: int
    n_stream: int


@dataclass(frozen=True, slots=True)
class Creation:
    """All that was made, in the engine's order; `n_states` 0 without a recurrent part."""

    caches: tuple[CreatedCache, ...]
    n_states: int

    @property
    def can_rotate(self) -> bool:
        """Whether a K-shift can run: in a cache without layers its graph fails an assertion and the process ends."""
        return all(cache.n_layer > 0 for cache in self.caches)


def parse_creation(messages: Iterable[str]) -> Creation:
    """Select the lines from the log messages of llama_init_from_model; others are ignored."""
    caches = []
    n_states = 0
    for message in messages:
        if found := _CACHE.match(message):
            caches.append(CreatedCache(*map(int, found.groups())))
        elif found := _STATES.match(message):
            n_states = int(found[1])
    return Creation(tuple(caches), n_states)


def compare_creation(geometry: Geometry, creation: Creation) -> str:
    """ "" if the engine made what was planned, else the first difference in words."""
    planned = list(geometry.made_sizes)
    made = [cache.n_cells for cache in creation.caches]
    if planned != made:
        return f"planned caches of {planned or 'no'} cells, the engine made {made or 'none'}"
    if any(cache.n_stream != geometry.n_stream for cache in creation.caches):
        return f"planned {geometry.n_stream} streams, the engine made {creation.caches[0].n_stream}"
    if geometry.n_states != creation.n_states:
        return f"planned {geometry.n_states} recurrent states, the engine made {creation.n_states}"
    return ""
