"""The number of threads of each decode: what the policy says, or what the person set.

Owns the meter of the machine's load and its use. Runs on the engine's thread; a look at the load costs 0.04 ms.
"""

import time

from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.context import Context
from kvdesk.policies.load import LoadMeter, runnable_others
from kvdesk.policies.threads import ThreadPolicy
from kvdesk.protocol.cache import LoadSample
from kvdesk.settings import ContextSettings, default_threads

TELL_S = 0.5


class Threads:
    """Follows the load for one context. The settings' number of threads is the most."""

    def __init__(self, context: Context, settings: ContextSettings, emit: Emit) -> None:
        self._context = context
        self._settings = settings
        self._emit = emit
        self.follow = True
        self._meter = LoadMeter(runnable=runnable_others)
        self._meter.read(time.monotonic())  # so that the first prompt knows how busy the machine has been
        self._policy = ThreadPolicy(default_threads(), settings.n_threads)
        self._own_s = time.process_time()
        self._told_at = time.monotonic()
        self._chosen_for = 0, False  # tokens, and `follow`; until the policy learns more

    def choose(self, n_tokens: int) -> None:
        """Set the threads for the next decode, of `n_tokens` tokens."""
        now = time.monotonic()
        others = self._meter.read(now)
        if others is None and self._chosen_for == (n_tokens, self.follow):
            return
        self._chosen_for = n_tokens, self.follow
        if others is not None:
            self._policy.load(now, others)
            self._tell(now, others)
        if not self.follow:
            decode, prefill = self._settings.decode_threads, self._settings.n_threads_batch
        else:
            choice = self._policy.choice
            decode = min(self._settings.decode_threads, choice.decode)
            at_once = min(n_tokens, self._context.n_ubatch)  # what is computed in one graph
            prefill = min(self._settings.n_threads_batch, choice.of_batch(at_once))
        self._context.set_threads(decode, prefill)

    @property
    def reason(self) -> str:
        """The reason for their number, as a sentence."""
        return self._policy.choice.reason

    def _tell(self, now: float, others: float) -> None:
        own_s = time.process_time()
        if now - self._told_at >= TELL_S:
            own = (own_s - self._own_s) / (now - self._told_at)
            self._emit(LoadSample(now, own, others, self._context.n_threads))
            self._own_s, self._told_at = own_s, now
