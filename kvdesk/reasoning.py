"""The marks with which models set their reasoning apart from their answer, and how long it took. Knows no Qt.

The families that are known, each with the models that write so:

- `<think>` … `</think>`: DeepSeek-R1 and V3.1, Qwen3 and QwQ, GLM, Hunyuan, MiniMax, Nemotron, SmolLM3; many
  templates write the opening one themselves, so that only the closing one comes
- `<thinking>`, `<reasoning>`, `<thought>` (EXAONE Deep), `<seed:think>` (Seed-OSS), with a closing one each
- `[THINK]` … `[/THINK]`: Mistral's Magistral
- `◁think▷` … `◁/think▷`: Kimi
- `<|START_THINKING|>` … `<|END_THINKING|>`: Cohere's Command
- `<|begin_of_thought|>` … `<|end_of_thought|>`: OpenThinker
- gpt-oss: the channel "analysis", ended by the channel "final". Its marks are control tokens, whose text is empty where
  it streams: then what is left of them are the words "analysis" and "assistantfinal".
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = "think|thinking|reasoning|thought|seed:think"
_CHANNEL: Final = r"<\|channel\|>"
_OPEN: Final = re.compile(
    rf"\s*+(?:<(?P<tag>{_NAMES})>|(?P<mistral>\[THINK\])|(?P<kimi>◁think▷)|(?P<cohere><\|START_THINKING\|>)"
    rf"|(?P<open><\|begin_of_thought\|>)|(?P<harmony>(?:<\|start\|>assistant)?{_CHANNEL}analysis(?:<\|message\|>)))"
)
_BARE_HARMONY: Final = re.compile(r"analysis(?=[A-Z\"'(\d])")  # at the beginning of an answer, and nowhere else
_CLOSES: Final = {
    "mistral": re.compile(r"\[/THINK\]"),
    "kimi": re.compile(r"◁/think▷"),
    "cohere": re.compile(r"<\|END_THINKING\|>"),
    "open": re.compile(r"<\|end_of_thought\|>"),
    "harmony": re.compile(r"<\|end\|>"),
    "bare": re.compile(r"assistantfinal|assistantcommentary"),
}
_CLOSE_OF_TAG: Final = {name: re.compile(f"</{name}>") for name in _NAMES.split("|")}
_CLOSE_ALONE: Final = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>")
_ANSWER_OPEN: Final = re.compile(
    rf"\s*+(?:(?:<\|start\|>assistant)?{_CHANNEL}final(?:<\|message\|>)?|<\|START_RESPONSE\|>|<\|begin_of_solution\|>)"
)
_LONGEST: Final = 32  # characters of a mark
ENDS: Final = (
    *(f"</{name}>" for name in _NAMES.split("|")),
    *("[/THINK]", "◁/think▷", "<|END_THINKING|>", "<|end_of_thought|>", "<|end|>", "assistantfinal"),
)
TOKENS: Final = frozenset(
    ("<think>", "</think>", "[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|START_THINKING|>", "<|END_THINKING|>")
)
"""Marks that are kept in the text of an answer where they are control tokens. Not gpt-oss's: its template refuses them
in earlier answers."""


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
    """A closing mark without an opening one: the template wrote that. Only where nothing stands before it or nothing
    after it, so that an answer may speak of such marks."""
    match = _CLOSE_ALONE.search(line)
    if match is None or line.count("`", 0, match.start()) % 2:
        return None
    return match if not line[: match.start()].strip() or not line[match.end() :].strip() else None


def without_mark_of_answer(line: str) -> str:
    """The first line of an answer without the mark that says that it is the answer."""
    match = _ANSWER_OPEN.match(line)
    return line[match.end() :] if match else line


class ThoughtClock:
    """Measures the reasoning of one answer: from its first text to the mark that ends it."""

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms  # 0 until it has ended
        self._began_s: float | None = None
        self._tail = ""

    def take(self, text: str, now_s: float) -> None:
        """`text` came at the time `now_s`, of a clock that never goes back."""
        if self.ms or not text:
            return
        if self._began_s is None:
            self._began_s = now_s
        recent = self._tail + text
        if any(end in recent for end in ENDS):
            self.ms = max(1, round((now_s - self._began_s) * 1e3))
        self._tail = recent[-_LONGEST:]
