"""Where in a grammar an answer is: the same stacks as llama.cpp's, so that nothing is accepted there that would end
the process, and a grammar that is too ambiguous is noticed before it blocks it.

llama.cpp compares a token with the grammar along every path: each of its characters takes each stack to others, and
stacks that become equal are compared again (llama-grammar.cpp, `llama_grammar_reject_candidates`). Of an ambiguous
grammar the paths can double with every character.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from heapq import heappop, heappush
from typing import Final

from kvdesk.errors import UserError
from kvdesk.grammar.gbnf import Chars, Grammar, RuleRef, Symbol, TokenRef, parsed
from kvdesk.translation import tr
from kvdesk.values import dataclass

MOST_STACKS: Final = 500
MOST_STEPS: Final = 20_000
"""Of one look for what may come next."""
MOST_PATHS: Final = 100_000
"""Along which one token is compared."""
_LOOKS: Final = 5000
_FEWER_LOOKS: Final = 500
"""Steps by one character that `look_ahead` tries, at the beginning of an answer and later."""
_LONG: Final = 24
"""Characters of long tokens."""
_LONGEST: Final = 128
"""Characters of the longest tokens, which are one character many times."""
_EMPTY: Final = 0

Stacks = frozenset[int]


@dataclass(frozen=True, slots=True)
class Position:
    """After some tokens: what may come next, and the bytes of a character that is not complete."""

    stacks: Stacks
    value: int = 0
    n_missing: int = 0

    @property
    def complete(self) -> bool:
        """Whether the answer may end here."""
        return _EMPTY in self.stacks

    @property
    def over(self) -> bool:
        """Whether nothing can follow."""
        return self.stacks == {_EMPTY}


@lru_cache(maxsize=8)
def checked(text: str) -> Grammar:
    """The grammar in a text, of which llama.cpp can make a sampler. Raises UserError with a sentence."""
    grammar = parsed(text)
    GrammarState(grammar, lambda _text: 0).look_ahead(_LOOKS)
    return grammar


class GrammarState:
    """Follows one answer. `token_id`: text in angle brackets to the token that it is, None if it is not one.

    A stack is a number: 0 is the empty one, others a place in the grammar on top of another stack.
    Raises UserError: a token that is none, too many stacks.
    """

    def __init__(self, grammar: Grammar, token_id: Callable[[str], int | None]) -> None:
        self._symbols: list[Symbol] = []
        self._is_last: list[bool] = []
        self._starts: list[tuple[int, ...]] = []  # of each rule: where its alternates begin, -1 for an empty one
        for alternates in grammar.rules:
            starts: list[int] = []
            for alternate in alternates:
                starts.append(len(self._symbols) if alternate else -1)
                self._symbols += [_with_id(symbol, token_id) for symbol in alternate]
                self._is_last += [False] * (len(alternate) - 1) + [True] * bool(alternate)
            self._starts.append(tuple(starts))
        self._cells: list[tuple[int, int]] = [(-1, 0)]  # by stack: the place on top, the stack below
        self._known: dict[tuple[int, int], int] = {}
        self._opened: dict[int, Stacks] = {}
        self._looked: set[Stacks] = set()
        found: set[int] = set()
        for start in self._starts[grammar.root]:
            found |= self._open(_EMPTY if start < 0 else self._push(start, _EMPTY))
        self.position = Position(_bounded(found))

    def after(self, token: int, piece: bytes) -> Position | None:
        """Where the answer is after this token, whose text is `piece`; None if the grammar does not allow it."""
        position = self.position
        decoded = _decoded(piece, position.value, position.n_missing)
        if decoded is None:
            return None
        chars, value, n_missing = decoded
        found: set[int] = set()
        texts: dict[int, int] = {}
        for stack in position.stacks:
            symbol = self._top(stack)
            if isinstance(symbol, TokenRef):
                if (symbol.token == token) is not symbol.negated:
                    found |= self._open(self._popped(stack))
            elif symbol is not None:
                texts[stack] = 1
        for char in chars:
            texts = self._step(texts, char)
        found |= texts.keys()
        return Position(_bounded(found), value, n_missing) if found else None

    def look_ahead(self, n_looks: int = _FEWER_LOOKS) -> None:
        """Try what a token may be from here on: one character many times, and any text, first where the paths are most.
        Raises UserError if they become too many.
        """
        start = self.position.stacks
        if start in self._looked:
            return
        self._looked.add(start)
        for char in self._different_chars(start):
            paths, n = dict.fromkeys(start, 1), 0
            while paths and n < _LONGEST:
                paths, n = self._step(paths, char), n + 1
        todo = [(-len(start), 0, tuple(dict.fromkeys(start, 1).items()))]
        seen = set(todo)
        while todo:
            _, length, items = heappop(todo)
            for char in self._different_chars(stack for stack, _ in items):
                n_looks -= 1
                if n_looks < 0:
                    return
                after = self._step(dict(items), char)
                state = (-sum(after.values()), length + 1, tuple(sorted(after.items())))
                if after and length < _LONG and state not in seen:
                    seen.add(state)
                    heappush(todo, state)

    def forced(self) -> str:
        """The text that must come next, as far as one character alone is allowed at each place; `_LONG` at most."""
        text, stacks = "", self.position.stacks if not self.position.n_missing else frozenset[int]()
        while len(text) < _LONG:
            chars = {self._only_char(stack) for stack in stacks}
            char = chars.pop() if len(chars) == 1 else None
            if char is None:
                break
            text += chr(char)
            stacks = frozenset(self._step(dict.fromkeys(stacks, 1), char))
        return text

    # --- private ------------------------------------------------------------------------------------------------------

    def _only_char(self, stack: int) -> int | None:
        """The character that this stack takes; None if it takes others, a token or nothing."""
        symbol = self._top(stack)
        if not isinstance(symbol, Chars) or symbol.negated or len(symbol.ranges) != 1:
            return None
        ((low, high),) = symbol.ranges
        return low if low == high else None

    def _different_chars(self, stacks: Iterable[int]) -> list[int]:
        """A character of each kind that the stacks tell apart."""
        edges = {0}
        for symbol in map(self._top, stacks):
            if isinstance(symbol, Chars):
                for low, high in symbol.ranges:
                    edges |= {low, high + 1}
        return sorted(edges)

    def _step(self, paths: dict[int, int], char: int) -> dict[int, int]:
        """Stacks after a character, each with the number of paths that end there. Raises UserError: too many."""
        after: dict[int, int] = {}
        for stack, n in paths.items():
            symbol = self._top(stack)
            if isinstance(symbol, Chars) and symbol.match(char):
                for opened in self._open(self._popped(stack)):
                    after[opened] = after.get(opened, 0) + n
        if len(after) > MOST_STACKS or sum(after.values()) > MOST_PATHS:
            raise _too_many()
        return after

    def _top(self, stack: int) -> Symbol | None:
        return self._symbols[self._cells[stack][0]] if stack else None

    def _push(self, place: int, below: int) -> int:
        cell = (place, below)
        known = self._known.get(cell)
        if known is None:
            known = self._known[cell] = len(self._cells)
            self._cells.append(cell)
        return known

    def _popped(self, stack: int) -> int:
        """Without what is on top, which was read: what follows it in its alternate comes in its place."""
        place, below = self._cells[stack]
        return below if self._is_last[place] else self._push(place + 1, below)

    def _open(self, stack: int) -> Stacks:
        """The stacks that a stack stands for, with a character or a token on top, or empty."""
        known = self._opened.get(stack)
        if known is not None:
            return known
        found: set[int] = set()
        seen: set[int] = set()
        todo = [stack]
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if len(seen) > MOST_STEPS:
                raise _too_many()
            symbol = self._top(one)
            if isinstance(symbol, RuleRef):
                rest = self._popped(one)
                todo += [rest if start < 0 else self._push(start, rest) for start in self._starts[symbol.rule]]
            else:
                found.add(one)
        result = self._opened[stack] = _bounded(found)
        return result


def _with_id(symbol: Symbol, token_id: Callable[[str], int | None]) -> Symbol:
    if isinstance(symbol, TokenRef) and isinstance(symbol.token, str):
        token = token_id(symbol.token)
        if token is None:
            raise UserError(tr("The grammar’s {text} is not one token of this model.").format(text=symbol.token[:80]))
        return TokenRef(token, symbol.negated)
    return symbol


def _bounded(stacks: set[int]) -> Stacks:
    if len(stacks) > MOST_STACKS:
        raise _too_many()
    return frozenset(stacks)


def _too_many() -> UserError:
    return UserError(tr("The grammar is too ambiguous: a text can be read in too many ways."))


def _decoded(piece: bytes, value: int, n_missing: int) -> tuple[list[int], int, int] | None:
    """Characters that are complete after `piece`, and what is known of the next one; None if it is not UTF-8."""
    chars: list[int] = []
    for byte in piece:
        if n_missing:
            if byte >> 6 != 2:
                return None
            value, n_missing = (value << 6) | (byte & 0x3F), n_missing - 1
        elif byte < 0x80:
            value = byte
        elif byte >> 6 == 2 or byte >= 0xF8:
            return None
        else:
            n_missing = 1 + (byte >= 0xE0) + (byte >= 0xF0)
            value = byte & (0x3F >> n_missing)
        if not n_missing:
            chars.append(value)
    return chars, value, n_missing
