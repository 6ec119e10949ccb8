"""The common prefix of sequences of tokens, or of texts."""

from __future__ import annotations

from collections.abc import Sequence

_FIRST = 64  # tokens that are compared first; as many again as are alike follow


def common_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """How many leading tokens or characters both have. Slices are compared in C, growing and then halving ones.

    Both must be of one type, since a list never equals a tuple or an array.
    """
    assert type(a) is type(b), (type(a), type(b))
    n = min(len(a), len(b))
    low, high = 0, min(n, _FIRST)
    while a[low:high] == b[low:high]:
        if high == n:
            return n
        low, high = high, min(n, 2 * high)
    while high - low > 1:  # the first `low` are alike, the first `high` are not
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
