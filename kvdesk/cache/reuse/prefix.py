"""The common prefix of sequences of tokens or of texts, and what they share after it."""

from collections.abc import Sequence

_FIRST = 64  # tokens compared first; the number doubles while they are equal
_RUN = 8  # equal tokens in a row that are no coincidence; a template writes fewer between two messages


def common_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """How many leading tokens or characters both share. Slices are compared in C, first growing, then by bisection.

    Both must be of one type, because a list never equals a tuple or an array.
    """
    assert type(a) is type(b), (type(a), type(b))
    n = min(len(a), len(b))
    low, high = 0, min(n, _FIRST)
    while a[low:high] == b[low:high]:
        if high == n:
            return n
        low, high = high, min(n, 2 * high)
    while high - low > 1:  # the first `low` are equal, the first `high` are not
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def read_again(held: Sequence[int], prompt: Sequence[int], reused: int) -> int:
    """Tokens of a prompt after the first `reused` that `held` also has, in runs of eight or more. They were in the
    cache and are read again. At most as many as `held` has after `reused`.
    """
    if reused >= len(held) or len(prompt) - reused < _RUN:
        return 0
    known = {tuple(held[i : i + _RUN]) for i in range(len(held) - _RUN + 1)}
    found, end = 0, reused
    for i in range(reused, len(prompt) - _RUN + 1):
        if tuple(prompt[i : i + _RUN]) in known:
            found += i + _RUN - max(i, end)
            end = i + _RUN
    return min(found, len(held) - reused)
