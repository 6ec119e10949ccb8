"""The loaded model with its one context, and how each is replaced.

Runs on the engine's thread. Knows nothing of requests and queues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.backends.local.context_runtime import ContextRuntime
from kvdesk.backends.local.llama.open_model import open_model
from kvdesk.backends.local.llama.self_check import checked_context
from kvdesk.backends.local.loaded_model import LoadedModel
from kvdesk.errors import ContextError, UserError
from kvdesk.library.estimate import Estimate
from kvdesk.library.preflight import run_preflight
from kvdesk.message import ConversationId
from kvdesk.policies.swap import Limits
from kvdesk.protocol import calls
from kvdesk.protocol.chat import NO_MODEL
from kvdesk.settings import CachePolicy, ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass, field


@dataclass(frozen=True, slots=True)
class EnginePolicy:
    """What kvdesk does automatically, and where saved states go; None: they stay in memory."""

    policy: CachePolicy = field(default_factory=CachePolicy)
    folder: Path | None = None

    @property
    def limits(self) -> Limits:
        disk = self.policy.disk_mb if self.folder else 0
        return Limits(self.policy.memory_mb * 1_000_000, disk * 1_000_000)


def open_session(
    path: Path,
    settings: ContextSettings,
    emit: Emit,
    old: Session | None,
    on_progress: Callable[[float], bool],
    on_replace: Callable[[], None],
    own: EnginePolicy,
) -> Session:
    """Load `path` and make its context, in place of `old`.

    `old` lives until the new model is loaded. Only its context is freed first, so that memory need not hold both
    caches, and is created again (empty) if the new one cannot be made. `on_progress` gets 0.0 to 1.0 and cancels the
    load by returning False; `on_replace` is called just before the old context is freed.

    A model never opened before is tried in a child process first, so a file that crashes llama.cpp does no harm.

    Raises ModelFileError, ContextError: the file cannot be used, or its context does not fit into memory.
    """
    opened = open_model(path, settings, on_progress, freed_before=old.runtime.estimate.context if old else 0)
    loaded: LoadedModel | None = None
    try:
        on_replace()
        if old is not None:
            old.runtime.cache_manager.save_all()
            old.runtime.context.close()
        loaded = LoadedModel(opened)
        session = Session(loaded, settings, opened.estimate, emit, own)
    except Exception:
        (loaded or opened.model).close()
        if old is not None and not old.runtime.context.is_open:
            old.reopen()
        raise
    if old is not None:
        old.loaded.close()
    return session


class Session:
    """A loaded model and what works on its one context.

    loaded    lives as long as the session
    runtime   created with every context
    own       what kvdesk does automatically
    estimate  of the memory that a context with `settings` takes

    Raises ContextError if no context can be made.
    """

    def __init__(
        self, loaded: LoadedModel, settings: ContextSettings, estimate: Estimate, emit: Emit, own: EnginePolicy
    ) -> None:
        self.loaded = loaded
        self.own = own
        self._emit = emit
        self._saved_states: SavedStateStore | None = None
        self.runtime = self._new_runtime(settings, estimate)

    def check(self, settings: ContextSettings) -> Estimate:
        """What a context with these settings would take, replacing the current one. Raises ContextError if it does not
        fit into memory, or if llama.cpp crashes in a trial of its earlier states.
        """
        needed = self.loaded.check(settings, freed=self.runtime.estimate.context)
        if needed.n_earlier:
            verdict = run_preflight(self.loaded.header.path, settings)
            if not verdict.ok:
                raise ContextError(verdict.sentence, verdict.detail)
        return needed

    def use(self, own: EnginePolicy) -> None:
        """Use another policy, or another place for saved states."""
        swapper = self.runtime.cache_manager.swapper
        if own.folder != self.own.folder:
            swapper.saved_states.close()
            kind = self.loaded.state_kind(self.runtime.context.settings)
            swapper.saved_states = self._saved_states = SavedStateStore(own.folder, kind, own.limits)
        self.own = own
        swapper.saved_states.set_limits(own.limits)
        self.runtime.use(own.policy)

    def rebuild(self, settings: ContextSettings, *, goes_on: bool = False) -> None:
        """Free the context and make a new one. Every sequence is empty afterwards, and states of those that held
        something are dropped. `goes_on`: the sequences get their cells back, so their states are kept.

        Raises ContextError; the session then continues with a context of the old settings.
        """
        old, wanted = self.runtime, self.check(settings)
        start = time.perf_counter()
        lost = {s.conversation: tr("the context was rebuilt") for s in old.cache_manager.pool if s.tokens}
        for conversation in () if goes_on else lost:
            old.cache_manager.swapper.saved_states.drop_of(conversation)
        old.context.close()
        try:
            self.runtime = self._new_runtime(settings, wanted, lost)
        except Exception:
            self.runtime = self._new_runtime(old.context.settings, old.estimate, lost)
            raise
        journal = self.runtime.operation_journal
        with journal.operation("rebuild", call=calls.new_context(), started=start) as operation:
            operation.emptied = True

    def reopen(self) -> None:
        """Make the context again with its old settings, after it was closed for a session that was not opened."""
        self.runtime = self._new_runtime(self.runtime.context.settings, self.runtime.estimate)

    def recover(self) -> None:
        """After an unexpected error, make every sequence match the map."""
        if self.runtime.context.is_open:
            self.runtime.cache_manager.follow_map()

    def close(self) -> None:
        """Save the conversations' states, free the context, then the model."""
        try:
            if self.runtime.context.is_open:
                self.runtime.cache_manager.save_all()
        finally:
            self.discard()

    def discard(self) -> None:
        """Free the context, then the model. Saved states stay saved; no others are added."""
        try:
            self.runtime.context.close()
            self.loaded.close()
        finally:
            self.runtime.cache_manager.swapper.saved_states.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _new_runtime(
        self, settings: ContextSettings, estimate: Estimate, lost: Mapping[ConversationId, str] | None = None
    ) -> ContextRuntime:
        """A context with `settings` and everything that works on it. Saved states are kept if they fit into it.

        lost  why conversations that had cells in the previous context have none in it
        """
        context = checked_context(self.loaded.model, settings)
        kind = self.loaded.state_kind(settings)
        if self._saved_states is None or self._saved_states.kind != kind:
            if self._saved_states is not None:
                self._saved_states.close()
            self._saved_states = SavedStateStore(self.own.folder, kind, self.own.limits)
        return ContextRuntime(
            self.loaded,
            context,
            estimate,
            self._saved_states,
            self._emit,
            policy=self.own.policy,
            eviction_reasons=lost,
        )


def opened(session: Session | None) -> Session:
    """Raises UserError if no model is open."""
    if session is None:
        raise UserError(tr(NO_MODEL))
    return session
