"""JSON schemas as grammars, by llama-cpp-python's converter with what later versions of it have mended: repetitions
as `{m,n}`, literals with a backslash, references that are converted once.

What it cannot take is refused before: it would fill the memory with a large `minItems`, and never end with an
expression in `pattern` that closes a bracket nobody opened. Numbers have no limits (`minimum` is not looked at).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from kvdesk.backends.local.llama.binding import schema_module
from kvdesk.errors import UserError
from kvdesk.grammar.gbnf import MOST_REPEATED
from kvdesk.settings.sampling import MOST_TEXT
from kvdesk.translation import tr

MOST_PATTERN: Final = 1000
"""Characters of a regular expression."""
MOST_GRAMMAR: Final = 4 * MOST_TEXT
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength")
_QUANTIFIER: Final = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")


@lru_cache(maxsize=8)
def gbnf_of(schema: str) -> str:
    """The grammar of the JSON that a schema describes. Raises UserError with a sentence."""
    try:
        found = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise UserError(tr("The JSON schema is not JSON: {problem}.").format(problem=str(error)[:200])) from None
    if not isinstance(found, dict):
        raise UserError(tr("The JSON schema is not an object, such as {example}.").format(example='{"type": "object"}'))
    try:
        _check(found)
        grammar = _converted(found)
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - asserts, KeyError, RecursionError: whatever the converter stumbles over
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(tr("The JSON schema cannot be used: {problem}.").format(problem=problem)) from None
    if len(grammar) > MOST_GRAMMAR:
        raise UserError(tr("The JSON schema is too large."))
    return grammar


def _check(part: Any) -> None:
    """Raises UserError for what the converter does not survive."""
    if isinstance(part, list):
        for inner in part:
            _check(inner)
    elif isinstance(part, dict):
        counts = [part[name] for name in _COUNTS if name in part and not isinstance(part[name], dict)]
        if any(type(n) is not int or not 0 <= n <= MOST_REPEATED for n in counts):
            raise UserError(
                tr("The JSON schema cannot be used: {names} are numbers from 0 to {n:,}.").format(
                    names=", ".join(_COUNTS), n=MOST_REPEATED
                )
            )
        pattern = part.get("pattern")
        if isinstance(pattern, str) and not _usable(pattern):
            raise UserError(tr("The JSON schema’s pattern {pattern} cannot be used.").format(pattern=pattern[:80]))
        for inner in part.values():
            _check(inner)


def _usable(pattern: str) -> bool:
    """Whether every bracket that is closed was opened, and nothing is repeated too often."""
    if len(pattern) > MOST_PATTERN:
        return False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
        elif char == "[":
            end = at + 1
            while end < len(pattern) and pattern[end] != "]":
                end += 2 if pattern[end] == "\\" else 1
            if end >= len(pattern):
                return False
            at = end + 1
        elif char == "{":
            quantifier = _QUANTIFIER.match(pattern, at)
            if quantifier is None or any(len(n) > 4 or int(n) > MOST_REPEATED for n in quantifier.groups() if n):
                return False
            at = quantifier.end()
        elif char in "]}":
            return False
        else:
            at += 1
    return True


def _converted(schema: dict[str, Any]) -> str:
    module = schema_module()
    module._build_repetition = _repetition  # noqa: SLF001 - the module's own has a parenthesis for each repetition
    converter = module.SchemaConverter(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
    names: dict[str, str] = {}

    def resolved(ref: str) -> str:
        """The rule of a reference. Converted once: references in each other would double the work with each level."""
        if ref not in names:
            name = names[ref] = f"ref-{len(names)}"
            converter._rules[name] = converter.visit(converter._refs[ref], f"{name}-is")  # noqa: SLF001
        return names[ref]

    converter._format_literal = _literal  # noqa: SLF001
    converter._generate_constant_rule = lambda value: _literal(json.dumps(value))  # noqa: SLF001
    converter._resolve_ref = resolved  # noqa: SLF001
    converter._refs = _References(schema)  # noqa: SLF001
    converter.visit(schema, "")
    return str(converter.format_grammar())


class _References(dict[str, Any]):
    """What each reference inside a schema stands for; nothing is fetched."""

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__()
        self._schema = schema

    def __missing__(self, ref: str) -> Any:
        target: Any = self._schema
        if not ref.startswith("#"):
            raise ValueError(tr("the reference {ref} leads out of the schema").format(ref=ref))
        for part in ref.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                raise ValueError(tr("the reference {ref} leads nowhere").format(ref=ref))
        return target


def _literal(text: str) -> str:
    """JSON as a text of a grammar, characters outside ASCII as they are."""
    plain = json.dumps(json.loads(text), ensure_ascii=False)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _repetition(
    item: str,
    least: int,
    most: int | None,
    separator_rule: str | None = None,
    item_rule_is_literal: bool = False,  # noqa: ARG001 - as the module calls it
) -> str:
    """As in llama.cpp's examples/json_schema_to_grammar.py."""
    if most == 0:
        return '""'
    if most is not None and most < least:
        raise ValueError(tr("there cannot be {least} or more and {most} or fewer").format(least=least, most=most))
    if separator_rule is None:
        return f"{item}{{{least},{'' if most is None else most}}}"
    more = _repetition(f"({separator_rule} {item})", max(0, least - 1), None if most is None else most - 1)
    return f"{item} {more}" if least else f"({item} {more})?"
