"""Texts of the interface in the person's language. Every text that a person reads goes through `tr`.

`tr("…")` takes a literal, so that pyside6-lupdate finds it; values are put in afterwards:
`tr("{n} tokens").format(n=3)`. A text whose grammar depends on a number says `%n` and gives `n`. What machines read
stays English: the journal's fields, exports, JSON, log lines. Knows no Qt: the engine's thread, child processes and the
command line ask the same catalogue as the window.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

Translate = Callable[[str, int], str]
"""A text and a number (-1: none) to the text in the person's language, with the number in the place of `%n`."""
ENGLISH = "en"
VARIABLE = "KVDESK_LANGUAGE"
"""Of the environment: the language of commands and of child processes."""
_MAGIC = bytes.fromhex("3cb86418caef9c95cd211cbf60a1bddd")
_MESSAGES, _PLURALS = 0x69, 0x88  # sections of a catalogue
_END, _TRANSLATION, _SOURCE = 1, 3, 6  # fields of a message


def english(text: str, n: int = -1) -> str:
    """The text as it stands in the source."""
    return text if n < 0 else text.replace("%n", str(n))


_translate: Translate = english
_language = ENGLISH


def install(translate: Translate, language: str = ENGLISH) -> None:
    """From now on `tr` asks this function, in every thread. Texts that were made before stay as they are."""
    global _translate, _language  # one language for the whole process
    _translate, _language = translate, language


def installed() -> str:
    """The language that `tr` speaks ("zh_CN")."""
    return _language


def marked(text: str) -> str:
    """The text as it is, where pyside6-lupdate finds it: for tables made at import, shown by `tr(table.text)`."""
    return text


def tr(text: str, n: int = -1) -> str:
    """The text in the person's language; with `n` in the form for that number, which replaces `%n`."""
    return _translate(text, n)


def best(wanted: Iterable[str], there: Mapping[str, object]) -> str:
    """The one of the languages `there` ("zh_CN") for those a person prefers ("zh-Hans-CN"), the best first; "" for
    English, which needs no catalogue. Chinese without a region, and that of Singapore, is Simplified Chinese.
    """
    for name in wanted:
        found = name.replace("-", "_")
        language = found.split("_")[0]
        if language == ENGLISH:
            break
        if found in ("zh", "zh_Hans", "zh_Hans_SG", "zh_SG"):
            found = "zh_CN"
        elif found not in there and language != "zh":
            found = language
        if found in there:
            return found
    return ""


def use(wanted: Iterable[str], there: Mapping[str, Path]) -> str:
    """Install the best catalogue for languages a person prefers; English where there is none that can be read. Returns
    the language from now on.
    """
    language = best(wanted, there)
    try:
        translate = catalogue(there[language].read_bytes()) if language else english
    except (OSError, ValueError):
        language, translate = "", english
    install(translate, language or ENGLISH)
    return installed()


def catalogue(data: bytes) -> Translate:
    """What a .qm file of pyside6-lrelease says. Raises ValueError for other bytes.

    Source: qtbase/src/corelib/kernel/qtranslator.cpp. Texts of all contexts are taken; ours have one, "".
    """
    if not data.startswith(_MAGIC):
        raise ValueError("not a catalogue")
    try:
        sections = dict(_sections(data))
        texts = dict(_messages(sections.get(_MESSAGES, b"")))
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise ValueError(f"a damaged catalogue: {error}") from error
    plurals = sections.get(_PLURALS, b"")

    def translate(text: str, n: int) -> str:
        forms = texts.get(text)
        if forms is None:
            return english(text, n)
        return forms[0] if n < 0 else forms[min(_plural(n, plurals), len(forms) - 1)].replace("%n", str(n))

    return translate


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """A byte that says which, four for the length, then the section."""
    at = len(_MAGIC)
    while at < len(data):
        kind, length = struct.unpack_from(">BI", data, at)
        yield kind, data[at + 5 : at + 5 + length]
        at += 5 + length


def _messages(data: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each source text with its translations, one for each form of the plural."""
    at, source = 0, ""
    forms: list[str] = []
    while at < len(data):
        field = data[at]
        if field == _END:
            if forms:
                yield source, tuple(forms)
            at, source, forms = at + 1, "", []
            continue
        (length,) = struct.unpack_from(">I", data, at + 1)
        value = data[at + 5 : at + 5 + length]
        if field == _TRANSLATION:
            forms.append(value.decode("utf-16-be"))
        elif field == _SOURCE:
            source = value.decode()
        at += 5 + length


def _plural(n: int, rules: bytes) -> int:
    """The number of the form for `n`: rules are separated by 255, alternatives in one by 254, conditions by 253."""
    for i, rule in enumerate(rules.split(b"\xff")):
        if any(all(_holds(n, condition) for condition in either.split(b"\xfd")) for either in rule.split(b"\xfe")):
            return i
    return rules.count(b"\xff") + 1 if rules else 0


def _holds(n: int, condition: bytes) -> bool:
    """An operator with its flags, then one number, or the two ends of a range."""
    if not condition:
        return True
    operator, *numbers = condition
    if operator & 0x10:
        n %= 10
    elif operator & 0x20:
        n %= 100
    elif operator & 0x40:
        while n >= 1000:
            n //= 1000
    first, last = numbers[0], numbers[-1]
    found = {1: n == first, 2: n < first, 3: n <= first, 4: first <= n <= last}[operator & 7]
    return found != bool(operator & 8)
