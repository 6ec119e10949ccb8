"""Automata that read texts character by character: in each state a character leads to one other state, or to none.

A grammar made from one is never ambiguous, whatever the regular expression behind it looks like.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from kvdesk.values import dataclass

Ranges = tuple[tuple[int, int], ...]
"""Characters: ranges in ascending order, apart from each other, ends included."""

LAST: Final = 0x10FFFF
EVERY: Final[Ranges] = ((0, LAST),)
MOST_STATES: Final = 3000
Key = TypeVar("Key", bound=Hashable)


class TooLarge(Exception):
    """The automaton would have too many states, or take too long to make."""


@dataclass(slots=True)
class Work:
    """So much may be done for all the automata of one schema: 100,000 take about 0.1 s."""

    left: int = 600_000

    def spend(self, n: int) -> None:
        """Raises TooLarge."""
        if n > self.left:
            raise TooLarge
        self.left -= n


@dataclass(frozen=True, slots=True)
class State:
    """Whether the text may end here, and where its next character leads."""

    accepts: bool
    edges: tuple[tuple[Ranges, int], ...] = ()


Automaton = tuple[State, ...]
"""Texts are read from the first state on. It has no state from which no end can be reached; none at all where it
accepts nothing."""


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The characters of all ranges, which may overlap."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)


def others(ranges: Ranges) -> Ranges:
    """All characters but these."""
    found, start = [], 0
    for low, high in ranges:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return (*found, (start, LAST)) if start <= LAST else tuple(found)


def common(one: Ranges, other: Ranges) -> Ranges:
    """The characters of both."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        low, high = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if low <= high:
            found.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def explored(
    start: Key, accepts: Callable[[Key], bool], edges: Callable[[Key], Iterator[tuple[Ranges, Key]]]
) -> Automaton:
    """The automaton of all states that are reached from `start`. Raises TooLarge."""
    numbers, keys = {start: 0}, [start]
    found: list[State] = []
    while len(found) < len(keys):
        key = keys[len(found)]
        by_target: dict[int, list[tuple[int, int]]] = {}
        for ranges, target in edges(key):
            if target not in numbers:
                if len(keys) >= MOST_STATES:
                    raise TooLarge
                numbers[target] = len(keys)
                keys.append(target)
            by_target.setdefault(numbers[target], []).extend(ranges)
        found.append(State(accepts(key), tuple((joined(ranges), target) for target, ranges in by_target.items())))
    return _trimmed(found)


def both(one: Automaton, other: Automaton, work: Work) -> Automaton:
    """Accepts what both accept. Raises TooLarge."""
    if not one or not other:
        return ()

    def edges(key: tuple[int, int]) -> Iterator[tuple[Ranges, tuple[int, int]]]:
        work.spend(len(one[key[0]].edges) * len(other[key[1]].edges))
        for ranges, target in one[key[0]].edges:
            for more, second in other[key[1]].edges:
                if shared := common(ranges, more):
                    yield shared, (target, second)

    return explored((0, 0), lambda key: one[key[0]].accepts and other[key[1]].accepts, edges)


def of_length(least: int, most: int | None) -> Automaton:
    """Accepts texts of that many characters. Raises TooLarge."""
    last = least if most is None else most
    if last >= MOST_STATES:
        raise TooLarge

    def edges(n: int) -> Iterator[tuple[Ranges, int]]:
        if n < last:
            yield EVERY, n + 1
        elif most is None:
            yield EVERY, n

    return explored(0, lambda n: n >= least, edges)


def all_but(texts: Iterable[str]) -> Automaton:
    """Accepts every text but these. Raises TooLarge."""
    forbidden = frozenset(texts)
    following: dict[str, set[str]] = {}
    for text in forbidden:
        for i, char in enumerate(text):
            following.setdefault(text[:i], set()).add(char)

    def edges(begun: str | None) -> Iterator[tuple[Ranges, str | None]]:
        chars = following.get(begun, ()) if begun is not None else ()
        for char in sorted(chars):
            yield ((ord(char), ord(char)),), f"{begun}{char}"
        yield others(joined((ord(char), ord(char)) for char in chars)), None

    begin: str | None = ""
    return explored(begin, lambda begun: begun not in forbidden, edges)


def _trimmed(states: Sequence[State]) -> Automaton:
    """Without the states from which no end is reached."""
    before: dict[int, list[int]] = {}
    for number, state in enumerate(states):
        for _, target in state.edges:
            before.setdefault(target, []).append(number)
    todo = [number for number, state in enumerate(states) if state.accepts]
    live = set(todo)
    while todo:
        for number in before.get(todo.pop(), ()):
            if number not in live:
                live.add(number)
                todo.append(number)
    if 0 not in live:
        return ()
    numbers = {number: i for i, number in enumerate(sorted(live))}
    return tuple(
        State(
            states[number].accepts,
            tuple((ranges, numbers[target]) for ranges, target in states[number].edges if target in live),
        )
        for number in numbers
    )
