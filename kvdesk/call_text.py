"""The parts of a written call: literals of its form, JSON values, and values as Python writes them.

Each function takes the text and a place in it. It raises `Wait` if more text decides and `No` if it does not match.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.call_format import ID, INDEX, KEY, NAME, NamedArguments, referred, takes_text
from kvdesk.loose_json import json_value, obj
from kvdesk.reasoning import MARK

_TOKENS: Final = re.compile(rf"({MARK.pattern}|\s+|[\[\]{{}},{ID}{INDEX}{KEY}{NAME}])")
_SLOTS: Final = {ID: re.compile(r"[\w.:-]{0,64}"), INDEX: re.compile(r"\d{0,4}")}
_BLANKS: Final = re.compile(r"\s*")
_JSON_PARTS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR: Final = re.compile(r"[\w.+-]+(?=\s*[,}\]])")
_KEY_OF_JSON: Final = re.compile(r'\s*,?\s*("(?:[^"\\]|\\.)*")\s*:\s*')
KEY_CHARS: Final = re.compile(r"[^\s<>\"'=:(){}\[\],]{1,128}")
_BARE: Final = re.compile(r"[^,)}\]\s<]+")


class Wait(Exception):
    """More text decides."""


class No(Exception):
    """It is no call."""


def tokens(literal: str) -> list[str]:
    """The parts of a literal between which blanks are free."""
    return [part for part in _TOKENS.split(literal) if part.strip()]


def after(text: str, at: int, tokens: Sequence[str], name: str = "") -> int:
    """Where the text goes on behind these parts. Raises Wait, No."""
    for token in tokens:
        if token in _SLOTS:
            found = _SLOTS[token].match(text, blanks(text, at))
            assert found is not None
            if found.end() == len(text):
                raise Wait
            at = found.end()
            continue
        wanted = name if token == NAME else token
        at = blanks(text, at)
        if not text.startswith(wanted, at):
            if wanted.startswith(text[at:]):
                raise Wait
            raise No
        at += len(wanted)
    return at


def optional(text: str, at: int, tokens: Sequence[str], over: bool) -> int:
    """As `after`, of parts that may lack. Raises Wait."""
    for n in range(len(tokens), 0, -1):
        try:
            return after(text, at, tokens[:n])
        except No:
            continue
        except Wait:
            if not over:
                raise
    return at


def blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def held_back(text: str, mark: str, start: int = 0) -> int:
    """Characters at the end of a text, from `start` on, with which the mark begins."""
    most = min(len(mark), len(text) - start)
    return next((n for n in range(most, 0, -1) if text.endswith(mark[:n])), 0)


def loosely(text: str) -> Any:
    """A value as JSON, else as Python writes it, else as a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(text.strip())
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def value_end(text: str, at: int) -> int | None:
    """Where the JSON value at this place ends; None while it does not."""
    if text[at] == '"':
        found = _JSON_TEXT.match(text, at)
        return found.end() if found else None
    if text[at] not in "{[":
        found = _SCALAR.match(text, at)
        return found.end() if found else None
    depth = 0
    while True:
        part = _JSON_PARTS.search(text, at)
        quote = text.find('"', at, part.start() if part else len(text))
        if part is None or quote >= 0:
            return None  # inside a string
        depth += (part[0] in "{[") - (part[0] in "}]")
        at = part.end()
        if depth == 0:
            return at


def members(text: str, at: int) -> tuple[list[tuple[str, int, int | None]], int | None]:
    """The members of the JSON object at this place: name, where the value begins, where it ends (None: not yet); and
    where the object ends.
    """
    members: list[tuple[str, int, int | None]] = []
    end = value_end(text, at)
    at += 1
    while (found := _KEY_OF_JSON.match(text, at)) is not None:
        begin = found.end()
        stop = value_end(text, begin) if begin < len(text) else None
        members.append((str(json_value(found[1])), begin, stop))
        if stop is None:
            break
        at = stop
    return members, end


