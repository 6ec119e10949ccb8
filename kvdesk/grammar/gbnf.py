"""Reads a GBNF grammar as llama.cpp does (src/llama-grammar.cpp, `llama_grammar_parser`), and refuses what it cannot
take: there, a grammar that is malformed ends in NULL, some loop forever, and others fill the memory.

What is refused beside errors of the notation: `x{5,2}` (llama.cpp counts down from 0), left recursion through rules
that may be empty (llama.cpp sees it only where an alternate is written empty), very many rules, deep parentheses.
"""

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final

from kvdesk.errors import UserError
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

ROOT: Final = "root"
MOST_REPEATED: Final = 2000
"""MAX_REPETITION_THRESHOLD of llama-grammar.cpp."""
MOST_SYMBOLS: Final = 200_000
MOST_RULES: Final = 20_000
MOST_NESTED: Final = 250
MOST_PATHS: Final = 100_000
"""llama.cpp looks for left recursion along every path, also along those it has been on before."""
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_ESCAPED: Final = {"t": "\t", "r": "\r", "n": "\n"} | {char: char for char in '\\"[]-'}


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of ranges, ends included; with `negated` any other."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False

    def match(self, char: int) -> bool:
        for low, high in self.ranges:  # asked for each character of each path
            if low <= char <= high:
                return not self.negated
        return self.negated


@dataclass(frozen=True, slots=True)
class TokenRef:
    """One token, by its id or by its text in angle brackets; with `negated` any other."""

    token: int | str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RuleRef:
    rule: int


