"""Reads calls of tools in an answer as its text comes, by the form in which the model's family writes them.

Knows no Qt, no engine. What is no call of a tool that was offered stays text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kvdesk import call_text
from kvdesk.call_format import ID, INDEX, KEY, CallFormat, NamedArguments, Pair, referred, takes_text
from kvdesk.call_text import KEY_CHARS, No, Wait, after, blanks, held_back, loosely, tagged, value_end
from kvdesk.loose_json import json_value, obj
from kvdesk.values import dataclass, replace

_BARE: Final = CallFormat("", '{"name": "', '", "arguments": ', "}", "\n", "")
"""Of a call without the marks of its family, as small models write it where an answer begins: alone, or in a fence."""
_FENCE: Final = re.compile(r"```(?:json|xml)?(?=\s*\{)")
_BEGUN_FENCE: Final = re.compile(r"`{1,3}|```(?:j|js|jso|json|x|xm|xml)?\s*")
_NAME_FIELDS: Final = ("name", "tool_name", "function")
_ARGUMENT_FIELDS: Final = ("arguments", "parameters", "args")
_TYPE: Final = re.compile(r"[\w-]{1,20}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments`: JSON text of an object; while the call is written, its beginning."""

    name: str
    arguments: str
    is_whole: bool = True


class _Read(NamedTuple):
    """A call, and where it ends in the text."""

    call: ToolCall
    end: int


