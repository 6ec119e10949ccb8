"""Rules of a grammar, in GBNF, for JSON as models write it: values of each type, texts that an automaton accepts,
values given in advance, whole numbers within limits.

A value begins and ends with its own first and last character; the blanks around it belong to what it is in.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from kvdesk.grammar.automaton import EVERY, Automaton, Ranges, common, joined

MOST_NESTED: Final = 64
_PLAIN_CHAR: Final = r'[^"\\\x00-\x1F]'
_WHOLE_CODE: Final = "[0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}"
_TWO_HALVES: Final = r'[dD] [89abAB] [0-9a-fA-F]{2} "\\u" [dD] [c-fC-F] [0-9a-fA-F]{2}'
_HOUR: Final = '( [01] [0-9] | "2" [0-3] )'
_PRIMITIVES: Final[dict[str, tuple[str, ...]]] = {
    "space": (r'| " " | "\n"{1,2} [ \t]{0,20}',),
    "value": (
        "object | array | string | number | boolean | null",
        *("object", "array", "string", "number", "boolean", "null"),
    ),
    "object": ('"{" space ( member ( "," space member )* )? "}"', "space", "member"),
    "member": ('string space ":" space value space', "string", "space", "value"),
    "array": ('"[" space ( value space ( "," space value space )* )? "]"', "space", "value"),
    "string": (r'"\"" char* "\""', "char"),
    "char": (rf'{_PLAIN_CHAR} | "\\" ( ["\\/bfnrt] | "u" ( {_WHOLE_CODE} | {_TWO_HALVES} ) )',),
    "number": ('integer ( "." [0-9]{1,24} )? ( [eE] [-+]? [0-9]{1,3} )?', "integer"),
    "integer": ('"-"? ( "0" | [1-9] [0-9]{0,19} )',),
    "boolean": ('"true" | "false"',),
    "null": ('"null"',),
    "date": ('[0-9]{4} "-" ( "0" [1-9] | "1" [0-2] ) "-" ( "0" [1-9] | [12] [0-9] | "3" [01] )',),
    "clock": (f'{_HOUR} ":" [0-5] [0-9] ":" [0-5] [0-9] ( "." [0-9]{{1,9}} )?',),
    "time": (f'clock ( [zZ] | [-+] {_HOUR} ":" [0-5] [0-9] )', "clock"),
    "text-date": (r'"\"" date "\""', "date"),
    "text-time": (r'"\"" time "\""', "time"),
    "text-date-time": (r'"\"" date [tT] time "\""', "date", "time"),
    "text-uuid": (r'"\"" [0-9a-fA-F]{8} ( "-" [0-9a-fA-F]{4} ){3} "-" [0-9a-fA-F]{12} "\""',),
}
"""Each with the others that it names."""
PRIMITIVES: Final = frozenset(_PRIMITIVES)
"""Rules that are the same in every grammar."""
FORMATS: Final = frozenset(name.removeprefix("text-") for name in _PRIMITIVES if name.startswith("text-"))
_SHORT: Final = {0x22: '"', 0x5C: "\\", 0x8: "b", 0xC: "f", 0xA: "n", 0xD: "r", 0x9: "t"}
"""Characters with an escape of one letter."""
_PLAIN: Final[Ranges] = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF))
_CONTROLS: Final[Ranges] = ((0, 7), (0xB, 0xB), (0xE, 0x1F))
_HALF: Final = re.compile(r"[\ud800-\udfff]")  # of a character: no text can have it
_MOST_DIGITS: Final = 15


class Rules:
    """The rules of one grammar. What is the same twice is one rule."""

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def primitive(self, name: str) -> str:
        """A rule of the table, and those that it names."""
        todo = [name]
        while todo:
            one = todo.pop()
            if one not in self._bodies:
                self._bodies[one], *named = _PRIMITIVES[one]
                todo += named
        return name

    def add(self, kind: str, body: str) -> str:
        """The name of the rule with this body."""
        name = self._names.get(body)
        if name is None:
            name = self._names[body] = self.reserve(kind)
            self._bodies[name] = body
        return name

    def reserve(self, kind: str) -> str:
        """A name for a rule whose body names it; `define` gives the body."""
        name = f"{kind}-{len(self._bodies)}"
        self._bodies[name] = ""
        return name

    def define(self, name: str, body: str) -> None:
        self._bodies[name] = body

    def text(self) -> str:
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items())

    # --- texts --------------------------------------------------------------------------------------------------------

    def string(self, automaton: Automaton) -> str:
        """A JSON string whose text the automaton accepts."""
        n_before = [1, *[0] * (len(automaton) - 1)]
        for state in automaton:
            for _, target in state.edges:
                n_before[target] += 1
        alone = [n == 1 and len(state.edges) + state.accepts == 1 for n, state in zip(n_before, automaton, strict=True)]
        names = {number: self.reserve("text") for number, inlined in enumerate(alone) if not inlined or number == 0}
        for number, name in names.items():
            state = automaton[number]
            choices = ['"\\""'] if state.accepts else []
            for ranges, target in state.edges:
                parts = [self._one_of(ranges)]
                while target not in names:
                    following = automaton[target]
                    if following.accepts:
                        parts.append('"\\""')
                        break
                    ((ranges, target),) = following.edges
                    parts.append(self._one_of(ranges))
                else:
                    parts.append(names[target])
                choices.append(" ".join(parts))
            self._bodies[name] = " | ".join(choices)
        return f'"\\"" {names[0]}'

    def _one_of(self, ranges: Ranges) -> str:
        """One character of these, as JSON writes it."""
        if ranges == EVERY:
            return self.primitive("char")
        found = [_class(plain)] if (plain := common(ranges, _PLAIN)) else []
        if short := [letter for char, letter in _SHORT.items() if common(ranges, ((char, char),))]:
            found.append(f'"\\\\" {_class(joined((ord(letter), ord(letter)) for letter in short))}')
        controls = [char for low, high in common(ranges, _CONTROLS) for char in range(low, high + 1)]
        for first in (0, 1):
            if digits := {f"{char % 16:x}" for char in controls if char // 16 == first}:
                either = {ord(digit) for low in digits for digit in (low, low.upper())}
                found.append(f'"\\\\u00{first}" {_class(joined((digit, digit) for digit in either))}')
        return found[0] if len(found) == 1 else f"( {' | '.join(found)} )"


def literal(value: Any, depth: int = 0) -> str:
    """A value given in advance; blanks between its parts are free. Raises RecursionError. Needs the rule `space`."""
    if depth > MOST_NESTED:
        raise RecursionError
    match value:
        case dict():
            members = (
                f'{literal(key)} space ":" space {literal(inner, depth + 1)} space' for key, inner in value.items()
            )
            return f'"{{" space {_listed(members)}"}}"'
        case list():
            return f'"[" space {_listed(f"{literal(inner, depth + 1)} space" for inner in value)}"]"'
        case _:
            text = _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False))
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def whole_numbers(least: int | None, most: int | None) -> str:
    """Whole numbers from `least` to `most`, if they are not too long: then that end is open. "" for all."""
    least, most = (None if n is None or abs(n) >= 10**_MOST_DIGITS else n for n in (least, most))
    if least is None and most is None:
        return ""
    choices = []
    if least is None or least < 0:
        choices.append(
            f'"-" ( {_from_to(max(1, -most) if most is not None else 1, None if least is None else -least)} )'
        )
    if most is None or most >= 0:
        choices.append(_from_to(max(0, least or 0), most))
    return " | ".join(choices)


def _from_to(low: int, high: int | None) -> str:
    """Digits of the numbers from `low`, which is not below 0, to `high`."""
    choices = []
    start = str(low)
    for n in range(len(start), len(str(high)) + 1 if high is not None else len(start) + 1):
        first = start if n == len(start) else f"1{'0' * (n - 1)}"
        last = str(high) if high is not None and n == len(str(high)) else "9" * n
        choices.append(_of_digits(first, last))
    if high is None:
        choices.append(f"[1-9] [0-9]{{{len(start)},{max(19, len(start))}}}")
    return " | ".join(choices)


def _of_digits(first: str, last: str) -> str:
    """Digits from `first` to `last`, which are as many."""
    if not first:
        return ""
    if first[0] == last[0]:
        rest = _of_digits(first[1:], last[1:])
        return f'"{first[0]}" {f"( {rest} )" if " | " in rest else rest}'.rstrip()
    n = len(first) - 1
    low, high, choices = int(first[0]), int(last[0]), []
    if first[1:] != "0" * n:
        choices.append(_of_digits(first, f"{low}{'9' * n}"))
        low += 1
    above = ""
    if last[1:] != "9" * n:
        above = _of_digits(f"{high}{'0' * n}", last)
        high -= 1
    if low <= high:
        choices.append(" ".join([f"[{low}-{high}]", *["[0-9]"] * n]))
    return " | ".join([*choices, *([above] if above else [])])


def _listed(parts: Iterable[str]) -> str:
    text = ' "," space '.join(parts)
    return f"{text} " if text else ""


def _class(ranges: Ranges) -> str:
    return f"[{''.join(_sign(low) if low == high else f'{_sign(low)}-{_sign(high)}' for low, high in ranges)}]"


def _sign(char: int) -> str:
    if char > 0xFFFF:
        return f"\\U{char:08X}"
    if char > 0x7E:
        return f"\\u{char:04X}"
    return f"\\{chr(char)}" if chr(char) in '\\"[]-' else f"\\x{char:02X}" if char < 0x20 or char == 0x5E else chr(char)
