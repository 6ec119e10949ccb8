"""Idle requests of other programs give up their cells while another request runs, where that pays.

Attention walks over every cell below n_kv, also those that are masked. What programs asked before would make each token
of the next request slower; their states go to memory and come back in the time of a few tokens, as llama-server does
with its idle slots (`--cache-idle-slots`, server-context.cpp). Runs on the engine's thread.
"""

from __future__ import annotations

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.prefix import common_prefix
from kvdesk.policies.compaction_gain import Fragmented, judge_compaction
from kvdesk.policies.swap import place, room_in_memory
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.translation import tr


class IdleRequests:
    """Those of one context. `enabled`: the person may want to see them stay."""

    def __init__(self, context: Context, cache_manager: Cache) -> None:
        self._cache_manager = cache_manager
        self.enabled = True
        self._possible = cache_manager.one_buffer and context.can("swap")

    def save(self, beside: CacheSequence, prompt: list[int], *, lenders: bool) -> None:
        """Save the states of idle requests and remove their cells, where the answers to come gain more than that and
        the way back cost and memory has room for all of them. May change the cache.

        Called twice: before `beside` gets the beginning of the `prompt`, so that what comes back from memory lies in
        front; and then for `lenders`, whose beginning it shares now. All or none of them: a single one in front would
        keep n_kv where it is.
        """
        if not self.enabled or not self._possible:
            return
        manager, swapper = self._cache_manager, self._cache_manager.swapper
        idle = [s for s in manager.pool if _may_leave(s) and s is not beside]
        if not lenders:
            idle = [s for s in idle if common_prefix(s.tokens, prompt) < MIN_REUSE_TOKENS]
        if not idle:
            return
        states, limits = swapper.saved_states.values(), swapper.saved_states.limits
        leaving = [
            (s, r)
            for s, r in ((s, swapper.resident(s)) for s in idle)
            if r.n_own and (r.has_saved_state or place(r, states, limits).to == "memory")
        ]
        n_new = len(prompt) - common_prefix(beside.tokens, prompt)
        now, after = manager.n_kv_without([s for s, _ in leaving], n_new)
        if after >= now:
            return
        if sum(r.state_bytes for _, r in leaving if not r.has_saved_state) > room_in_memory(states, limits):
            return
        n_bytes = sum(r.state_bytes for _, r in leaving)
        verdict = judge_compaction(manager.costs, Fragmented(now, after, len(prompt), n_bytes), noticed=0.0)
        if verdict.compact:
            for sequence, _ in leaving:
                manager.evict(sequence, tr("saved to memory while it is not used. {why}").format(why=verdict.reason))


def _may_leave(sequence: CacheSequence) -> bool:
    """An idle request whose state any other of its program may have: a state with moved tokens is for its own
    conversation only, and each request has another.
    """
    n = len(sequence.tokens)
    return bool(sequence.client and n and sequence.exact >= n and not sequence.busy and not sequence.inactive)
