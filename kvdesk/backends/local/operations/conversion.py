"""Converts K and V of a whole cache to other types, when one context replaces another.

The caller frees the old context and makes the new one. Runs on the engine's thread.
"""

import numpy as np

from kvdesk.backends.local.cache_manager.hand_cells import CacheCopy
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.probe import Logits
from kvdesk.backends.local.cache_manager.saved_state import SavedState
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.llama.requantize import loses_nothing_more, requantize
from kvdesk.backends.local.llama.traits import Traits
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot
from kvdesk.cache.state.blob import BlobError
from kvdesk.errors import EngineError
from kvdesk.policies.swap import StateKind
from kvdesk.protocol.chat import Working
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Before:
    """The cache before an operation: its cells, next-token logits of some sequences, and the tokens of all."""

    snapshot: CacheSnapshot
    asked: dict[int, Logits]
    n_tokens: dict[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What a context leaves to the next one, which stores K and V differently.

    cells   all its cells, also for undo: `made_with` has its settings
    traits  of the context; kind: of its saved states
    before  for measuring the effect on the next token
    """

    cells: CacheCopy
    traits: Traits
    kind: StateKind
    before: Before

    @property
    def settings(self) -> ContextSettings:
        return self.traits.settings

    def converted(self, traits: Traits) -> CacheCopy:
        """Its cells for a context with these traits. Raises EngineError if there is not enough memory."""
        return replace(self.cells, blob=requantize(self.cells.blob, self.traits, traits))

    def convert_saved(self, store: SavedStateStore, traits: Traits, emit: Emit) -> None:
        """Convert its saved states for a context with these traits, into `store`. `emit` gets the progress. States that
        exist already or cannot be converted stay unchanged.
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
            store.adopt(replace(saved, exact=saved.exact if same else 0, rounded=False), converted)
        if states:
            emit(Working("", 0, 0))


def left(cells: CacheCopy, traits: Traits, store: SavedStateStore, before: Before) -> Left:
    """What the context with these traits leaves. All cells are older than the first step of the next context."""
    maps = _older(cells.maps)
    before = replace(before, snapshot=replace(before.snapshot, maps=maps))
    kept = replace(cells, maps=maps, made_with=traits.settings, saved=tuple(store.in_memory()))
    return Left(kept, traits, store.kind, before)


def restore_saved(store: SavedStateStore, states: tuple[SavedState, ...]) -> None:
    """Restore states that were in memory when a copy of the cache was made and are gone now."""
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
