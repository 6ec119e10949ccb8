"""Splits the Markdown of an answer into what is drawn by different widgets: prose, programs, reasoning, tables and
display formulas; and what a person typed into programs and the rest. Pure text.

One pass over lines, so that an answer can be split again at every frame while it grows. Fences and formulas are found
at any indentation: a program inside a list is still a program one wants to copy. Marks of reasoning count only at the
start of a line outside a fence, so that code which talks about them stays code.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kvdesk.reasoning import ReasoningMarks, closing_alone, find_end, opening, parts_of, without_mark_of_answer
from kvdesk.ui.markdown.formula_rule import is_prose
from kvdesk.ui.markdown.parser import begins_table

# Possessive: a line of many thousand characters must not be tried from every one of them.
_FENCE: Final = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+([^`\s]*+)[^`]*+$")
_DISPLAY: Final = re.compile(
    r"^[ \t]*+(?:\$\$|\\\[|(?=\\begin\{(equation|align|alignat|aligned|gather|gathered|multline|eqnarray)(\*?)\}))"
)
_LONGEST_LOOSE: Final = 2_000
_AFTER_FORMULA: Final = frozenset(("", ".", ",", ";", ":", "?", "!"))

Kind = Literal["prose", "code", "think", "table", "formula"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one kind. `closed` is False while the answer may still add to it.

    `whole` is the text of the segment that this one is a piece of; empty when it is no piece. `start` is the offset in
    the source of the line with which it begins.
    """

    kind: Kind
    text: str
    language: str = ""
    closed: bool = True
    whole: str = field(default="", compare=False)
    start: int = field(default=0, compare=False)


