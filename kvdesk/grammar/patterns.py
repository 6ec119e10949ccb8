"""Regular expressions, as JSON schemas have them in `pattern` (ECMA-262), as automata that read the whole text.

An expression without anchors means that the text contains it. What an automaton cannot tell is left out, so that more
texts are accepted: looking ahead and behind, `\\b`, and what a back-reference repeats (any text). `\\p{…}` is any
character. Flags, such as `(?i)`, make the whole expression one that accepts any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kvdesk.grammar.automaton import EVERY, LAST, Automaton, Ranges, TooLarge, Work, explored, joined, others
from kvdesk.grammar.gbnf import MOST_REPEATED
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

MOST_PATTERN: Final = 1000
"""Characters of a regular expression."""
_MOST_NESTED: Final = 50
_MOST_PLACES: Final = 20_000
_DIGITS: Final[Ranges] = ((0x30, 0x39),)
_WORD: Final[Ranges] = joined([*_DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_BLANKS: Final[Ranges] = joined(
    [
        *((0x9, 0xD), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
        *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ]
)
_IN_LINE: Final = others(joined([(0xA, 0xA), (0xD, 0xD), (0x2028, 0x2029)]))
_KINDS: Final[dict[str, Ranges]] = {
    kind: ranges
    for small, known in (("d", _DIGITS), ("w", _WORD), ("s", _BLANKS))
    for kind, ranges in ((small, known), (small.upper(), others(known)))
}
_CONTROLS: Final = {"t": 0x9, "n": 0xA, "v": 0xB, "f": 0xC, "r": 0xD, "0": 0}
_QUANTIFIER: Final = re.compile(r"\{(?:(\d+)(?:(,)(\d*))?|,(\d+))\}")
_CODE: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
_LOW_HALF: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_GROUP: Final = re.compile(r"\?(?::|>|P?<(?![=!])[^<>]*>)")
_LOOK: Final = re.compile(r"\?(?:=|!|<=|<!)")
_BACK: Final = re.compile(r"[1-9]\d*|k<[^<>]*>")
_SAME: Final = re.compile(r"\?P=\w+\)")
_PROPERTY: Final = re.compile(r"[pP](?:\{[^{}]*\}|[A-Z])")


class WrongPattern(ValueError):
    """The regular expression is none; the text says why, as part of a sentence."""


class _Unknown(Exception):
    """A part whose meaning is not known here, but is elsewhere."""


def automaton_of(pattern: str, work: Work) -> Automaton | None:
    """Accepts the texts that match; None if that is not known, or takes too long. Raises WrongPattern."""
    if len(pattern) > MOST_PATTERN:
        raise WrongPattern(tr("it has more than {n:,} characters").format(n=MOST_PATTERN))
    try:
        found = _Places(_Reader(pattern).whole(), work).automaton()
    except (TooLarge, _Unknown):
        return None
    if not found:
        raise WrongPattern(tr("no text matches it"))
    return found


# --- what an expression consists of -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _One:
    """One character of these."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Anchor:
    """The beginning of the text, or its end."""

    at_end: bool


@dataclass(frozen=True, slots=True)
class _Row:
    parts: tuple[_Part, ...] = ()


@dataclass(frozen=True, slots=True)
class _Choice:
    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Repeated:
    part: _Part
    least: int
    most: int | None


_Part = _One | _Anchor | _Row | _Choice | _Repeated
_NOTHING: Final = _Row()
_ANY_TEXT: Final = _Repeated(_One(EVERY), 0, None)


