"""Splits the Markdown of an answer into what is drawn by different widgets: prose, code, thinking. Pure text.

One pass over lines, so that an answer can be split again at every frame while it grows. Fences are found at any
indentation: a program inside a list is still a program one wants to copy. `<think>` counts only at the start of a line
outside a fence, so that code which talks about the tag stays code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

# Possessive: a line of many thousand characters must not be tried from every one of them.
_FENCE: Final = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+([^`\s]*+)[^`]*+$")
_THINK_OPEN: Final = re.compile(r"^\s*+<think(?:ing)?>")
_THINK_CLOSE: Final = re.compile(r"</think(?:ing)?>")


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one kind. `closed` is False while the answer may still add to it.

    `whole` is the text of the segment that this one is a piece of; empty when it is no piece.
    """

    kind: Literal["prose", "code", "think"]
    text: str
    language: str = ""
    closed: bool = True
    whole: str = field(default="", compare=False)


def split_segments(source: str) -> tuple[Segment, ...]:
    """All segments in order; the last one is open when it has not been ended by the text itself."""
    out: list[Segment] = []
    prose: list[str] = []
    lines = source.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if match := _THINK_OPEN.match(line):
            _flush(prose, out)
            lines[i] = line[match.end() :]
            segment, i, rest = _think(lines, i)
            out.append(segment)
            if rest:
                prose.append(rest)
        elif match := _FENCE.match(line):
            _flush(prose, out)
            segment, i = _code(lines, i, match)
            out.append(segment)
        else:
            prose.append(line)
            i += 1
    _flush(prose, out, closed=False)
    return tuple(out)


def _flush(prose: list[str], out: list[Segment], closed: bool = True) -> None:
    text = "\n".join(prose)
    if text.strip():
        out.append(Segment("prose", text, closed=closed))
    prose.clear()


def _code(lines: list[str], start: int, opening: re.Match[str]) -> tuple[Segment, int]:
    indent, fence = len(opening[1]), opening[2]
    body: list[str] = []
    for i in range(start + 1, len(lines)):
        stripped = lines[i].strip()
        if stripped.startswith(fence) and not stripped.strip(fence[0]):
            return Segment("code", "\n".join(body), opening[3]), i + 1
        head = lines[i][:indent]
        body.append(lines[i][indent:] if not head.strip() else lines[i])
    return Segment("code", "\n".join(body), opening[3], closed=False), len(lines)


def _think(lines: list[str], start: int) -> tuple[Segment, int, str]:
    body: list[str] = []
    for i in range(start, len(lines)):
        if match := _THINK_CLOSE.search(lines[i]):
            body.append(lines[i][: match.start()])
            return Segment("think", "\n".join(body).strip()), i + 1, lines[i][match.end() :].strip()
        body.append(lines[i])
    return Segment("think", "\n".join(body).strip(), closed=False), len(lines), ""
