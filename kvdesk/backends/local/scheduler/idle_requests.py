"""Moves idle chats and requests from the cache to memory before another prompt is read, if that pays off.

Attention walks over every cell below n_kv, including masked ones. From 512 cells on its threads divide the cells by
index, so one thread may have all cells of a chat. Idle cells would therefore slow down the next prompt and each token
of its answer. Saving a state takes the time of a few tokens, and so does restoring it; llama-server does the same with
idle slots (`--cache-idle-slots`, server-context.cpp). Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.policies.compaction_gain import Fragmented, NextPrompt, judge_leaving
from kvdesk.policies.swap import place, room_in_memory
from kvdesk.policies.tuned import EXPECTED, MIN_REUSE_TOKENS
from kvdesk.translation import tr


class IdleRequests:
    """Idle requests of one context. `enabled`: the user may want to see them stay."""

    def __init__(self, context: Context, cache_manager: Cache) -> None:
        self._cache_manager = cache_manager
        self.enabled = True
        self._n_batch = context.n_ubatch
        self._possible = cache_manager.one_buffer and context.can("swap")

    def save(self, beside: CacheSequence, prompt: list[int], *, moved: bool, lenders: bool) -> None:
        """Save the states of idle sequences and remove their cells, if the `prompt` of `beside` and its answer gain
        more than saving and restoring cost, and memory has room for all of them. May change the cache.

        Called twice: before `beside` gets the beginning of the prompt, so that restored cells lie in front; and then
        for `lenders`, with which it now shares its beginning. Either all of them leave or none, because a single one in
        front would keep n_kv where it is. `moved`: see `Cache.acquire_prefix`.
        """
        if not self.enabled or not self._possible:
            return
        manager, swapper = self._cache_manager, self._cache_manager.swapper
        idle = [s for s in manager.pool if s is not beside and _may_leave(s) and swapper.may_save(s)]
        if not lenders:
            idle = [s for s in idle if common_prefix(s.tokens, prompt) < MIN_REUSE_TOKENS]
        if not idle:
            return
        n_new = len(prompt) - common_prefix(beside.tokens, prompt)
        n_mean = n_new + EXPECTED // 2  # of the answer, in the mean
        now, seen = manager.walk(beside, n_mean)
        if manager.walk(beside, n_mean, idle)[0] >= now:
            return  # the usual case: even without all of them n_kv stays; sizes of states need not be computed
        states, limits = swapper.saved_states.values(), swapper.saved_states.limits
        leaving = [
            (s, r)
            for s, r in ((s, swapper.resident(s)) for s in idle)
            if r.n_own and (r.has_saved_state or place(r, states, limits).to == "memory")
        ]
        after, seen_after = manager.walk(beside, n_mean, [s for s, _ in leaving])
        if after >= now:
            return
        if sum(r.state_bytes for _, r in leaving if not r.has_saved_state) > room_in_memory(states, limits):
            return
        n_past = manager.estimate_reuse(beside.conversation, prompt, moved=moved)[0]
        verdict = judge_leaving(
            manager.costs,
            Fragmented(now, after, seen, sum(r.state_bytes for _, r in leaving), seen_after),
            NextPrompt(len(prompt) - n_past, n_past, self._n_batch),
        )
        if verdict.pays:
            for sequence, _ in leaving:
                manager.evict(sequence, tr("saved to memory while it is not used. {why}").format(why=verdict.reason))


def _may_leave(sequence: CacheSequence) -> bool:
    """Whether the sequence is idle and its next request may use its state. A state with moved tokens is only for its
    own conversation, and each request of a program has another.
    """
    n = len(sequence.tokens)
    is_whole = sequence.client is None or sequence.exact >= n
    return bool(n and is_whole and not sequence.busy and not sequence.inactive)
