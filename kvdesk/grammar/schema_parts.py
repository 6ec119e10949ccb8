"""The parts of a JSON schema, each with its place, and what counts at one place: `allOf` and `$ref` bring several
schemas together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal
from urllib.parse import unquote

from kvdesk.errors import SchemaError
from kvdesk.grammar.gbnf import MOST_REPEATED
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
HINTS: Final[dict[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""The type of a schema that names none, by the keywords that it has."""
_USED: Final = frozenset({"type", "enum", "const", *(name for names in HINTS.values() for name in names)})
_MOST_PLACE: Final = 120
"""Characters of a place in a sentence."""
Path = tuple[str | int, ...]
Kind = Literal["schema", "plain", "choice"]
Key = tuple[Path, Kind]


@dataclass(frozen=True, slots=True)
class Part:
    """One schema inside the whole.

    path  where it is, by names and numbers
    kind  "plain": what it says itself, without the schemas that it brings in; "choice": a list, of which one counts
    """

    schema: Any
    path: Path = ()
    kind: Kind = "schema"

    @property
    def key(self) -> Key:
        """No other part of the whole has it."""
        return self.path, self.kind

    def inner(self, *names: str | int) -> Part:
        schema = self.schema
        for name in names:
            schema = schema[name]
        return Part(schema, (*self.path, *names))

    def of(self, kind: Kind) -> Part:
        return Part(self.schema, self.path, kind)

    def refused(self, problem: str, *names: str | int) -> SchemaError:
        """The error for what is at `names` in it. `problem` is part of a sentence."""
        place = ".".join(map(_word, (*self.path, *names)))
        if not place:
            return SchemaError(tr("The JSON schema cannot be used: {problem}.").format(problem=problem))
        short = place if len(place) <= _MOST_PLACE else "…" + place[-_MOST_PLACE:]
        said = tr("{place} of the JSON schema cannot be used: {problem}.")
        return SchemaError(said.format(place=short, problem=problem), place)

    # --- keywords -----------------------------------------------------------------------------------------------------

    def object(self, name: str) -> dict[str, Any]:
        """An object of schemas, {} if there is none."""
        found = self.schema.get(name, {})
        if not isinstance(found, dict):
            raise self.refused(tr("it is an object"), name)
        return found

    def several(self, name: str) -> tuple[Part, ...]:
        """A list of schemas, () if there is none."""
        found = self.schema.get(name)
        if found is None and name not in self.schema:
            return ()
        if not isinstance(found, list) or not found:
            raise self.refused(tr("it is a list of schemas"), name)
        return tuple(self.inner(name, i) for i in range(len(found)))

    def text(self, name: str) -> str:
        """A text, "" if there is none."""
        found = self.schema.get(name, "")
        if not isinstance(found, str):
            raise self.refused(tr("it is a text"), name)
        return found

    def count(self, name: str) -> int | None:
        """A whole number from 0 on, None if there is none."""
        found = self.schema.get(name)
        if found is None and name not in self.schema:
            return None
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if type(found) is not int or found < 0:
            raise self.refused(tr("it is a whole number from 0 on"), name)
        return found


def _word(name: str | int) -> str:
    text = str(name)[:60]
    return text if text.isprintable() else json.dumps(text)[1:-1]


def counts(parts: Sequence[Part], least_name: str, most_name: str) -> tuple[int | None, int | None]:
    """How many the parts want: at least, where any says so, and at most; None is open."""
    least, most = None, None
    for part in parts:
        if (n := part.count(least_name)) is not None:
            least = max(n, least or 0)
            if n > MOST_REPEATED:
                raise part.refused(tr("more than {n:,} are not possible").format(n=MOST_REPEATED), least_name)
        if (n := part.count(most_name)) is not None:
            most = n if most is None else min(n, most)
    if most is not None and most < (least or 0):
        said = tr("there cannot be {least:,} or more and {most:,} or fewer")
        raise parts[-1].refused(said.format(least=least or 0, most=most), most_name)
    return least, None if most is None or most > MOST_REPEATED else most


@dataclass(slots=True)
class Gathered:
    """What counts at one place. `refs`: schemas that are referred to, if they were not followed."""

    plain: list[Part] = field(default_factory=list)
    refs: list[Part] = field(default_factory=list)
    choices: list[Part] = field(default_factory=list)

    @property
    def only_ref(self) -> Part | None:
        """The schema that is referred to, if nothing else counts."""
        is_one = len({ref.path for ref in self.refs}) == 1
        return self.refs[0] if is_one and not self.plain and not self.choices else None


def gathered(whole: Part, parts: Sequence[Part], *, follow: bool = False) -> Gathered:
    """What counts where all the parts do. `follow`: with what they refer to. Raises SchemaError."""
    found = Gathered()
    todo = list(reversed(parts))
    seen: set[Key] = set()
    while todo:
        part = todo.pop()
        if part.key in seen:
            continue
        seen.add(part.key)
        match part:
            case Part(kind="plain"):
                found.plain.append(part)
            case Part(kind="choice"):
                found.choices.append(part)
            case Part(schema=dict() as schema):
                todo += reversed(part.several("allOf"))
                if "$ref" in schema:
                    (todo if follow else found.refs).append(_target(whole, part))
                found.choices += [part.inner(name).of("choice") for name in ("anyOf", "oneOf") if part.several(name)]
                if not _USED.isdisjoint(schema):
                    found.plain.append(part.of("plain"))
            case Part(schema=False):
                raise part.refused(tr("false allows no value"))
            case Part(schema=schema) if schema is not True:
                raise part.refused(tr("a schema is an object, true or false"))
    return found


def _target(whole: Part, part: Part) -> Part:
    """The schema that a reference names. Raises SchemaError."""
    ref = part.text("$ref")
    identity = whole.schema.get("$id")
    if isinstance(identity, str) and identity:
        ref = ref.removeprefix(identity.rstrip("#"))
    if ref and not ref.startswith("#"):
        raise part.refused(tr("{ref} leads out of the schema").format(ref=ref[:80]), "$ref")
    first, *words = unquote(ref).split("/")
    nowhere = part.refused(tr("{ref} leads nowhere").format(ref=ref[:80]), "$ref")
    if first != "#":
        raise nowhere
    found = whole
    for word in words:
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(found.schema, dict) and name in found.schema:
            found = found.inner(name)
        elif isinstance(found.schema, list) and name in map(str, range(len(found.schema))):
            found = found.inner(int(name))
        else:
            raise nowhere
    return found