def literal(text: str, at: int, quotes: tuple[str, str]) -> tuple[Any, int]:
    """The literal at this place, such as `["a", 1]`, and where it ends. quotes: more quotation marks, begin and end.

    Raises Wait, No.
    """
    if at >= len(text):
        raise Wait
    begin, close = quotes
    if len(begin) > 1 and begin.startswith(text[at : at + len(begin)]) and not text.startswith(begin, at):
        raise Wait
    if len(begin) > 1 and text.startswith(begin, at):
        end = text.find(close, at + len(begin))
        if end < 0:
            raise Wait
        return text[at + len(begin) : end], end + len(close)
    if text[at] in "\"'":
        found = re.compile(rf"{text[at]}(?:[^{text[at]}\\]|\\.)*{text[at]}", re.DOTALL).match(text, at)
        if found is None:
            raise Wait
        value = loosely(found[0])
        return (value if isinstance(value, str) and value != found[0] else found[0][1:-1]), found.end()
    if text[at] in "[{":
        return _collection(text, at, quotes)
    found = _BARE.match(text, at)
    if found is None:
        raise No
    if found.end() == len(text):
        raise Wait
    return loosely(found[0]), found.end()


def _collection(text: str, at: int, quotes: tuple[str, str]) -> tuple[Any, int]:
    is_list, at = text[at] == "[", at + 1
    items: list[Any] = []
    pairs: dict[str, Any] = {}
    while True:
        at = blanks(text, at)
        if at >= len(text):
            raise Wait
        if text[at] in "]}":
            return (items if is_list else pairs), at + 1
        if text[at] == ",":
            at += 1
            continue
        if is_list:
            value, at = literal(text, at, quotes)
            items.append(value)
            continue
        bare = KEY_CHARS.match(text, at)
        key, at = (bare[0], bare.end()) if bare else literal(text, at, quotes)
        at = blanks(text, at)
        if at >= len(text):
            raise Wait
        if text[at] not in ":=":
            raise No
        value, at = literal(text, blanks(text, at + 1), quotes)
        pairs[str(key)] = value


def tagged(
    text: str, at: int, key: str, named: NamedArguments, schema: Any, whole: Mapping[str, Any]
) -> tuple[Any, int]:
    """The value behind the name of a pair, pairs inside pairs, and where what closes it ends.

    schema  of the value; whole: of the tool
    Raises Wait, No.
    """
    schema = obj(referred(schema, whole))
    pair = named.string
    close = pair.behind.replace(KEY, key)
    if takes_text(schema):
        return _until(text, at, close)
    kind = schema.get("type")
    members: list[tuple[str, Any]] = []
    begin = at
    while not text.startswith(close, begin := blanks(text, begin)):
        if not text.startswith(pair.before, begin):
            rest = text[begin:]
            if close.startswith(rest) or pair.before.startswith(rest):
                raise Wait
            if members:
                raise No
            raw, end = _until(text, at, close)
            return loosely(raw), end
        begin += len(pair.before)
        found = KEY_CHARS.match(text, begin)
        if found is None or found.end() == len(text):
            raise Wait if found or begin == len(text) else No
        name = found[0]
        begin = after(text, found.end(), tokens(pair.between))
        inner = obj(schema.get("properties")).get(name)
        inner = schema.get("items") if kind == "array" else inner
        value, begin = tagged(text, begin, name, named, inner, whole)
        members.append((name, value))
    end = begin + len(close)
    if kind == "array" or (kind != "object" and members and all(name == named.item for name, _ in members)):
        return [value for _, value in members], end
    return dict(members) if members or kind == "object" else "", end


def _until(text: str, at: int, mark: str) -> tuple[str, int]:
    """The text up to this mark, and where that ends. Raises Wait."""
    found = text.find(mark, at)
    if found < 0:
        raise Wait
    return text[at:found], found + len(mark)
