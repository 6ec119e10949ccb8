"""The marks with which models set their reasoning apart from their answer, and how long it took. Knows no Qt.

The marks of a loaded model are found in its chat template (`ReasoningMarks`) and kept with each answer it writes. For
other texts, such as imported ones, there is a table. The families that are known, each with the models that write so:

- `<think>` … `</think>`: DeepSeek-R1 and V3.1, Qwen3 and QwQ, GLM, Hunyuan, MiniMax, Nemotron, SmolLM3; many
  templates write the opening one themselves, so that only the closing one comes
- `<thinking>`, `<reasoning>`, `<thought>` (EXAONE Deep), `<seed:think>` (Seed-OSS), with a closing one each
- `[THINK]` … `[/THINK]`: Mistral's Magistral
- `◁think▷` … `◁/think▷`: Kimi
- `<|START_THINKING|>` … `<|END_THINKING|>`: Cohere's Command
- `<|begin_of_thought|>` … `<|end_of_thought|>`: OpenThinker
- `<mm:think>` (MiniMax M3), `<think:opensource>` (Hunyuan 3), with a closing one each
- `<|channel>thought` … `<channel|>`: Gemma 4
- `<|inner_prefix|>` … `<|inner_suffix|>`: Apertus
- `<|open|>think<|sep|>` … `<|close|>think<|sep|>`: Kimi K3
- `<|think|>` … `<|end|>`: Solar
- gpt-oss: the channel "analysis", ended by the channel "final". Its marks are control tokens, whose text is empty if
  it streams: then what is left of them are the words "analysis" and "assistantfinal".
"""

import re
from typing import Final

from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningMarks:
    """The marks of one family, found in its chat template.

    start, end      around reasoning
    answer, after   around what the model says then; "" if there are none
    is_open         the prompt ends with `start`, so that an answer begins inside its reasoning
    """

    start: str
    end: str
    answer: str = ""
    after: str = ""
    is_open: bool = False

    @property
    def texts(self) -> frozenset[str]:
        """Every single mark: some of them are tokens that have no text otherwise."""
        return frozenset(MARK.findall(" ".join((self.start, self.end, self.answer, self.after))))


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """Where the parts of an answer's text lie: reasoning `[thought, thought_end)`, what is said `[said, said_end)`."""

    thought: int
    thought_end: int
    said: int
    said_end: int


MARK: Final = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z/][A-Z_/ ]{1,40}\]|◁[^◁▷\s]{1,20}▷")
TAGS: Final = ("think", "thinking", "reasoning", "thought", "seed:think", "mm:think", "think:opensource")
"""Names of tags around reasoning."""
_NAMES: Final = "|".join(TAGS)
_CHANNEL: Final = r"<\|channel\|>"
_OPEN: Final = re.compile(
    rf"\s*+(?:<(?P<tag>{_NAMES})>|(?P<mistral>\[THINK\])|(?P<kimi>◁think▷)|(?P<cohere><\|START_THINKING\|>)"
    rf"|(?P<open><\|begin_of_thought\|>)|(?P<harmony>(?:<\|start\|>assistant)?{_CHANNEL}analysis(?:<\|message\|>))"
    r"|(?P<gemma><\|channel>thought)|(?P<apertus><\|inner_prefix\|>)|(?P<kimi3><\|open\|>think<\|sep\|>)"
    r"|(?P<solar>(?:<\|begin\|>assistant)?<\|think\|>))"
)
_BARE_HARMONY: Final = re.compile(r"analysis(?=[A-Z\"'(\d])")  # at the beginning of an answer, and nowhere else
_CLOSES: Final = {
    "mistral": re.compile(r"\[/THINK\]"),
    "kimi": re.compile(r"◁/think▷"),
    "cohere": re.compile(r"<\|END_THINKING\|>"),
    "open": re.compile(r"<\|end_of_thought\|>"),
    "harmony": re.compile(r"<\|end\|>"),
    "gemma": re.compile(r"<channel\|>"),
    "apertus": re.compile(r"<\|inner_suffix\|>"),
    "kimi3": re.compile(r"<\|close\|>think<\|sep\|>"),
    "solar": re.compile(r"<\|end\|>"),
    "bare": re.compile(r"assistantfinal|assistantcommentary"),
}
_CLOSE_OF_TAG: Final = {name: re.compile(f"</{name}>") for name in TAGS}
_CLOSE_ALONE: Final = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>")
_ANSWER_OPEN: Final = re.compile(
    rf"\s*+(?:(?:<\|start\|>assistant)?{_CHANNEL}final(?:<\|message\|>)?|<\|START_RESPONSE\|>|<\|begin_of_solution\|>"
    r"|<\|open\|>response<\|sep\|>|(?:<\|begin\|>assistant)?<\|content\|>)"
)
_STARTS: Final = (
    *(f"<{name}>" for name in TAGS),
    *("[THINK]", "◁think▷", "<|START_THINKING|>", "<|begin_of_thought|>", "<|channel>thought", "<|inner_prefix|>"),
    *("<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>analysis<|message|>", "<|open|>think<|sep|>"),
    *("<|begin|>assistant<|think|>", "<|think|>", "analysis"),
)
"""What `opening` finds."""
_ANSWER_STARTS: Final = (
    *("<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>", "<|START_RESPONSE|>"),
    *("<|begin_of_solution|>", "<|open|>response<|sep|>", "<|begin|>assistant<|content|>", "<|content|>"),
)
"""What `without_mark_of_answer` finds."""
_BACKTICKS: Final = re.compile("`+")
_QUOTES: Final = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_LONGEST: Final = 100  # characters of a mark, and of what is beside it
ENDS: Final = (
    *(f"</{name}>" for name in TAGS),
    *("[/THINK]", "◁/think▷", "<|END_THINKING|>", "<|end_of_thought|>", "<|end|>", "assistantfinal"),
    *("<channel|>", "<|inner_suffix|>", "<|close|>think<|sep|>"),
)
TOKENS: Final = frozenset(
    ("<think>", "</think>", "[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|START_THINKING|>", "<|END_THINKING|>")
)
"""Marks that are kept in the text of an answer where they are control tokens. Not gpt-oss's: its template refuses them
in earlier answers."""


