"""How far two sequences of tokens begin alike."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.cache.reuse.prefix import common_prefix

TOKENS = st.lists(st.integers(0, 1), max_size=200)


@given(TOKENS, TOKENS, TOKENS)
def test_that_of_a_walk(same: list[int], a: list[int], b: list[int]) -> None:
    a, b = same + a, same + b
    n = min(len(a), len(b))
    wanted = next((i for i in range(n) if a[i] != b[i]), n)
    assert common_prefix(a, b) == common_prefix(array("i", a), array("i", b)) == wanted