@dataclass(slots=True)
class _Reader:
    """Reads an expression. `at`: the next character."""

    text: str
    at: int = 0

    def whole(self) -> _Part:
        part = self._choice(0)
        if self.at < len(self.text):
            raise WrongPattern(tr("“)” closes nothing"))
        return part

    def _choice(self, depth: int) -> _Part:
        if depth > _MOST_NESTED:
            raise WrongPattern(tr("parentheses are nested too deeply"))
        parts = [self._row(depth)]
        while self._take("|"):
            parts.append(self._row(depth))
        return parts[0] if len(parts) == 1 else _Choice(tuple(parts))

    def _row(self, depth: int) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._single(depth)
            if (times := self._times()) is not None:
                if isinstance(part, _Anchor):
                    raise WrongPattern(tr("there is nothing to repeat"))
                part = _Repeated(part, *times)
                self._take("?")  # as few as can be: of the same texts
            parts.append(part)
        return parts[0] if len(parts) == 1 else _Row(tuple(parts))

    def _single(self, depth: int) -> _Part:
        char = self.text[self.at]
        if char in "*+?" or _QUANTIFIER.match(self.text, self.at):
            raise WrongPattern(tr("there is nothing to repeat"))
        self.at += 1
        match char:
            case "(":
                return self._group(depth)
            case "[":
                return _One(self._class())
            case ".":
                return _One(_IN_LINE)
            case "^" | "$":
                return _Anchor(at_end=char == "$")
            case "\\":
                return self._escape()
            case _:
                return _One(((ord(char), ord(char)),))

    def _group(self, depth: int) -> _Part:
        if self._match(_SAME):
            return _ANY_TEXT
        looks = self._match(_LOOK) is not None
        if not looks and self._match(_GROUP) is None and self.text[self.at : self.at + 1] == "?":
            raise _Unknown
        part = self._choice(depth + 1)
        if not self._take(")"):
            raise WrongPattern(tr("“)” is missing"))
        return _NOTHING if looks else part

    def _times(self) -> tuple[int, int | None] | None:
        """What a quantifier says; None if there is none."""
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return times
        match = self._match(_QUANTIFIER)
        if match is None:
            return None
        least = _number(match[1] or "0")
        most: int | None = _number(match[4] or match[3] or match[1])
        if match[2] and not match[3]:
            most = None
        if least > MOST_REPEATED:
            raise WrongPattern(tr("more than {n:,} repetitions").format(n=MOST_REPEATED))
        if most is not None and most < least:
            raise WrongPattern(tr("the most repetitions are fewer than the least"))
        return least, None if most is not None and most > MOST_REPEATED else most

    def _escape(self) -> _Part:
        """What follows a backslash."""
        char = self.text[self.at : self.at + 1]
        if char in ("b", "B"):
            self.at += 1
            return _NOTHING
        if char in ("A", "z", "Z"):
            self.at += 1
            return _Anchor(at_end=char != "A")
        if self._match(_BACK):
            return _ANY_TEXT
        return _One(self._chars())

    def _chars(self) -> Ranges:
        """The characters of an escape, outside a class or in one."""
        char = self.text[self.at : self.at + 1]
        if not char:
            raise WrongPattern(tr("it ends with “\\”"))
        if self._match(_PROPERTY):
            return EVERY
        if code := self._match(_CODE):
            number = int(code[1] or code[2] or code[3], 16)
            if 0xD800 <= number < 0xDC00 and (low := self._match(_LOW_HALF)):
                number = 0x10000 + ((number - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            if number > LAST:
                raise WrongPattern(tr("“\\{text}” is no character").format(text=code[0]))
            return ((number, number),)
        self.at += 1
        if char in _KINDS:
            return _KINDS[char]
        if char == "c" and (letter := self.text[self.at : self.at + 1]).isascii() and letter.isalpha():
            self.at += 1
            return ((ord(letter) % 32, ord(letter) % 32),)
        if char.isascii() and char.isalnum() and char not in _CONTROLS:
            raise WrongPattern(tr("“\\{text}” means nothing").format(text=char))
        number = _CONTROLS.get(char, ord(char))
        return ((number, number),)

    def _class(self) -> Ranges:
        """`[a-z]` or `[^a-z]`."""
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._member()
            if len(low) != 1 or low[0][0] != low[0][1] or not re.match(r"-[^\]]", self.text[self.at :]):
                found += low
                continue
            before = self.at
            self.at += 1
            high = self._member()
            if len(high) != 1 or high[0][0] != high[0][1]:
                found += low
                self.at = before
                continue
            if high[0][0] < low[0][0]:
                raise WrongPattern(tr("a range ends before it begins"))
            found.append((low[0][0], high[0][0]))
        ranges = joined(found)
        return EVERY if ranges == EVERY else others(ranges) if negated else ranges

    def _member(self) -> Ranges:
        char = self.text[self.at : self.at + 1]
        if not char:
            raise WrongPattern(tr("“]” is missing"))
        self.at += 1
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self._take("b"):
            return ((0x8, 0x8),)
        return self._chars()

    def _take(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 9 else 10**9


# --- from there to an automaton ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Places:
    """Between which characters of the expression one can be: from each place steps lead to others, with a character or
    without. The text before what is matched is read at the first place, the text after it at the last.
    """

    part: _Part
    work: Work
    free: list[list[int]] = field(default_factory=list)
    at_start: list[list[int]] = field(default_factory=list)
    at_end: list[list[int]] = field(default_factory=list)
    reading: list[list[tuple[Ranges, int]]] = field(default_factory=list)

    def automaton(self) -> Automaton:
        """Raises TooLarge."""
        first, last = self._new(), self._new()
        self.reading[first].append((EVERY, first))
        self.reading[last].append((EVERY, last))
        self.free[self._add(self.part, first, is_first=True)].append(last)
        all_ranges = list(dict.fromkeys(ranges for steps in self.reading for ranges, _ in steps))
        self.work.spend(2 * sum(map(len, all_ranges)) * len(all_ranges))
        kinds = _told_apart(all_ranges)
        of_ranges = {ranges: [kind for kind in kinds if _within(kind[0][0], ranges)] for ranges in all_ranges}

        def key(places: Iterable[int], *, is_start: bool = False) -> tuple[frozenset[int], bool]:
            reached = self._reached(places, at_start=is_start)
            if last in reached:
                return frozenset({last}), False
            return frozenset(p for p in reached if self.reading[p] or self.at_end[p]), is_start

        def accepts(key: tuple[frozenset[int], bool]) -> bool:
            return last in self._reached(key[0], at_start=key[1], at_end=True)

        def edges(before: tuple[frozenset[int], bool]) -> Iterator[tuple[Ranges, tuple[frozenset[int], bool]]]:
            targets: dict[Ranges, set[int]] = {}
            for place in before[0]:
                for ranges, target in self.reading[place]:
                    for kind in of_ranges[ranges]:
                        targets.setdefault(kind, set()).add(target)
                    self.work.spend(len(of_ranges[ranges]))
            for kind, places in targets.items():
                yield kind, key(places)

        return explored(key([first], is_start=True), accepts, edges)

    def _add(self, part: _Part, start: int, *, is_first: bool = False) -> int:
        """Steps that read `part` from `start` on; where they end. Raises TooLarge."""
        if is_first:  # the place where it begins is its own: the text before it is read at `start`
            self.free[start].append(start := self._new())
        match part:
            case _One(ranges):
                end = self._new()
                self.reading[start].append((ranges, end))
            case _Anchor(at_end):
                end = self._new()
                (self.at_end if at_end else self.at_start)[start].append(end)
            case _Row(parts):
                end = start
                for inner in parts:
                    end = self._add(inner, end)
            case _Choice(parts):
                end = self._new()
                for inner in parts:
                    begin = self._new()
                    self.free[start].append(begin)
                    self.free[self._add(inner, begin)].append(end)
            case _Repeated(inner, least, most):
                end = self._add_repeated(inner, start, least, most)
        return end

    def _add_repeated(self, part: _Part, start: int, least: int, most: int | None) -> int:
        for _ in range(least):
            start = self._add(part, start)
        end = self._new()
        if most is None:
            again = self._new()
            self.free[start].append(again)
            self.free[self._add(part, again)].append(again)
            self.free[again].append(end)
            return end
        for _ in range(most - least):
            self.free[start].append(end)
            start = self._add(part, start)
        self.free[start].append(end)
        return end

    def _reached(self, places: Iterable[int], *, at_start: bool = False, at_end: bool = False) -> set[int]:
        """Places that are reached without a character."""
        reached = set(places)
        todo = list(reached)
        while todo:
            place = todo.pop()
            following = self.free[place]
            if at_start:
                following = following + self.at_start[place]
            if at_end:
                following = following + self.at_end[place]
            for target in following:
                if target not in reached:
                    reached.add(target)
                    todo.append(target)
            self.work.spend(1 + len(following))
        return reached

    def _new(self) -> int:
        if len(self.free) >= _MOST_PLACES:
            raise TooLarge
        for steps in (self.free, self.at_start, self.at_end):
            steps.append([])
        self.reading.append([])
        return len(self.free) - 1


def _told_apart(all_ranges: Sequence[Ranges]) -> list[Ranges]:
    """All characters, in groups that no range divides."""
    edges = {0, *(edge for ranges in all_ranges for low, high in ranges for edge in (low, high + 1))}
    starts = sorted(edges - {LAST + 1})
    groups: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for low, after in zip(starts, [*starts[1:], LAST + 1], strict=True):
        groups.setdefault(tuple(_within(low, ranges) for ranges in all_ranges), []).append((low, after - 1))
    return [joined(group) for group in groups.values()]


def _within(char: int, ranges: Ranges) -> bool:
    return any(low <= char <= high for low, high in ranges)
