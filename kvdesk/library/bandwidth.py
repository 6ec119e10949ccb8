"""How fast this machine reads its memory: what bounds the speed at which a model writes."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

SIZE = 64 << 20
"""Bytes for each thread: more than caches hold."""
MOST: Final = 512 << 20
"""Bytes of all threads: a server may have a hundred, and a container little memory."""
ROUNDS = 4


def measure(n_threads: int) -> float:
    """Bytes a second that that many threads read together: the best of a few rounds, in about a tenth of a second."""
    size = min(SIZE, MOST // n_threads)
    parts = [np.ones(size // 8, np.int64) for _ in range(n_threads)]  # written to, so that there are pages behind it
    best = 0.0
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            list(pool.map(np.max, parts))  # numpy gives the interpreter's lock away meanwhile
            best = max(best, n_threads * size / (time.perf_counter() - start))
    return best