class CallReader:
    """One answer without its reasoning.

    said   what it says so far: nothing that may belong to a call, no blanks before one
    calls  those so far; only the last may not be whole
    """

    def __init__(
        self, form: CallFormat | None, tools: Sequence[Mapping[str, Any]] = (), *, is_exact: bool = False
    ) -> None:
        """`tools`: as the protocol has them, those that were offered. Without a form, or tools, all is text.
        `is_exact`: a call is written as its family does, because other JSON is an answer.
        """
        self.said = ""
        self.calls: list[ToolCall] = []
        self._schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
        self._names: list[str] = sorted(self._schemas, key=len, reverse=True)
        self._own = form if self._schemas else None
        self._text, self._at = "", 0
        self._in_section = self._is_open = self._has_tail = False
        self._has_begun = self._is_exact = is_exact
        self._use(self._own)

    def _use(self, form: CallFormat | None) -> None:
        """Read calls of this form from now on."""
        self._form = form
        if form is not None:
            self._is_object = _is_object(form)
            before_brace = form.head[: form.head.find("{")] if self._is_object else form.head
            self._first = call_text.tokens(form.start + before_brace)
            self._next = call_text.tokens((form.between or "") + before_brace)
            self._trigger = self._first[0] if self._first else "{"
            self._only_at_beginning = not self._first
            self._is_marked = form is self._own and bool(self._first)

    def add(self, text: str) -> None:
        self._text += text
        self._read(over=False)

    def end(self) -> None:
        """The answer is over."""
        self._read(over=True)

    # --- text and calls -----------------------------------------------------------------------------------------------

    def _read(self, *, over: bool) -> None:
        if self._form is None:
            self.said, self._at = self._text, len(self._text)
            return
        while self._at < len(self._text) or over:
            try:
                if self._in_section:
                    self._after_call(over)
                elif not self._find_call(over):
                    break
            except Wait:
                if not over:
                    break
                if not self._is_open:
                    self._say(len(self._text.rstrip() if self.calls else self._text))
                self._at = len(self._text)
            if self._at >= len(self._text):
                break

    def _find_call(self, over: bool) -> bool:
        """Say what is no call, and read the next call. False: nothing more can be said."""
        if not self._has_begun:
            self._choose()
        begin = self._begin()
        if begin is None:
            held = 0 if over else held_back(self._text, self._trigger, self._at)
            end = len(self._text) - held
            if not over or self.calls:
                end = self._at + len(self._text[self._at : end].rstrip())
            self._say(end)
            if over:
                self._at = len(self._text)
            return False
        try:
            read = self._call(begin, self._first)
        except No:
            self._is_open = False  # what seemed to be a call breaks off: it stays one, as far as it came
            if self._form is self._own:
                self._say(begin + 1)
            self._use(self._own)
            return True
        self._take(begin, read)
        return True

    def _choose(self) -> None:
        """Use another form than the family's where the answer begins with one. Raises Wait."""
        begin = blanks(self._text, 0)
        if begin == len(self._text):
            return
        if self._text[begin] == "{" and self._first:
            self._use(_BARE)
        elif fence := _FENCE.match(self._text, begin):
            self._use(replace(_BARE, start=fence[0], end="```"))
        elif _BEGUN_FENCE.fullmatch(self._text, begin):
            raise Wait
        self._has_begun = True

    def _begin(self) -> int | None:
        """Where the next call may begin."""
        if not self._only_at_beginning:
            found = self._text.find(self._trigger, self._at)
            return found if found >= 0 else None
        begin = len(self._text) - len(self._text.lstrip())
        is_first = self._at <= begin < len(self._text) and not self.said
        if not is_first:
            return None
        is_named = any(self._text.startswith(name[: len(self._text) - begin], begin) for name in self._names)
        return begin if self._text[begin] in "{<" or (not self._is_object and is_named) else None

    def _after_call(self, over: bool) -> None:
        """Behind a whole call: the next one of the same section, or its end."""
        form = self._form
        assert form is not None
        if not self._has_tail:
            self._at = call_text.optional(self._text, self._at, call_text.tokens(self._rest_of_tail()), over)
            self._has_tail = True
        begin = self._at
        if form.between is not None and (self._next or self._text.startswith("{", blanks(self._text, begin))):
            try:
                read = self._call(begin, self._next)
            except No:
                pass
            else:
                self._take(begin, read)
                return
        self._at = call_text.optional(self._text, self._at, call_text.tokens(form.end), over)
        self._in_section = False
        self._at = blanks(self._text, self._at)
        self._use(self._own)

    def _rest_of_tail(self) -> str:
        form = self._form
        assert form is not None
        return form.tail[_brace_end(form) :] if self._is_object else form.tail

    def _take(self, begin: int, read: _Read) -> None:
        if begin > self._at:
            self._say(begin)
            self.said = self.said.rstrip()
        if self._is_open:
            self.calls[-1] = read.call
        else:
            self.calls.append(read.call)
        self._is_open = not read.call.is_whole
        if read.call.is_whole:
            self._at, self._in_section, self._has_tail = read.end, True, False
        else:
            raise Wait

    def _say(self, end: int) -> None:
        if end > self._at:
            self.said += self._text[self._at : end]
            self._at = end

    # --- one call -----------------------------------------------------------------------------------------------------

    def _call(self, begin: int, opening: Sequence[str]) -> _Read:
        """Raises Wait, No."""
        text, form = self._text, self._form
        assert form is not None
        if self._is_object:
            at = after(text, begin, opening)
            if not opening and text.startswith("<|python_tag|>"[: len(text) - begin], begin):
                at = after(text, begin, ["<|python_tag|>"])
            return self._object(blanks(text, at))
        at = blanks(text, after(text, begin, opening))
        name = self._name(at)
        at = after(text, at + len(name), call_text.tokens(form.middle), name)
        if form.named is not None:
            try:
                return self._named(name, at, form.named)
            except RecursionError:
                raise No from None
        at = blanks(text, at)
        if at == len(text):
            raise Wait
        if form.as_text or text[at] == '"':
            end = value_end(text, at)
            if end is None:
                raise Wait
            inner = json_value(text[at:end])
            if not isinstance(json_value(inner), dict):
                raise No
            return _Read(ToolCall(name, str(inner)), end)
        if text[at] != "{":
            raise No
        end = value_end(text, at)
        if end is None:
            return _Read(ToolCall(name, text[at:].rstrip(), is_whole=False), len(text))
        if not isinstance(json_value(text[at:end]), dict):
            raise No
        return _Read(ToolCall(name, text[at:end]), end)

    def _name(self, at: int) -> str:
        rest = self._text[at : at + 300]
        if any(name.startswith(rest) for name in self._names):  # it may become longer
            raise Wait
        found = next((name for name in self._names if rest.startswith(name)), None)
        if found is None:
            raise No
        return found

    def _object(self, at: int) -> _Read:
        """A call that is one JSON object: its name and arguments in any order."""
        text = self._text
        if at >= len(text):
            raise Wait
        if text[at] != "{":
            raise No
        members, end = call_text.members(text, at)
        name, arguments = self._name_and_arguments(members)
        if name is not None and name not in self._schemas:
            raise No
        if end is None:
            if name is None or arguments is None or text[arguments[0] : arguments[0] + 1] != "{":
                raise Wait
            return _Read(ToolCall(name, text[arguments[0] : arguments[1]].rstrip(), is_whole=False), len(text))
        value = json_value(text[at:end])
        if not isinstance(value, dict) or name is None or (arguments is None and not self._is_marked):
            raise No
        given = text[arguments[0] : arguments[1]] if arguments else "{}"
        inner = json_value(given)
        if isinstance(inner, str):
            given, inner = inner, json_value(inner)
        if not isinstance(inner, dict):
            raise No
        return _Read(ToolCall(name, given), end)

    def _name_and_arguments(
        self, members: Sequence[tuple[str, int, int | None]]
    ) -> tuple[str | None, tuple[int, int | None] | None]:
        """As far as these members of a call's object have them. Raises No."""
        name: str | None = None
        arguments: tuple[int, int | None] | None = None
        is_key = self._form is not None and self._form.head.rstrip().endswith('{"')
        for key, begin, stop in members:
            if is_key:
                name, arguments = key, (begin, stop)
            elif key in _NAME_FIELDS and stop is not None:
                value = json_value(self._text[begin:stop])
                if not isinstance(value, str):
                    raise No
                name = value
            elif key in _ARGUMENT_FIELDS:
                arguments = begin, stop
            elif (self._is_exact or self._form is not self._own) and key not in _NAME_FIELDS:
                raise No
        return name, arguments

    def _named(self, name: str, at: int, named: NamedArguments) -> _Read:
        """Arguments one by one, as JSON."""
        form = self._form
        assert form is not None
        written: list[str] = []
        text, tail = self._text, call_text.tokens(form.tail)
        before = call_text.tokens(named.string.before)
        n_same = next(
            (i for i, (a, b) in enumerate(zip(tail, before, strict=False)) if a != b), min(len(tail), len(before))
        )
        shown = tail[: n_same + 1]  # of the tail: enough to see that no other argument follows
        while True:
            begun = "{" + ", ".join(written)
            try:
                after(text, at, shown)
            except No:
                pass
            except Wait:
                return _Read(ToolCall(name, begun, is_whole=False), len(text))
            else:
                return _Read(ToolCall(name, begun + "}"), at)
            try:
                if written and named.separator.strip():
                    at = after(text, at, call_text.tokens(named.separator))
                key, value, at, is_whole = self._argument(name, at, named)
            except Wait:
                return _Read(ToolCall(name, begun, is_whole=False), len(text))
            comma = ", " if written else ""
            if not is_whole:
                return _Read(ToolCall(name, f"{begun}{comma}{key}: {value}", is_whole=False), len(text))
            written.append(f"{key}: {value}")

    def _argument(self, name: str, at: int, named: NamedArguments) -> tuple[str, str, int, bool]:
        """Its name and value as JSON, where it ends, and whether it is whole. Raises Wait, No."""
        text = self._text
        at = after(text, at, call_text.tokens(named.string.before))
        at = blanks(text, at)
        found = KEY_CHARS.match(text, at)
        if found is None or found.end() == len(text):
            raise Wait if found or at == len(text) else No
        key, at = found[0], found.end()
        schema = obj(self._schemas[name].get("properties")).get(key)
        told = json.dumps(key, ensure_ascii=False)
        if not named.other.behind.strip():  # a value that itself shows where it ends
            quotes = named.string.between.removeprefix(named.other.between).strip(), named.string.behind.strip()
            at = blanks(text, after(text, at, call_text.tokens(named.other.between)))
            value, end = call_text.literal(text, at, quotes)
            return told, json.dumps(value, ensure_ascii=False), end, True
        pair, is_text, at = self._pair(at, named, schema)
        if named.item and not takes_text(referred(schema, self._schemas[name])):
            value, end = tagged(text, at, key, named, schema, self._schemas[name])
            return told, json.dumps(value, ensure_ascii=False), end, True
        blank = pair.between[len(pair.between.rstrip()) :]
        if blank.startswith(text[at:]):
            raise Wait
        at += len(blank) if text.startswith(blank, at) else 0
        behind = pair.behind.replace(KEY, key)
        mark = behind.strip()
        end = text.find(mark, at)
        if end < 0:
            if not is_text:
                raise Wait
            known = text[at : len(text) - held_back(text, mark, at)].rstrip()
            so_far = json.dumps(known, ensure_ascii=False)[:-1]
            return told, so_far, len(text), False
        raw = text[at:end].removesuffix(behind[: len(behind) - len(behind.lstrip())])
        value = raw if is_text else loosely(raw)
        return told, json.dumps(value, ensure_ascii=False), end + len(mark), True

    def _pair(self, at: int, named: NamedArguments, schema: Any) -> tuple[Pair, bool, int]:
        """How the argument is written that has its name before this place, whether its value is a text, and where that
        begins, blanks included. Raises Wait, No.
        """
        text, string, other = self._text, named.string, named.other
        if string.between == other.between:
            return string, takes_text(schema), after(text, at, call_text.tokens(string.between))
        for pair, is_text in ((string, True), (other, False)):
            try:
                return pair, is_text, after(text, at, call_text.tokens(pair.between))
            except No:
                continue
        # Another type is named (Kimi K3: type="array").
        n = next(i for i, (a, b) in enumerate(zip(string.between, other.between, strict=False)) if a != b)
        rest = next(
            i for i, (a, b) in enumerate(zip(string.between[::-1], other.between[::-1], strict=False)) if a != b
        )
        at = after(text, at, call_text.tokens(string.between[:n]))
        found = _TYPE.match(text, at)
        if found is None or found.end() == len(text):
            raise Wait if found or at == len(text) else No
        return other, False, after(text, found.end(), call_text.tokens(string.between[len(string.between) - rest :]))


def _is_object(form: CallFormat) -> bool:
    """Whether a call is one JSON object that has its name."""
    return form.named is None and "{" in form.head and _brace_end(form) > 0


def _brace_end(form: CallFormat) -> int:
    """Characters of the tail up to the brace that closes a call's object; 0 for a call that is none."""
    begin = form.head[form.head.find("{") :]
    middle, tail = (part.replace(ID, "x").replace(INDEX, "0") for part in (form.middle, form.tail))
    for found in re.finditer("}", tail):
        whole = begin.replace(ID, "x").replace(INDEX, "0") + "n" + middle + "{}" + tail[: found.end()]
        if isinstance(json_value(whole), dict):
            return len(form.tail) - len(tail) + found.end()
    return 0


def told_calls(calls: Sequence[ToolCall]) -> Iterator[tuple[str, Any]]:
    """Names and arguments as values, to be compared."""
    for call in calls:
        yield call.name, json_value(call.arguments)