Symbol = Chars | TokenRef | RuleRef
Alternate = tuple[Symbol, ...]
ANY: Final = Chars((), negated=True)
_ALT: Final = None  # between the alternates of a rule that is being read


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules by number, each with its alternates. Safe to give to llama.cpp as `text`."""

    text: str
    root: int
    rules: tuple[tuple[Alternate, ...], ...]


def parsed(text: str) -> Grammar:
    """Raises UserError with a sentence that names the line."""
    return _Parser(text).parse()


@dataclass(slots=True)
class _Parser:
    """As `llama_grammar_parser`, function by function. `at`: the next character."""

    text: str
    at: int = 0
    ids: dict[str, int] = field(default_factory=dict)
    rules: dict[int, list[Symbol | None]] = field(default_factory=dict)
    n_symbols: int = 0

    def parse(self) -> Grammar:
        if "\0" in self.text:
            raise UserError(tr("The grammar has a character that is no text."))
        self._space(newline=True)
        while self.at < len(self.text):
            self._rule()
        if ROOT not in self.ids:
            raise UserError(tr("The grammar has no rule “root”, with which answers begin."))
        for name, number in self.ids.items():
            if number not in self.rules:
                raise UserError(tr("The grammar has no rule “{name}”, which another names.").format(name=name[:80]))
        rules = tuple(_alternates(self.rules[number]) for number in range(len(self.ids)))
        names = {number: name for name, number in self.ids.items()}
        _check_recursion(rules, lambda number: names[number].split("_")[0])
        return Grammar(self.text, self.ids[ROOT], rules)

    # --- the notation -------------------------------------------------------------------------------------------------

    def _rule(self) -> None:
        name = self._name()
        self._space()
        number = self._id(name)
        if self.text[self.at : self.at + 3] != "::=":
            raise self._error(tr("“::=” is missing after the name of a rule"))
        self.at += 3
        self._space(newline=True)
        self._choice(name, number, 0)
        if self.at < len(self.text):
            if self.text[self.at] not in "\r\n":
                raise self._error(tr("something other than the parts of a rule"))
            self.at += 1
        self._space(newline=True)

    def _choice(self, name: str, number: int, depth: int) -> None:
        """Alternates between bars, as the rule `number`."""
        rule: list[Symbol | None] = []
        self._sequence(name, rule, depth)
        while self._peek() == "|":
            rule.append(_ALT)
            self.at += 1
            self._space(newline=True)
            self._sequence(name, rule, depth)
        self._add(number, rule)

    def _sequence(self, name: str, rule: list[Symbol | None], depth: int) -> None:  # noqa: C901 - one case a sign
        start, n_rules, nested = len(rule), 1, depth > 0
        while char := self._peek():
            if char == '"':
                start, n_rules = len(rule), 1
                self.at += 1
                while self._peek() != '"':
                    value = self._char()
                    rule.append(Chars(((value, value),)))
                self.at += 1
            elif char == "[":
                start, n_rules = len(rule), 1
                rule += self._class()
            elif char in "<!":
                start, n_rules = len(rule), 1
                rule.append(self._token())
            elif _is_word(char):
                start, n_rules = len(rule), 1
                rule.append(RuleRef(self._id(self._name())))
            elif char == "(":
                if depth >= MOST_NESTED:
                    raise self._error(tr("parentheses are nested too deeply"))
                self.at += 1
                self._space(newline=True)
                before = len(self.ids)
                inner = self._new_id(name)
                self._choice(name, inner, depth + 1)
                start, n_rules = len(rule), max(1, len(self.ids) - before)
                rule.append(RuleRef(inner))
                if self._peek() != ")":
                    raise self._error(tr("“)” is missing"))
                self.at += 1
            elif char == ".":
                start, n_rules = len(rule), 1
                rule.append(ANY)
                self.at += 1
            elif char in "*+?{":
                least, most = self._times(nested)
                if start == len(rule):
                    raise self._error(tr("there is nothing to repeat"))
                n_rules *= (most or 0) or least or 1
                if n_rules > MOST_REPEATED:
                    raise self._error(tr("more than {n:,} repetitions").format(n=MOST_REPEATED))
                self._repeat(name, rule, start, least, most)
            else:
                return
            self._space(newline=nested)
            self._count(rule)

    def _repeat(self, name: str, rule: list[Symbol | None], start: int, least: int, most: int | None) -> None:
        """`rule[start:]` is to come `least` to `most` times (None: any number): as rules that llama.cpp makes of it."""
        part = rule[start:]
        if least == 0:
            del rule[start:]
        for _ in range(1, least):
            rule += part
            self._count(rule)
        last: int | None = None
        for _ in range(1 if most is None else most - least):
            number = self._new_id(name)
            follows = number if most is None else last
            self._add(number, [*part, *([] if follows is None else [RuleRef(follows)]), _ALT])
            last = number
        if last is not None:
            rule.append(RuleRef(last))

    def _times(self, nested: bool) -> tuple[int, int | None]:
        """The numbers of `*`, `+`, `?` or `{m,n}`."""
        sign = self.text[self.at]
        self.at += 1
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        self._space(newline=nested)
        least = self._number()
        most: int | None = least
        self._space(newline=nested)
        if self._peek() == ",":
            self.at += 1
            self._space(newline=nested)
            most = self._number() if self._peek().isascii() and self._peek().isdigit() else None
            self._space(newline=nested)
        if self._peek() != "}":
            raise self._error(tr("“}” is missing"))
        self.at += 1
        if least > MOST_REPEATED:
            raise self._error(tr("more than {n:,} repetitions").format(n=MOST_REPEATED))
        if most is not None and most < least:
            raise self._error(tr("the most repetitions are fewer than the least"))
        return least, None if most is not None and most > MOST_REPEATED else most

    def _class(self) -> list[Symbol | None]:
        """`[a-z]` or `[^a-z]`; an empty one is nothing, as llama.cpp has it."""
        self.at += 1
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            low = high = self._char()
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self._char()
            ranges.append((low, high))
        self.at += 1
        return [Chars(tuple(ranges), negated)] if ranges else []

    def _token(self) -> TokenRef:
        negated = self._peek() == "!"
        self.at += negated
        start = self.at
        end = self.text.find(">", start)
        if self._peek() != "<" or end < 0:
            raise self._error(tr("a token is written <[id]> or <text>"))
        if self.text[start + 1 : start + 2] == "[":
            self.at += 2
            number = self._number()
            if self.text[self.at : self.at + 2] != "]>" or number >= 1 << 31:
                raise self._error(tr("a token is written <[id]> or <text>"))
            self.at += 2
            return TokenRef(number, negated)
        self.at = end + 1
        return TokenRef(self.text[start : self.at], negated)

    # --- its parts ----------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _space(self, *, newline: bool = False) -> None:
        blanks = " \t\r\n" if newline else " \t"
        while (char := self._peek()) and (char in blanks or char == "#"):
            if char == "#":
                while self._peek() not in ("", "\r", "\n"):
                    self.at += 1
            else:
                self.at += 1

    def _name(self) -> str:
        start = self.at
        while _is_word(self._peek()):
            self.at += 1
        if self.at == start:
            raise self._error(tr("the name of a rule is missing"))
        return self.text[start : self.at]

    def _number(self) -> int:
        start = self.at
        while self._peek().isascii() and self._peek().isdigit():
            self.at += 1
        if not 0 < self.at - start <= 9:
            raise self._error(tr("a number is missing, or too large"))
        return int(self.text[start : self.at])

    def _char(self) -> int:
        char = self._peek()
        if not char:
            raise self._error(tr("the grammar ends in the middle of a text"))
        self.at += 1
        if char != "\\":
            return ord(char)
        kind = self._peek()
        self.at += 1
        if n := _HEX.get(kind):
            digits = self.text[self.at : self.at + n]
            if len(digits) < n or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise self._error(tr("hexadecimal digits are missing"))
            self.at += n
            return int(digits, 16)
        if kind not in _ESCAPED:
            raise self._error(tr("“\\{char}” means nothing").format(char=kind))
        return ord(_ESCAPED[kind])

    def _id(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids))

    def _new_id(self, name: str) -> int:
        """Of a rule without a name; no name has the sign `_`."""
        return self._id(f"{name}_{len(self.ids)}")

    def _add(self, number: int, rule: list[Symbol | None]) -> None:
        self.rules[number] = rule
        self.n_symbols += len(rule)
        self._count([])

    def _count(self, rule: list[Symbol | None]) -> None:
        if self.n_symbols + len(rule) > MOST_SYMBOLS or len(self.ids) > MOST_RULES:
            raise UserError(tr("The grammar is too large."))

    def _error(self, what: str) -> UserError:
        line = self.text.count("\n", 0, self.at) + 1
        return UserError(tr("Line {line} of the grammar cannot be read: {what}.").format(line=line, what=what))


def _is_word(char: str) -> bool:
    return char == "-" or (char.isascii() and char.isalnum())


def _alternates(rule: list[Symbol | None]) -> tuple[Alternate, ...]:
    found: list[list[Symbol]] = [[]]
    for symbol in rule:
        if symbol is _ALT:
            found.append([])
        else:
            found[-1].append(symbol)
    return tuple(map(tuple, found))


def _check_recursion(rules: tuple[tuple[Alternate, ...], ...], name: Callable[[int], str]) -> None:
    """Raises UserError if a rule can begin with itself, or begins in far too many ways."""
    empty = _may_be_empty(rules)
    firsts = [[first for alternate in alternates for first in _firsts(alternate, empty)] for alternates in rules]
    try:
        order = tuple(TopologicalSorter(dict(enumerate(firsts))).static_order())
    except CycleError as error:
        rule = name(error.args[1][0])[:80]
        raise UserError(tr("The grammar’s rule “{name}” begins with itself, without end.").format(name=rule)) from None
    paths = [0] * len(rules)
    for number in order:
        paths[number] = 1 + sum(paths[first] for first in firsts[number])
        if paths[number] > MOST_PATHS:
            rule = name(number)[:80]
            raise UserError(tr("The grammar’s rule “{name}” can begin in too many ways.").format(name=rule))


def _firsts(alternate: Alternate, empty: list[bool]) -> Iterator[int]:
    """Rules with which it can begin: those before it may be empty."""
    for symbol in alternate:
        if not isinstance(symbol, RuleRef):
            return
        yield symbol.rule
        if not empty[symbol.rule]:
            return


def _may_be_empty(rules: tuple[tuple[Alternate, ...], ...]) -> list[bool]:
    """Which rules allow an empty text."""
    empty = [False] * len(rules)
    users: dict[int, list[int]] = {}
    for number, alternates in enumerate(rules):
        for alternate in alternates:
            for symbol in alternate:
                if isinstance(symbol, RuleRef):
                    users.setdefault(symbol.rule, []).append(number)
    todo = list(range(len(rules)))
    while todo:
        number = todo.pop()
        if empty[number]:
            continue
        if any(all(isinstance(s, RuleRef) and empty[s.rule] for s in alternate) for alternate in rules[number]):
            empty[number] = True
            todo += users.get(number, [])
    return empty
