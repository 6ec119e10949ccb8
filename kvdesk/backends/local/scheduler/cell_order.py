"""Keeps the cells of every sequence in the order of its positions, for exact answers.

Attention adds up over cells in their order (ggml-cpu, flash attention): a token that is placed in a hole before the
cells of earlier positions gives sums in another order than a fresh start. llama.cpp takes the first free cells
(`find_slot`), so there must be no hole before a used cell. Runs on the engine's thread.
"""

from __future__ import annotations

from kvdesk.backends.local.cache_manager.compacting import close_holes
from kvdesk.backends.local.cache_manager.manager import CacheManager
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.llama.context import Context
from kvdesk.policies.costs import Costs
from kvdesk.translation import tr


class CellOrder:
    """Closes holes before a batch is decoded, where the setting *Exact answers* is on and states can be moved."""

    def __init__(self, context: Context, cache_manager: CacheManager, journal: OperationJournal, costs: Costs) -> None:
        self._context, self._cache_manager, self._journal, self._costs = context, cache_manager, journal, costs
        self._is_kept = context.settings.exact and context.can("compaction")

    def keep(self) -> None:
        """No used cell is behind a hole afterwards, unless llama.cpp does not take the new layout."""
        if not self._is_kept or not self._cache_manager.has_hole:
            return
        reason = tr("exact answers: new tokens must not come before older ones")
        close_holes(self._context, self._journal, self._costs, reason)