BEGINNING, END = "<think>\n", "\n</think>\n\n"
"""Around reasoning where no model's own marks are known."""


def written(thought: str, said: str = "") -> str:
    """An answer with reasoning as kvdesk itself writes it, if no model's own marks are known."""
    whole = BEGINNING + thought.strip() + END
    return whole + said if said else whole.rstrip()


def parts_of(text: str, marks: ReasoningMarks | None = None) -> AnswerParts | None:
    """The parts of an answer that begins with reasoning, or with a mark that says that it is the answer; None of any
    other. `marks`: of the family that wrote it; those of the table are known everywhere.
    """
    lead = len(text) - len(text.lstrip())
    if marks is not None and text.startswith(marks.start, lead):
        start, end = lead + len(marks.start), re.compile(re.escape(marks.end))
    elif (found := opening(text, is_first=True)) is not None:
        start, end = found
    elif marks is not None and marks.is_open and find_end(text, re.compile(re.escape(marks.end))) is not None:
        start, end = 0, re.compile(re.escape(marks.end))
    else:
        said, said_end = _said(text, 0, marks)
        return AnswerParts(0, 0, said, said_end) if (said, said_end) != (0, len(text)) else None
    match = find_end(text, end, start)
    first, last = _stripped(text, start, match.start() if match is not None else len(text))
    if match is None:
        return AnswerParts(first, last, len(text), len(text))
    said, said_end = _said(text, match.end(), marks)
    said = min(said_end, len(text) - len(text[said:].lstrip()))
    return AnswerParts(first, last, said, said_end)


def find_end(text: str, end: re.Pattern[str], start: int = 0, *, grows: bool = False) -> re.Match[str] | None:
    """The mark that ends reasoning, from `start` on: none that the reasoning quotes. `grows`: more text may come, so
    that a mark which may be quoted counts when its line is over.
    """
    return next((found for found in end.finditer(text, start) if not _is_quoted(text, found, start, grows)), None)


def _is_quoted(text: str, mark: re.Match[str], start: int, grows: bool) -> bool:
    """Whether it is between quotation marks, or in one line between backticks that have no blanks inside."""
    line = max(start, text.rfind("\n", start, mark.start()) + 1)
    behind = text.find("\n", mark.end())
    before, after = text[line : mark.start()], text[mark.end() : behind if behind >= 0 else len(text)]
    is_unknown = grows and behind < 0
    closing = _QUOTES.get(before[-1:])
    if closing is not None and (closing != before[-1:] or before.count(closing) % 2):
        return after.startswith(closing) or (is_unknown and not after)
    runs = list(_BACKTICKS.finditer(before))
    if len(runs) % 2 == 0 or f"{before}x"[runs[-1].end()].isspace():
        return False
    run = _BACKTICKS.search(after)
    return is_unknown if run is None else not f"x{after}"[run.start()].isspace()


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    return min(first, end), max(min(first, end), start + len(part.rstrip()))


def _said(text: str, start: int, marks: ReasoningMarks | None) -> tuple[int, int]:
    """Where what is said begins and ends, without the marks around it."""
    rest = text[start:]
    n, end = len(rest) - len(without_mark_of_answer(rest, marks)), len(text)
    if marks is not None and marks.after:
        for match in MARK.finditer(marks.after):
            whole = marks.after[: match.end()]
            if text.rstrip().endswith(whole):
                end = max(start + n, len(text.rstrip()) - len(whole))
    return start + n, end


