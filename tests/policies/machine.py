"""A machine with few cores, simulated: what a token takes and what the load meter shows, with noise. Deterministic."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kvdesk.policies.threads import ThreadPolicy
from kvdesk.policies.tuned import LOAD_INTERVAL_S

TOK_S = {  # measured on two cores: (threads, other busy processes) -> tokens per second
    (1, 0): 83.0,
    (2, 0): 135.0,
    (1, 1): 80.0,
    (2, 1): 39.0,
    (1, 2): 55.0,
    (2, 2): 6.0,
}
SEEN = {(1, 0): 0.0, (2, 0): 0.0, (1, 1): 1.0, (2, 1): 0.75, (1, 2): 1.35, (2, 2): 1.0}
Busy = Callable[[float], int]


@dataclass
class Run:
    """What happened: (time, threads, ms) of every token."""

    tokens: list[tuple[float, int, float]] = field(default_factory=list)

    @property
    def changes(self) -> int:
        return sum(a[1] != b[1] for a, b in zip(self.tokens, self.tokens[1:], strict=False))

    def tok_s(self, start: float, end: float) -> float:
        taken = [ms for at, _, ms in self.tokens if start <= at < end]
        return len(taken) / sum(taken) * 1e3

    def settled(self, since: float, n: int) -> float:
        """Seconds after `since` until the count is `n` and stays so for a second."""
        later = [(at, threads) for at, threads, _ in self.tokens if at >= since]
        for i, (at, threads) in enumerate(later):
            if threads == n and all(t == n for when, t in later[i:] if when < at + 1.0):
                return at - since
        raise AssertionError(f"never settled on {n}")


def run(busy: Busy, seconds: float, *, fixed: int | None = None, noise: float = 0.06, seed: int = 1) -> Run:
    """Decode for `seconds` while `busy(t)` other processes run."""
    draw = random.Random(seed)
    policy = ThreadPolicy(2)
    result = Run()
    now, seen, window = 0.0, 0.0, 0.0
    while now < seconds:
        n = fixed or policy.choice.decode
        k = busy(now)
        ms = 1e3 / TOK_S[n, k] * max(0.8, draw.lognormvariate(0, noise if k == 0 else 2 * noise))
        if draw.random() < 0.005:
            ms *= 4  # a hiccup
        result.tokens.append((now, n, ms))
        now += ms / 1e3
        seen += SEEN[n, k] * ms / 1e3
        window += ms / 1e3
        if window >= LOAD_INTERVAL_S:
            policy.load(now, max(0.0, seen / window + draw.gauss(0, 0.05)))
            seen = window = 0.0
    return result
