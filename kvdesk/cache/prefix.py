"""The length of the common prefix of two sequences of tokens."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens the two have in common, found by halving: slices are compared in C.

    Both must be of one type, since a list never equals a tuple or an array.
    """
    assert type(a) is type(b), (type(a), type(b))
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