def opening(line: str, *, is_first: bool) -> tuple[int, re.Pattern[str]] | None:
    """Whether reasoning begins with this line: where its text begins, and the mark that will end it.

    is_first  the line is the first of the answer that has words
    """
    if match := _OPEN.match(line):
        kind = match.lastgroup or ""
        return match.end(), _CLOSE_OF_TAG[match["tag"]] if kind == "tag" else _CLOSES[kind]
    if is_first and (match := _BARE_HARMONY.match(line)):
        return match.end(), _CLOSES["bare"]
    return None


def closing_alone(line: str) -> re.Match[str] | None:
    """A closing mark without an opening one: the template wrote that. Only if nothing is before it or nothing
    after it, or the answer follows without a blank, so that an answer may speak of such marks."""
    match = find_end(line, _CLOSE_ALONE)
    if match is None:
        return None
    before, after = line[: match.start()], line[match.end() :]
    return match if not before.strip() or not after.strip() or after[0].isalnum() else None


def without_mark_of_answer(text: str, marks: ReasoningMarks | None = None) -> str:
    """The text of an answer without the mark that says that it is the answer. The beginning of that may have been
    written by the template.
    """
    if match := _ANSWER_OPEN.match(text):
        return text[match.end() :]
    if marks is not None and marks.answer:
        begun = text.lstrip()
        for at in (0, *(match.start() for match in MARK.finditer(marks.answer))):
            if begun.startswith(marks.answer[at:]):
                return begun[len(marks.answer) - at :]
    return text


class SaidStart:
    """Finds where an answer, while it comes, begins to say something: behind its reasoning and the marks around that.

    at       characters of the answer before that; None while it is not known
    n_other  characters of which it is known that they say nothing
    """

    def __init__(self, marks: ReasoningMarks | None) -> None:
        """`marks`: of the family that writes it."""
        self._marks = marks
        self._starts = _STARTS if marks is None else (*_STARTS, marks.start)
        self._answer_starts = _ANSWER_STARTS if marks is None else (*_ANSWER_STARTS, marks.answer)
        self._end = re.compile(re.escape(marks.end)) if marks is not None and marks.is_open else None
        self._text = ""  # behind the first `_n_cut` characters
        self._n_cut = 0
        self._is_behind = False
        self.at: int | None = None
        self.n_other = 0

    @property
    def is_thinking(self) -> bool:
        """Whether the answer is inside its reasoning."""
        return self._end is not None

    def take(self, text: str) -> None:
        """`text` has come."""
        if self.at is not None:
            return
        self._text += text
        if self._end is None and not self._is_behind:
            self._look_for_start()
        if self._end is not None:
            self._look_for_end(self._end)
        if self._is_behind:
            self._look_for_answer()

    def _look_for_start(self) -> None:
        begun = self._text.lstrip()
        if self._marks is not None and begun.startswith(self._marks.start):
            self._end = re.compile(re.escape(self._marks.end))
            self._cut(len(self._text) - len(begun) + len(self._marks.start))
        elif (found := opening(self._text, is_first=True)) is not None:
            n, self._end = found
            self._cut(n)
        elif begun and not any(start.startswith(begun) for start in self._starts):
            self._is_behind = True

    def _look_for_end(self, end: re.Pattern[str]) -> None:
        if (match := find_end(self._text, end, grows=True)) is not None:
            self._end, self._is_behind = None, True
            self._cut(match.end())
        else:
            quoted = end.search(self._text)
            self.n_other = self._n_cut + (len(self._text) if quoted is None else quoted.end())
            line = self._text.rfind("\n") + 1
            n = max(0, min(line, len(self._text) - _LONGEST))
            self._text = self._text[n:]
            self._n_cut += n

    def _look_for_answer(self) -> None:
        begun = self._text.lstrip()
        if any(start != begun and start.startswith(begun) for start in self._answer_starts if start):
            return
        said = without_mark_of_answer(self._text, self._marks)
        if self._n_cut:
            said = said.lstrip()
        if said:
            self.at = self.n_other = self._n_cut + len(self._text) - len(said)

    def _cut(self, n: int) -> None:
        self._text = self._text[n:]
        self._n_cut += n
        self.n_other = self._n_cut


class ThoughtClock:
    """Measures the reasoning of one answer: from its first text to the mark that ends it."""

    def __init__(self) -> None:
        self.ms = 0  # 0 until it has ended
        self._began_s: float | None = None
        self._tail = ""

    def take(self, text: str, now_s: float, marks: ReasoningMarks | None = None) -> None:
        """`text` came at the time `now_s`, of a clock that never goes back. `marks`: of the family that writes it."""
        if self.ms or not text:
            return
        if self._began_s is None:
            self._began_s = now_s
        recent = self._tail + text
        ends = ENDS if marks is None else (*ENDS, marks.end)
        if any(find_end(recent, re.compile(re.escape(end))) is not None for end in ends if end in recent):
            self.ms = max(1, round((now_s - self._began_s) * 1e3))
        self._tail = recent[-_LONGEST:]
