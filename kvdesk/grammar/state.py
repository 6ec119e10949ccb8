"""Where in a grammar an answer is: the same stacks as llama.cpp's, so that nothing is accepted there that would end
the process, and a grammar whose stacks become too many is noticed before it fills the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kvdesk.errors import UserError
from kvdesk.grammar.gbnf import Chars, Grammar, RuleRef, Symbol, TokenRef, parsed
from kvdesk.translation import tr

MOST_STACKS: Final = 500
MOST_STEPS: Final = 20_000
"""Of one look for what may come next."""
_TRIED: Final = 3000
"""Steps by one character that `check_stacks` tries."""
_DEEPEST: Final = 64
"""Characters that it goes from the beginning, as far as the longest tokens of a vocabulary."""
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
    GrammarState(grammar, lambda _text: 0).check_stacks()
    return grammar


class GrammarState:
    """Follows one answer. `token_id`: text in angle brackets to the token that it is, None where it is not one.

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
        found: set[int] = set()
        for start in self._starts[grammar.root]:
            found |= self._open(_EMPTY if start < 0 else self._push(start, _EMPTY))
        self.position = Position(_bounded(found))

    def after(self, token: int, piece: bytes) -> Position | None:
        """Where the answer is after this token, whose text is `piece`; None where the grammar does not allow it."""
        position = self.position
        decoded = _decoded(piece, position.value, position.n_missing)
        if decoded is None:
            return None
        chars, value, n_missing = decoded
        found: set[int] = set()
        texts: set[int] = set()
        for stack in position.stacks:
            symbol = self._top(stack)
            if isinstance(symbol, TokenRef):
                if (symbol.token == token) is not symbol.negated:
                    found |= self._open(self._popped(stack))
            elif symbol is not None:
                texts.add(stack)
        for char in chars:
            texts = self._step(texts, char)
        found |= texts
        return Position(_bounded(found), value, n_missing) if found else None

    def check_stacks(self) -> None:
        """Try characters from the beginning. Raises UserError where the stacks become too many: an ambiguous grammar
        can double them with every character.
        """
        edges = {0}
        for symbol in self._symbols:
            if isinstance(symbol, Chars):
                for low, high in symbol.ranges:
                    edges |= {low, high + 1}
        chars = sorted(edges)
        seen = {self.position.stacks}
        todo, tried = [self.position.stacks], 0
        for _ in range(_DEEPEST):
            following: list[Stacks] = []
            for stacks in todo:
                for char in chars:
                    tried += 1
                    if tried > _TRIED:
                        return
                    after = _bounded(self._step(set(stacks), char))
                    if after and after not in seen:
                        seen.add(after)
                        following.append(after)
            todo = following

    # --- private ------------------------------------------------------------------------------------------------------

    def _step(self, stacks: set[int], char: int) -> set[int]:
        found: set[int] = set()
        for stack in stacks:
            symbol = self._top(stack)
            if isinstance(symbol, Chars) and symbol.match(char):
                found |= self._open(self._popped(stack))
                _bounded(found)
        return found

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
    return UserError(
        tr("The grammar is too ambiguous: a text can be read in more than {n} ways.").format(n=MOST_STACKS)
    )


def _decoded(piece: bytes, value: int, n_missing: int) -> tuple[list[int], int, int] | None:
    """Characters that are complete after `piece`, and what is known of the next one; None where it is not UTF-8."""
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
