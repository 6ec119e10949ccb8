"""How far two sequences of tokens begin alike. Pure."""

from __future__ import annotations

from array import array
from typing import TypeVar

Tokens = TypeVar("Tokens", list[int], "array[int]")


def common_prefix(a: Tokens, b: Tokens) -> int:
    """How many leading tokens the two have in common, found by halving: slices are compared in C."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # the first `low` are alike, the first `high` are not
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
