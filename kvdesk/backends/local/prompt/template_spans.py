"""Finds in a rendered conversation what the template wrote and what the messages contain.

A template may trim a message, cut out its thinking or repeat it, so messages cannot be searched for afterwards. Instead
the conversation is rendered again with marks in the messages: characters that occur nowhere else. If the result without
its marks equals the plain rendering, the marks show where everything came from. There are two kinds of marks:

- edges around a message: the text between them is that message;
- a break inside every control text (`<|im_end|>`) of a message: a control text that is whole in the marked rendering
  was written by the template, and every other one by a person.

Marks that change the rendering are found by bisection and left out. A break in a person's text is never left out: then
the template sees the broken text, and the rendering differs from the plain one (`Marked.exact` is False).

Owns the marks. Knows nothing of Jinja2, tokens and roles.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.values import dataclass

Render = Callable[[Sequence[str]], str]
PRIVATE_USE = range(0xF0000, 0xFFFFE)  # Unicode's supplementary private use area A: 65,534 characters
PATIENCE_S = 0.8  # for finding the marks that change the rendering; after that all remaining ones count as such


class Span(NamedTuple):
    """The half-open range `[start, end)` of a rendering."""

    start: int
    end: int


_NOWHERE = Span(-1, -1)


@dataclass(frozen=True, slots=True)
class Marked:
    """A rendering and the origin of its parts."""

    text: str
    typed_controls: tuple[Span, ...]  # must not be parsed as control tokens; in order, none overlap
    answers: tuple[tuple[Span, int], ...]  # unchanged answers, or their beginnings, with their indices; in order
    exact: bool  # the text is the plain rendering
    places: tuple[tuple[Span, int], ...] = ()  # messages that occur once, outer white space apart, with their indices


class SplitText(NamedTuple):
    """An answer that a template gets in two parts: `answer` and `thought` are the indices of its text and its
    reasoning; `whole` is the whole text, in which the reasoning begins at `start`.
    """

    whole: str
    answer: int
    thought: int
    start: int


class ControlTexts:
    """Finds control tokens written out in a text."""

    def __init__(self, texts: frozenset[str]) -> None:
        self.texts = texts - {""}
        self._lengths: dict[str, list[int]] = {}
        for first, length in sorted({(text[0], len(text)) for text in self.texts}):
            self._lengths.setdefault(first, []).append(length)

    def find(self, text: str) -> Iterator[Span]:
        """Every occurrence, overlapping ones too."""
        for first, lengths in self._lengths.items():
            at = text.find(first)
            while at >= 0:
                for length in lengths:
                    if text[at : at + length] in self.texts and at + length <= len(text):
                        yield Span(at, at + length)
                at = text.find(first, at + 1)


class _Mark(NamedTuple):
    """A character inserted into one message at one position (a break) or two (edges)."""

    message: int
    positions: tuple[int, ...]
    char: str


class TemplateSpanFinder:
    """Marks one conversation: `texts` are its messages, `render` renders any texts in their place.

    `answers` are the messages whose place must be exact, including outer white space. `thinking` are those whose
    control texts a template may search for and cut out, such as `</think>` in an answer. `strings` are not messages:
    they get breaks but no edges. The marks around reasoning in `splits` are the template's.
    """

    def __init__(
        self,
        texts: Sequence[str],
        render: Render,
        controls: ControlTexts,
        answers: frozenset[int],
        thinking: frozenset[int],
        strings: frozenset[int] = frozenset(),
        splits: Sequence[SplitText] = (),
    ) -> None:
        self._texts = texts
        self._splits = {split.answer: split for split in splits}
        self._thoughts = frozenset(split.thought for split in splits)
        self._render = render
        self._controls = controls
        self._answers = answers
        self._thinking = thinking
        self._strings = strings
        self._last: tuple[list[_Mark], str] | None = None  # marks of the last rendering, and what it gave

    def mark(self, plain: str) -> Marked:
        """Where the parts of `plain` came from, the rendering of the unchanged texts."""
        chars = self._unused_characters(plain)
        self._any_mark = re.compile(f"[{chars[0]}-{chars[-1]}]")
        break_char, edge_chars = chars[0], chars[1:]
        breaks = [
            _Mark(message, (position,), break_char)
            for message, text in enumerate(self._texts)
            for position in sorted({span.start + 1 for span in self._controls.find(text)})
        ]
        edges = [
            _Mark(message, self._edges(message), char)
            for (message, text), char in zip(enumerate(self._texts), edge_chars, strict=True)
            if text.strip() and message not in self._strings
        ]
        kept = self._harmless(plain, breaks + edges)
        left_out = set(breaks).difference(kept)
        if left_out:
            kept = kept + self._necessary(kept, [mark for mark in breaks if mark in left_out])
        return self._examine(self._marked(kept), plain, edge_chars)

    # --- which marks ------------------------------------------------------------------------------------------------

    def _unused_characters(self, plain: str) -> str:
        """Adjacent unused characters: one for breaks, and one for the edges of each message."""
        used = set(plain).union(*self._texts)
        n = 1 + len(self._texts)
        for first in (PRIVATE_USE.start, *(ord(char) + 1 for char in sorted(used) if ord(char) in PRIVATE_USE)):
            codes = range(first, first + n)
            if codes.stop <= PRIVATE_USE.stop and not any(chr(code) in used for code in codes):
                return "".join(map(chr, codes))
        raise ValueError("no characters are left to mark the messages with")

    def _edges(self, message: int) -> tuple[int, int]:
        """Inside the outer white space, which templates trim; an answer's white space belongs to it."""
        text = self._texts[message]
        if message in self._answers:
            return 0, len(text)
        return len(text) - len(text.lstrip()), len(text.rstrip())

    def _harmless(self, plain: str, marks: list[_Mark]) -> list[_Mark]:
        """The marks that do not change the rendering, found by bisection."""
        deadline_s = time.monotonic() + PATIENCE_S

        def search(marks: list[_Mark], kept: list[_Mark]) -> list[_Mark]:
            if not marks or time.monotonic() > deadline_s:
                return []
            if self._unmarked(kept + marks) == plain:
                return marks
            if len(marks) == 1:
                return []
            half = len(marks) // 2
            first = search(marks[:half], kept)
            return first + search(marks[half:], kept + first)

        return search(marks, [])

    def _necessary(self, kept: list[_Mark], breaks: list[_Mark]) -> list[_Mark]:
        """The breaks that are needed although they change the rendering.

        Those in a person's text always are. Those in thinking text are left out if the template then cuts out the
        control text or writes its own: if the rendering gets no more of them than it has with all breaks.
        """
        forced = [mark for mark in breaks if mark.message not in self._thinking]
        if len(forced) == len(breaks):
            return forced
        with_all, without = self._marked(kept + breaks), self._marked(kept + forced)
        if sum(1 for _ in self._controls.find(without)) > sum(1 for _ in self._controls.find(with_all)):
            return breaks
        return forced

    def _marked(self, marks: list[_Mark]) -> str:
        if self._last is not None and self._last[0] == marks:
            return self._last[1]
        insertions: dict[int, list[tuple[int, str]]] = {}
        for mark in marks:
            insertions.setdefault(mark.message, []).extend((at, mark.char) for at in mark.positions)
        texts = list(self._texts)
        for message, marked in insertions.items():
            text, pieces, last = texts[message], [], 0
            for at, char in sorted(marked):
                pieces += [text[last:at], char]
                last = at
            texts[message] = "".join([*pieces, text[last:]])
        self._last = (marks, self._render(texts))
        return self._last[1]

    def _unmarked(self, marks: list[_Mark]) -> str:
        return self._any_mark.sub("", self._marked(marks))

    # --- what they show ---------------------------------------------------------------------------------------------

    def _examine(self, marked: str, plain: str, edge_chars: str) -> Marked:
        names = {char: message for message, char in enumerate(edge_chars)}
        pieces: list[str] = []
        cuts: set[int] = set()
        edges: dict[int, list[int]] = {}
        length = last = 0
        for found in self._any_mark.finditer(marked):
            pieces.append(marked[last : found.start()])
            length += found.start() - last
            last = found.end()
            cuts.add(length)
            if found[0] in names:
                edges.setdefault(names[found[0]], []).append(length)
        text = "".join([*pieces, marked[last:]])
        answers = tuple(self._unchanged(text, edges))
        insides = [Span(*pair) for ends in edges.values() for pair in zip(ends[::2], ends[1::2], strict=False)]
        typed = self._typed(text, cuts, insides, [span for span, _ in answers])
        return Marked(text, tuple(typed), answers, text == plain, tuple(self._places(text, edges)))

    def _typed(self, text: str, cuts: set[int], insides: list[Span], answers: list[Span]) -> Iterator[Span]:
        """Control texts that the template did not write, outside `answers`, in order; adjacent ones are joined."""
        inside, typed, own = bytearray(len(text)), bytearray(len(text)), []
        for span in insides:
            _fill(inside, span, 1)
        for span in self._controls.find(text):
            broken = any(cut in cuts for cut in range(span.start + 1, max(span.end, span.start + 2)))
            if broken or all(inside[span.start : span.end]):
                _fill(typed, span, 1)
            else:
                own.append(span)
        for span in own + answers:
            _fill(typed, span, 0)
        start = typed.find(1)
        while start >= 0:
            end = typed.find(0, start)
            end = len(typed) if end < 0 else end
            yield Span(start, end)
            start = typed.find(1, end)

    def _unchanged(self, text: str, edges: dict[int, list[int]]) -> Iterator[tuple[Span, int]]:
        """Answers that occur once and unchanged. If the template rewrites the rest of an answer with reasoning, for
        example its blank lines, the beginning.
        """
        last = 0
        for start, message in sorted((self._start(text, edges, message), message) for message in self._answers):
            if start < last:
                continue
            split = self._splits.get(message)
            whole = self._texts[message] if split is None else split.whole
            span = self._common(text, start, whole)
            if span.end - start >= (len(whole) if split is None else 1):
                yield span, message
                last = span.end

    def _common(self, text: str, start: int, whole: str) -> Span:
        """The common beginning of the text from `start` on and an answer, not cutting a control text."""
        end = start + common_prefix(text[start : start + len(whole)], whole)
        if end < start + len(whole):
            longest = max(map(len, self._controls.texts), default=0)
            low = max(0, end - longest)
            near = (Span(low + span.start, low + span.end) for span in self._controls.find(text[low : end + longest]))
            end = min((span.start for span in near if span.start < end < span.end), default=end)
        return Span(start, end)

    def _start(self, text: str, edges: dict[int, list[int]], message: int) -> int:
        """Where a message begins, including its reasoning; negative if it does not occur exactly once."""
        split = self._splits.get(message)
        ends = edges.get(message if split is None else split.thought, [])
        if len(ends) != 2:
            return -1
        if split is None:
            return ends[0]
        mark, before = split.whole[: split.start].rstrip(), text[: ends[0]].rstrip()
        return len(before) - len(mark) if mark and before.endswith(mark) else ends[0] - split.start

    def _places(self, text: str, edges: dict[int, list[int]]) -> Iterator[tuple[Span, int]]:
        """Messages that occur exactly once, in order, without overlap."""
        last = 0
        messages = {*edges, *self._splits} - self._thoughts
        for span, message in sorted((self._place(text, edges, message), message) for message in messages):
            if span.start >= last:
                yield span, message
                last = span.end

    def _place(self, text: str, edges: dict[int, list[int]], message: int) -> Span:
        """The span of a message, with or without its reasoning; `_NOWHERE` if it was changed."""
        split, ends = self._splits.get(message), edges.get(message, [])
        start = self._start(text, edges, message)
        if split is not None and start >= 0 and text.startswith(split.whole, start):
            return Span(start, start + len(split.whole))
        low, high = self._edges(message)
        is_there = len(ends) == 2 and text[ends[0] : ends[1]] == self._texts[message][low:high]
        return Span(*ends) if is_there else _NOWHERE


def _fill(flags: bytearray, span: Span, value: int) -> None:
    flags[span.start : span.end] = bytes([value]) * (span.end - span.start)
