"""Texts of the interface in the user's language. Every text that a user reads goes through `tr`.

`tr("…")` takes a literal, so that Babel finds it; values are put in afterwards: `tr("{name} is open.").format(name=…)`.
`plural("1 token", "%n tokens", n)` takes two, for a text whose grammar depends on a number. What machines read stays
English: the journal's fields, exports, JSON, log lines. Knows no Qt: the engine's thread, child processes and the
command line ask the same catalogue as the window.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path

Translate = Callable[[str, str, int], str]
"""As gettext's `ngettext`: the text for one, that for several and a number to the text in the user's language. The
second is "" if no number matters."""
ENGLISH = "en"
VARIABLE = "KVDESK_LANGUAGE"
"""Of the environment: the language of commands and of child processes."""


def english(one: str, many: str = "", n: int = 1) -> str:
    """The text as it is in the source."""
    return many if many and n != 1 else one


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
    """The text as it is, where Babel finds it: for tables made at import, shown by `tr(table.text)`."""
    return text


def tr(text: str) -> str:
    """The text in the user's language."""
    return _translate(text, "", 1)


def plural(one: str, many: str, n: int) -> str:
    """The text in the user's language in the form for `n`, which replaces `%n`."""
    return _translate(one, many, n).replace("%n", f"{n:,}")


def best(wanted: Iterable[str], there: Mapping[str, object]) -> str:
    """The one of the languages `there` ("zh_CN") for those a user prefers ("zh-Hans-CN"), the best first; "" for
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
    """Install the best catalogue for languages a user prefers; English if there is none that can be read. Returns
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
    """What a compiled catalogue of gettext says. Raises ValueError for other bytes."""
    try:
        texts = GNUTranslations(BytesIO(data))
    except (OSError, struct.error, UnicodeDecodeError, LookupError) as error:
        raise ValueError(f"not a catalogue: {error}") from error

    def translate(one: str, many: str, n: int) -> str:
        if not one:
            return ""  # where gettext keeps the header
        return texts.ngettext(one, many, n) if many else texts.gettext(one)

    return translate
