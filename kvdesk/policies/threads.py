"""How many threads decode: the cores that other processes leave free.

Threads of one decode wait for each other hundreds of times per token. A thread that shares its core with another
process holds up all others, so fewer threads are faster. Pure: the load comes in as a number (`load`).
"""

import math

from kvdesk.policies.load import STALE_S
from kvdesk.policies.tuned import HALF_A_CORE, TILE
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass

LARGE_BATCH = 2 * TILE
"""Tokens from which a batch is prefill: its operations are long, so threads seldom wait and more are never slower."""

_CLEARLY = HALF_A_CORE + 0.1
"""Cores by which the free ones must differ from the count before it changes: half a core and the error of a reading."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads for decode and for prefill, and why, as a sentence."""

    decode: int
    prefill: int
    reason: str

    def of_batch(self, n_tokens: int) -> int:
        """Threads for a batch of that many tokens. Several conversations that decode together are no prefill."""
        return self.prefill if n_tokens >= LARGE_BATCH else self.decode


class ThreadPolicy:
    """Call `load` with every reading of the load; set what it returns before the next decode.

    n_cores: physical cores of the machine; n_most: threads the user allows. Two readings in a row must agree on a
    change, so that a short spike of another process changes nothing; after a while without any, one is enough.
    """

    def __init__(self, n_cores: int, n_most: int | None = None) -> None:
        self._n_cores = max(1, n_cores)
        self._n_most = max(1, n_most or n_cores)
        self._n = self._wanted = self._n_most
        self._read_s = -math.inf
        self._reason = tr("{n} of {n_cores} cores; nothing else has been measured yet.").format(
            n=self._n, n_cores=self._n_cores
        )

    @property
    def choice(self) -> Threads:
        return Threads(self._n, self._n_most, self._reason)

    def load(self, at_s: float, others: float) -> Threads:
        """Other processes take `others` cores' worth of processor time. Returns the choice from now on."""
        free = max(1.0, min(float(self._n_most), self._n_cores - others))
        wanted = math.floor(free + 0.5) if abs(free - self._n) > _CLEARLY else self._n
        is_sure = wanted == self._wanted or at_s - self._read_s > STALE_S
        self._wanted, self._read_s = wanted, at_s
        if is_sure and wanted != self._n:
            self._n = wanted
            self._reason = tr("{seen}: {threads}.").format(seen=self._seen(others), threads=_threads(wanted))
        return self.choice

    def _seen(self, others: float) -> str:
        return tr("other processes take {others:.1f} of {n_cores} cores").format(others=others, n_cores=self._n_cores)


def _threads(n: int) -> str:
    return plural("1 thread", "%n threads", n)
