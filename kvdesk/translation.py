"""Texts of the interface in the person's language. Every text that a person reads goes through `tr`.

`tr("…")` takes a literal, so that pyside6-lupdate finds it; values are put in afterwards:
`tr("{n} tokens").format(n=3)`. A text whose grammar depends on a number says `%n` and gives `n`. Knows no Qt: the
application installs Qt's translator, and the command line without a window speaks English.
"""

from __future__ import annotations

from collections.abc import Callable

Translate = Callable[[str, int], str]
"""A text and a number (-1: none) to the text in the person's language, with the number in the place of `%n`."""


def english(text: str, n: int = -1) -> str:
    """The text as it stands in the source."""
    return text if n < 0 else text.replace("%n", str(n))


_translate: Translate = english


def install(translate: Translate) -> None:
    """From now on `tr` asks this function. Texts that were made before stay as they are."""
    global _translate  # noqa: PLW0603  one language for the whole process
    _translate = translate


def marked(text: str) -> str:
    """The text as it is, where pyside6-lupdate finds it: for tables made at import, shown by `tr(table.text)`."""
    return text


def tr(text: str, n: int = -1) -> str:
    """The text in the person's language; with `n` in the form for that number, which replaces `%n`."""
    return _translate(text, n)