class Splitter:
    """One splitting of a text. `before`: the segments that end where it begins, which is at the start of a line.

    `marks`: around reasoning in the family that wrote the text. `grows`: more text will come, so that reasoning which
    the prompt opened may still end.
    """

    def __init__(
        self, source: str, before: Sequence[Segment] = (), marks: ReasoningMarks | None = None, *, grows: bool = False
    ) -> None:
        self._before, self._marks, self._grows = before, marks, grows
        self.swallows = False  # the text ended reasoning that began before it
        self._lines = source.split("\n")
        self._at = 0  # offset of the line that comes next
        self._i = 0
        self._prose: list[str] = []
        self._prose_start = 0
        self._out: list[Segment] = []
        self._thought = any(segment.kind == "think" for segment in before)
        self._typed = False
        self._endless: dict[str, int] = {}  # marks of fences: from how many on none of those that follow ends

    def segments(self) -> list[Segment]:
        """All in order; the last one is open if it has not been ended by the text itself."""
        if self._marks is not None and not self._before:
            self._reasoning_first(self._marks)
        while self._i < len(self._lines):
            line = self._lines[self._i]
            may_be = "`" in line or "~" in line or "|" in line or "$" in line or "\\" in line
            if may_be and (self._fence(line) or self._table(line) or self._formula(line)):
                continue
            may_be = "<" in line or "[" in line or "◁" in line or line.startswith("analysis")
            if not (may_be and self._reasoning(line)):
                self._add_prose(line, self._at)
                self._advance(1)
        self._flush(closed=False)
        return self._out

    def typed_segments(self) -> list[Segment]:
        """Of a text that means nothing, but for programs between a fence and its end."""
        self._typed = True
        while self._i < len(self._lines):
            line = self._lines[self._i]
            if not (line.lstrip()[:3] in ("```", "~~~") and self._fence(line)):
                self._add_prose(line, self._at)
                self._advance(1)
        self._flush()
        return self._out

    def _advance(self, n_lines: int) -> None:
        self._at += sum(len(line) + 1 for line in self._lines[self._i : self._i + n_lines])
        self._i += n_lines

    def _add_prose(self, line: str, start: int) -> None:
        if not self._prose:
            self._prose_start = start
        self._prose.append(line)

    def _flush(self, closed: bool = True) -> None:
        text = "\n".join(self._prose)
        if text.strip():
            self._out.append(Segment("prose", text, closed=closed, start=self._prose_start))
        self._prose.clear()

    def _put(self, kind: Kind, body: list[str], n_lines: int, language: str = "", closed: bool = True) -> bool:
        self._flush()
        self._out.append(Segment(kind, "\n".join(body), language, closed, start=self._at))
        self._advance(n_lines)
        return True

    # --- what begins with a line; each says whether it does -----------------------------------------------------------

    def _fence(self, line: str) -> bool:
        match = _FENCE.match(line)
        if match is None:
            return False
        indent, fence, language = len(match[1]), match[2], match[3]
        kind: Kind = "formula" if language.lower() == "math" and not self._typed else "code"
        if len(fence) >= self._endless.get(fence[0], len(fence) + 1):
            return False
        body: list[str] = []
        for i in range(self._i + 1, len(self._lines)):
            inner = self._lines[i]
            stripped = inner.strip()
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                return self._put(kind, body, i + 1 - self._i, "" if kind == "formula" else language)
            body.append(inner[indent:] if not inner[:indent].strip() else inner)
        if self._typed:
            self._endless[fence[0]] = len(fence)
            return False
        n_lines = len(self._lines) - self._i
        return self._put(kind, body, n_lines, "" if kind == "formula" else language, closed=False)

    def _table(self, line: str) -> bool:
        """A line of cells over a ruler with as many of them. It ends with the last line that has cells."""
        if self._i + 1 >= len(self._lines) or not begins_table(line, self._lines[self._i + 1]):
            return False
        end = self._i + 2
        while end < len(self._lines) and "|" in self._lines[end] and not _FENCE.match(self._lines[end]):
            end += 1
        return self._put("table", self._lines[self._i : end], end - self._i, closed=end < len(self._lines))

    def _formula(self, line: str) -> bool:
        """From a mark at the start of a line to the other at the end of one, without an empty line between."""
        match = _DISPLAY.match(line)
        if match is None:
            return False
        name = match[1]
        close = f"\\end{{{name}{match[2]}}}" if name else "$$" if line[match.end() - 1] == "$" else "\\]"
        body = [line[match.end() :]]
        for i in range(self._i, len(self._lines)):
            if i > self._i:
                body.append(self._lines[i])
                if not self._lines[i].strip() and i + 1 < len(self._lines):  # the last line may go on
                    return not name and not body[0].strip() and self._loose_formula(close)
            found = body[-1].find(close)
            if found >= 0:
                rest = body[-1][found + len(close) :].strip()
                if rest not in _AFTER_FORMULA:
                    return False
                body[-1] = body[-1][: found + (len(close) if name else 0)].rstrip() + rest
                text = "\n".join(body).strip()
                return bool(text) and self._put("formula", [text], i + 1 - self._i)
        return self._put("formula", ["\n".join(body).strip()], len(self._lines) - self._i, closed=False)

    def _loose_formula(self, close: str) -> bool:
        """Between marks alone in their lines, empty lines do not count; without its end it is no formula."""
        size = 0
        for i in range(self._i + 1, len(self._lines)):
            line = self._lines[i]
            size += len(line) + 1
            if size > _LONGEST_LOOSE or _FENCE.match(line):
                return False
            if close in line:
                text = "\n".join(part for part in self._lines[self._i + 1 : i] if part.strip()).strip()
                is_formula = line.strip() == close and text and not is_prose(text)
                return bool(is_formula) and self._put("formula", [text], i + 1 - self._i)
        return False

    def _reasoning(self, line: str) -> bool:
        is_first = not (self._before or self._out or any(self._prose))
        found = opening(line, is_first=is_first)
        if found is None:
            if not self._thought and (match := closing_alone(line)) is not None:
                return self._close_alone(line, match)
            before_answer = not any(self._prose) and all(s.kind == "think" for s in (*self._before, *self._out))
            if before_answer and (rest := without_mark_of_answer(line)) != line:
                self._lines[self._i] = rest
                self._at += len(line) - len(rest)
                return True
            return False
        start, end = found
        self._thought = True
        body: list[str] = []
        for i in range(self._i, len(self._lines)):
            text = self._lines[i][start:] if i == self._i else self._lines[i]
            if match := find_end(text, end):
                body.append(text[: match.start()])
                return self._end_reasoning("\n".join(body).strip(), i, text[match.end() :])
            body.append(text)
        return self._put("think", ["\n".join(body).strip()], len(self._lines) - self._i, closed=False)

    def _reasoning_first(self, marks: ReasoningMarks) -> None:
        """Reasoning with which the text begins, between its family's marks; where the prompt has opened it, without the
        first one. The last mark of an answer is no part of it.
        """
        source = "\n".join(self._lines)
        parts = parts_of(source, marks)
        if parts is None:
            if marks.is_open and self._grows and source.strip():
                self._out.append(Segment("think", source.strip(), closed=False))
                self._lines = []
            return
        is_closed = parts.said < len(source) or source.rstrip().endswith(marks.end)
        if parts.thought_end > parts.thought:
            text = source[parts.thought : parts.thought_end]
            self._out.append(Segment("think", text, closed=is_closed, start=0))
        self._thought = True
        self._lines = source[parts.said : parts.said_end].split("\n")
        self._at = parts.said

    def _close_alone(self, line: str, match: re.Match[str]) -> bool:
        """All that came before was reasoning."""
        self.swallows = True
        lines = [*self._lines[: self._i], line[: match.start()]]
        self._out.clear()
        self._prose.clear()
        return self._end_reasoning("\n".join(lines).strip(), self._i, line[match.end() :], start=0)

    def _end_reasoning(self, text: str, last: int, rest: str, start: int | None = None) -> bool:
        """`last` is the line with the closing mark, `rest` what follows it there: the first of the answer."""
        self._flush()
        self._thought = True
        if text:
            self._out.append(Segment("think", text, start=self._at if start is None else start))
        self._advance(last - self._i)
        line = self._lines[last]
        rest = without_mark_of_answer(rest).strip()
        self._lines[last] = rest
        self._at += len(line) - len(rest)
        if not rest:
            self._advance(1)
        return True
