"""K and V of a whole cache in other types: what a context leaves to the one in its place, and how that is converted.

The caller frees the one context and makes the other. Runs on the engine's thread.
"""

from __future__ import annotations

import numpy as np

from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.probe import Logits
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.llama.requantize import loses_nothing_more, requantize
from kvdesk.backends.local.llama.traits import Traits
from kvdesk.cache.blob import BlobError
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot
from kvdesk.errors import EngineError
from kvdesk.policies.swap import StateKind
from kvdesk.protocol.chat import Working
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Before:
    """The cache before an operation: its cells, the next token of some sequences, and the tokens of all."""

    snapshot: CacheSnapshot
    asked: dict[int, Logits]
    n_tokens: dict[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What a context leaves to the next, whose K and V are stored in another way.

    cells   all that it held, for undo too: `made_with` says its settings
    traits  of the context; kind: of its saved states
    before  what the effect on the next token is compared with
    """

    cells: CacheCopy
    traits: Traits
    kind: StateKind
    before: Before

    @property
    def settings(self) -> ContextSettings:
        return self.traits.settings

    def converted(self, traits: Traits) -> CacheCopy:
        """Its cells for a context with these traits. Raises EngineError if there is no memory for them."""
        return replace(self.cells, blob=requantize(self.cells.blob, self.traits, traits))

    def convert_saved(self, store: SavedStateStore, traits: Traits, emit: Emit) -> None:
        """The states that were saved for it, in `store` as those of a context with these traits. `emit` hears of the
        progress. What is there already, and what cannot be converted, stays as it is.
        """
        states = {saved.key: saved for saved in (*store.of_kind(self.kind), *self.cells.saved)}
        same = loses_nothing_more(self.settings, traits.settings)
        for n, saved in enumerate(sorted(states.values(), key=lambda s: s.used)):
            emit(Working(tr("Converting saved chats"), n, len(states)))
            if store.has(saved.tokens, saved.conversation, saved.exact):
                continue
            blob = store.read(saved) if saved.blob is None else saved.blob
            if blob is None:
                continue
            try:
                converted = requantize(blob, self.traits, traits, whole=False)
            except (BlobError, EngineError):
                continue
            store.adopt(saved if same else replace(saved, exact=0), converted)
        if states:
            emit(Working("", 0, 0))


def left(cells: CacheCopy, traits: Traits, store: SavedStateStore, before: Before) -> Left:
    """What the context with these traits leaves. Ages are those of the next one: all is older than its first step."""
    maps = _older(cells.maps)
    before = replace(before, snapshot=replace(before.snapshot, maps=maps))
    kept = replace(cells, maps=maps, made_with=traits.settings, saved=tuple(store.in_memory()))
    return Left(kept, traits, store.kind, before)


def restore_saved(store: SavedStateStore, states: tuple[SavedState, ...]) -> None:
    """States that were in memory when a copy of the cache was made, where they are not there any more."""
    for saved in states:
        if saved.blob is not None:
            store.adopt(saved, saved.blob)


def _older(maps: tuple[CacheMap, ...]) -> tuple[CacheMap, ...]:
    return tuple(
        replace(
            cache,
            streams=tuple(
                replace(stream, written_at_op=np.zeros_like(stream.written_at_op)) for stream in cache.streams
            ),
        )
        for cache in maps
    )
