"""JSON schemas as grammars: a grammar allows what its schema allows, or more if it cannot tell.

Properties come in the order of the schema; those that are not required may be left out. Others come last, where
`additionalProperties`, `patternProperties` or the absence of `properties` allow them. All of `prefixItems` are written
unless `minItems` is smaller. An empty schema is any object where it is the whole, and any value inside one.

These are loosened: `not`, `if`, `contains`, `uniqueItems`, `multipleOf`, `minProperties`, `maxProperties`,
`dependent…`, `unevaluated…`, limits of numbers that may have fractions, limits of more than 15 digits, formats other
than `FORMATS`, parts of regular expressions (see `patterns`), a largest number of characters or items above
`MOST_REPEATED`.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from kvdesk.codec import read_json
from kvdesk.errors import SchemaError, UserError
from kvdesk.grammar.automaton import Automaton, TooLarge, Work, all_but, both, of_length
from kvdesk.grammar.gbnf import ROOT
from kvdesk.grammar.json_rules import FORMATS, Rules, literal, whole_numbers
from kvdesk.grammar.patterns import WrongPattern, automaton_of
from kvdesk.grammar.schema_parts import HINTS, TYPES, Key, Part, counts, gathered
from kvdesk.grammar.state import checked
from kvdesk.settings.sampling import MOST_TEXT
from kvdesk.translation import tr

MOST_GRAMMAR: Final = 4 * MOST_TEXT
_MOST_VISITS: Final = 20_000
_MOST_NESTED: Final = 48


@lru_cache(maxsize=8)
def gbnf_of(schema: str) -> str:
    """The grammar of the JSON that a schema describes. Raises SchemaError."""
    try:
        found = read_json(schema)
    except json.JSONDecodeError as error:
        problem = tr("line {line}, column {column}").format(line=error.lineno, column=error.colno)
        raise SchemaError(tr("The JSON schema is not JSON: {problem}.").format(problem=problem)) from None
    except ValueError:
        problem = tr("it has a number that is invalid, or too long")
        raise SchemaError(tr("The JSON schema is not JSON: {problem}.").format(problem=problem)) from None
    except RecursionError:
        raise SchemaError(tr("The JSON schema is nested too deeply.")) from None
    if not isinstance(found, dict | bool):
        said = tr("The JSON schema is not an object, such as {example}.")
        raise SchemaError(said.format(example='{"type": "object"}'))
    grammar = _Converter(found).grammar()
    if len(grammar) > MOST_GRAMMAR:
        raise _too_large()
    try:
        checked(grammar)
    except UserError:  # it names rules that nobody wrote
        raise _too_large() from None
    return grammar


def _too_large() -> SchemaError:
    return SchemaError(tr("The JSON schema is too large, or has too many optional parts."))


class _Converter:
    """Makes the rules of one schema. What may lead to itself (a reference, schemas that count together) has the name of
    its rule before it is visited.
    """

    def __init__(self, schema: Any) -> None:
        self._whole = Part(schema)
        self._rules = Rules()
        self._names: dict[frozenset[Key], str] = {}
        self._visiting: list[str | None] = []  # named rules; None if a value has begun since
        self._begins_with: dict[str, set[str]] = {}  # other named rules, by name
        self._parts: dict[str, Part] = {}  # by name of a rule: the first of its parts
        self._texts: dict[Automaton, str] = {}
        self._work = Work()
        self._n_visits = self._depth = 0

    def grammar(self) -> str:
        """Raises SchemaError."""
        if self._whole.schema == {}:
            self._rules.define(ROOT, self._rules.primitive("object"))
            return self._rules.text()
        self._rule((self._whole,), ROOT)
        try:
            TopologicalSorter(self._begins_with).prepare()
        except CycleError as error:
            part = self._parts[error.args[1][0]]
            raise part.refused(tr("it refers to itself, and to nothing else")) from None
        return self._rules.text()

    # --- any schema ---------------------------------------------------------------------------------------------------

    def _visit(self, parts: Sequence[Part]) -> str:
        """Values that all the parts allow, as alternates of a rule."""
        self._n_visits += 1
        if self._n_visits > _MOST_VISITS:
            raise _too_large()
        if self._depth >= _MOST_NESTED:
            raise parts[0].refused(tr("it is nested too deeply"))
        self._depth += 1
        found = gathered(self._whole, parts)
        if found.only_ref is not None:
            alternates = self._rule((found.only_ref,))
        elif found.refs or len(parts) > 1:
            alternates = self._rule(parts)
        else:
            alternates = self._alternates(found.plain, found.choices)
        self._depth -= 1
        return alternates

    def _inner(self, parts: Sequence[Part]) -> str:
        """Values inside another one, as a single symbol. No parts allow any value."""
        if not parts:
            return self._rules.primitive("value")
        with self._visit_of(None):
            alternates = self._visit(parts)
        return self._rules.add("value", alternates) if " " in alternates else alternates

    def _rule(self, parts: Sequence[Part], name: str = "") -> str:
        """The name of the rule for these parts. `name`: the one that it has already."""
        key = frozenset(part.key for part in parts)
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = name or self._rules.reserve("schema")
            self._parts[known] = parts[0]
            with self._visit_of(known):
                found = gathered(self._whole, parts)
                if found.only_ref is None and found.refs:
                    found = gathered(self._whole, parts, follow=True)
                only_ref = found.only_ref
                body = self._alternates(found.plain, found.choices) if only_ref is None else self._rule((only_ref,))
            self._rules.define(known, body)
        if self._visiting and (outer := self._visiting[-1]) is not None:
            self._begins_with.setdefault(outer, set()).add(known)
        return known

    @contextmanager
    def _visit_of(self, name: str | None) -> Iterator[None]:
        self._visiting.append(name)
        yield
        self._visiting.pop()

    def _alternates(self, plain: Sequence[Part], choices: Sequence[Part]) -> str:
        if not choices:
            return self._plain(plain) if plain else self._rules.primitive("value")
        first, *others = choices
        return _either(self._visit((*plain, *others, first.inner(i))) for i in range(len(first.schema)))

    def _plain(self, parts: Sequence[Part]) -> str:
        types = _types(parts)
        given = _given(parts, types)
        if given is not None:
            self._rules.primitive("space")
            return _either(given)
        return _either(self._of_type(name, parts) for name in types or _hinted(parts))

    def _of_type(self, name: str, parts: Sequence[Part]) -> str:
        match name:
            case "object":
                return self._object(parts)
            case "array":
                return self._array(parts)
            case "string":
                return self._string(parts)
            case "integer":
                return self._integer(parts)
            case _:
                return self._rules.primitive(name)

    # --- objects ------------------------------------------------------------------------------------------------------

    def _object(self, parts: Sequence[Part]) -> str:
        properties: dict[str, list[Part]] = {}
        for part in parts:
            for name in part.object("properties"):
                properties.setdefault(name, []).append(part.inner("properties", name))
        other = self._other_member(parts, properties)
        required = dict.fromkeys(name for part in parts for name in _required(part))
        for name in required:
            properties.setdefault(name, [])
        if not properties and other == "member":
            return self._rules.primitive("object")
        self._rules.primitive("space")
        members = [
            (f'{literal(name)} space ":" space {self._inner(inner)} space', name in required)
            for name, inner in properties.items()
        ]
        return self._rules.add("object", f'"{{" space {self._members(members, other)}"}}"')

    def _members(self, members: Sequence[tuple[str, bool]], other: str) -> str:
        """Members, each with whether it is required, then any number of others. Made from the last one on: `some` is
        at least one of those from here on, "" if there is none.
        """
        some = f'{other} ( "," space {other} )* ' if other else ""
        is_free, is_choice = True, False
        for member, is_required in reversed(members):
            if some and (is_choice or not is_required):
                some = f"{self._rules.add('members', some.strip())} "
            more = f'"," space {some}' if some else ""
            if more and is_free:
                more = f"( {more})? "
            is_choice = bool(some) and not is_required
            some = f"{member} {more}| {some}" if is_choice else f"{member} {more}"
            is_free = is_free and not is_required
        if not some:
            return ""
        return f"( {some})? " if is_free else f"( {some}) " if is_choice else some

    def _other_member(self, parts: Sequence[Part], properties: Iterable[str]) -> str:
        """A member that is none of the properties, "" if there may be none."""
        found = []
        for part in parts:
            for pattern in part.object("patternProperties"):
                automaton = self._automaton(part, pattern, "patternProperties", pattern)
                value = self._inner((part.inner("patternProperties", pattern),))
                found.append(self._member(self._text(automaton), value))
        given = [part.inner("additionalProperties") for part in parts if "additionalProperties" in part.schema]
        has_others = any("properties" in part.schema or "patternProperties" in part.schema for part in parts)
        if given and all(part.schema is not False for part in given):
            found.append(self._member(self._other_name(parts, properties), self._inner(given)))
        elif not given and not has_others:
            found.append(self._member(self._other_name(parts, properties), self._rules.primitive("value")))
        return self._rules.add("other", _either(found)) if len(found) > 1 else "".join(found)

    def _member(self, name: str, value: str) -> str:
        if (name, value) == ("string", "value"):
            return self._rules.primitive("member")
        self._rules.primitive("space")
        return self._rules.add("other", f'{name} space ":" space {value} space')

    def _other_name(self, parts: Sequence[Part], properties: Iterable[str]) -> str:
        names = [part.inner("propertyNames") for part in parts if "propertyNames" in part.schema]
        if names:
            return self._inner((*names, Part({"type": "string"}, (*names[0].path, "type"), kind="plain")))
        try:
            return self._text(all_but(properties) if properties else None)
        except TooLarge:
            return self._text(None)

    # --- arrays -------------------------------------------------------------------------------------------------------

    def _array(self, parts: Sequence[Part]) -> str:
        places: list[list[Part]] = []
        rest: list[Part] | None = []  # of the items behind those; None if there are none
        for part in parts:
            first, behind = _items(part)
            for i, item in enumerate(first):
                if i == len(places):
                    places.append([])
                places[i].append(item)
            rest = None if rest is None or behind is None else [*rest, *behind]
        least, most = counts(parts, "minItems", "maxItems")
        if not places and not rest and rest is not None and not least and most is None:
            return self._rules.primitive("array")
        self._rules.primitive("space")
        least = len(places) if least is None else least
        if most is not None:
            places, least = places[:most], min(least, most)
        if rest is None and least > len(places):
            raise parts[0].refused(tr("there cannot be {least:,} items").format(least=least))
        body = ""
        if rest is not None and (most is None or most > len(places)):
            other = self._inner(rest)
            n_least, n_most = max(0, least - len(places)), None if most is None else most - len(places)
            if places:
                body = self._repeated(other, n_least, n_most)
            else:
                more = self._repeated(other, max(0, n_least - 1), None if n_most is None else n_most - 1)
                body = f"{other} space {more}"
                body = body if least else f"( {body})? "
        for i in range(len(places) - 1, -1, -1):
            before = '"," space ' if i else ""
            body = f"{before}{self._inner(places[i])} space {body}"
            if i >= least:
                body = f"( {body})? "
        return self._rules.add("array", f'"[" space {body}"]"')

    def _repeated(self, item: str, least: int, most: int | None) -> str:
        """That many more items."""
        if most == 0:
            return ""
        more = self._rules.add("more", f'"," space {item} space')
        return f"{more}{{{least},{'' if most is None else most}}} "

    # --- texts and numbers --------------------------------------------------------------------------------------------

    def _string(self, parts: Sequence[Part]) -> str:
        least, most = counts(parts, "minLength", "maxLength")
        automaton = None
        for part in parts:
            if pattern := part.text("pattern"):
                automaton = self._both(automaton, self._automaton(part, pattern, "pattern"), part)
        if automaton is not None:
            try:
                lengths = of_length(least or 0, most) if least or most is not None else None
            except TooLarge:
                lengths = None
            return self._text(self._both(automaton, lengths, parts[-1]))
        formats = [name for part in parts if (name := part.text("format")) in FORMATS]
        if formats:
            return self._rules.primitive(f"text-{formats[0]}")
        if not least and most is None:
            return self._rules.primitive("string")
        char = self._rules.primitive("char")
        return self._rules.add("string", f'"\\"" {char}{{{least or 0},{"" if most is None else most}}} "\\""')

    def _automaton(self, part: Part, pattern: str, *place: str) -> Automaton | None:
        try:
            return automaton_of(pattern, self._work)
        except WrongPattern as error:
            raise part.refused(str(error), *place) from None

    def _both(self, one: Automaton | None, other: Automaton | None, part: Part) -> Automaton | None:
        """None accepts every text."""
        if one is None or other is None:
            return one or other
        try:
            found = both(one, other, self._work)
        except TooLarge:
            return one
        if not found:
            raise part.refused(tr("no text is all that it asks for"))
        return found

    def _text(self, automaton: Automaton | None) -> str:
        if automaton is None:
            return self._rules.primitive("string")
        if automaton not in self._texts:
            self._texts[automaton] = self._rules.string(automaton)
        return self._texts[automaton]

    def _integer(self, parts: Sequence[Part]) -> str:
        least, most = _limit(parts, "minimum", "exclusiveMinimum", 1), _limit(parts, "maximum", "exclusiveMaximum", -1)
        if least is not None and most is not None and least > most:
            raise parts[-1].refused(tr("no whole number is within its limits"))
        numbers = whole_numbers(least, most)
        return self._rules.add("integer", numbers) if numbers else self._rules.primitive("integer")


def _either(alternates: Iterable[str]) -> str:
    """Each once. A number may be a whole one, and a value anything."""
    found = list(dict.fromkeys(alternates))
    if "value" in found:
        return "value"
    if "number" in found and "integer" in found:
        found.remove("integer")
    return " | ".join(found)


def _types(parts: Sequence[Part]) -> list[str]:
    """Types that all the parts allow; [] if none names any."""
    allowed: set[str] | None = None
    for part in parts:
        if "type" not in part.schema:
            continue
        named = part.schema["type"]
        names = named if isinstance(named, list) and named else [named]
        for name in names:
            if name not in TYPES:
                raise part.refused(tr("a type is one of {types}").format(types=", ".join(TYPES)), "type")
        mine = {*names, *(("integer",) if "number" in names else ())}
        allowed = mine if allowed is None else allowed & mine
        if not allowed:
            raise part.refused(tr("no value is of all its types"), "type")
    return [
        name for name in TYPES if name in (allowed or ()) and not (name == "integer" and "number" in (allowed or ()))
    ]


def _hinted(parts: Sequence[Part]) -> list[str]:
    return [name for name, hints in HINTS.items() if any(hint in part.schema for part in parts for hint in hints)]


def _given(parts: Sequence[Part], types: Sequence[str]) -> list[str] | None:
    """The values of `enum` and `const`, as texts of a grammar; None if any value may come."""
    found: dict[str, None] | None = None
    for part in parts:
        for name in ("enum", "const"):
            if name not in part.schema:
                continue
            values = part.schema[name] if name == "enum" else [part.schema[name]]
            if not isinstance(values, list) or not values:
                raise part.refused(tr("it is a list of values"), name)
            try:
                texts = [literal(value) for value in values if not types or _type_of(value) & set(types)]
            except RecursionError:
                raise part.refused(tr("it is nested too deeply"), name) from None
            found = dict.fromkeys(text for text in texts if found is None or text in found)
            if not found:
                raise part.refused(tr("no value is left that fits"), name)
    return None if found is None else list(found)


def _type_of(value: Any) -> set[str]:
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"integer", "number"} if value.is_integer() else {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
        case _:
            return {"object"}


def _required(part: Part) -> list[str]:
    names = part.schema.get("required", [])
    if isinstance(names, bool):  # as older drafts have it, beside a property
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise part.refused(tr("it is a list of names"), "required")
    return names


def _items(part: Part) -> tuple[tuple[Part, ...], list[Part] | None]:
    """Schemas of the first items, and of those after them: [] any, None if there may be none."""
    first = part.several("prefixItems")
    behind = "items"
    if not first and isinstance(part.schema.get("items"), list) and part.schema["items"]:
        first, behind = part.several("items"), "additionalItems"
    if behind not in part.schema:
        return first, None if first else []
    return first, None if part.schema[behind] is False else [part.inner(behind)]


def _limit(parts: Sequence[Part], name: str, exclusive: str, sign: int) -> int | None:
    """The smallest whole number that is allowed (`sign` 1), or the largest (-1); None if that is open."""
    found: int | None = None
    for part in parts:
        is_flag = isinstance(part.schema.get(exclusive), bool)  # of `name`, in older drafts
        for keyword, is_beyond in ((name, is_flag and part.schema[exclusive]), (exclusive, True)):
            if keyword not in part.schema or (is_flag and keyword == exclusive):
                continue
            value = part.schema[keyword]
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise part.refused(tr("it is a number"), keyword)
            limit = sign * math.ceil(sign * value)
            if is_beyond and limit == value:
                limit += sign
            found = limit if found is None else sign * max(sign * limit, sign * found)
    return found
