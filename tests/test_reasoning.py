"""Marks around reasoning: the parts of an answer, and how long its reasoning took."""

from __future__ import annotations

import pytest

from kvdesk.reasoning import ReasoningMarks, ThoughtClock, parts_of, written

OPENED = ReasoningMarks("<think>", "</think>", is_open=True)
HARMONY = ReasoningMarks(
    "<|channel|>analysis<|message|>", "<|end|>", "<|start|>bot<|channel|>final<|message|>", "<|end|>"
)


def _parts(text: str, marks: ReasoningMarks | None = None) -> tuple[str, str]:
    at = parts_of(text, marks)
    return ("", text) if at is None else (text[at.thought : at.thought_end], text[at.said : at.said_end])


@pytest.mark.parametrize(
    ("text", "marks", "parts"),
    [
        ("Hello.", None, ("", "Hello.")),
        (" <think>\nhm\n</think>\n\nYes.", None, ("hm", "Yes.")),
        ("<think>hm `</think>` hm</think>Yes.", None, ("hm `</think>` hm", "Yes.")),
        ("hm</think>Yes.", OPENED, ("hm", "Yes.")),
        ("hm `</think>` hm</think>Yes.", OPENED, ("hm `</think>` hm", "Yes.")),
        ("Never ended.", OPENED, ("", "Never ended.")),
        ("<think>hm", OPENED, ("hm", "")),
        ("<think></think>Yes.", OPENED, ("", "Yes.")),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>bot<|channel|>final<|message|>Yes.", HARMONY, ("hm", "Yes.")),
        ("<|channel|>final<|message|>Yes.<|end|>", HARMONY, ("", "Yes.")),
        ("<|channel>thought\nhm\n<channel|>Yes.", None, ("hm", "Yes.")),
        ("<mm:think>hm</mm:think>Yes.", None, ("hm", "Yes.")),
        ("<think:opensource>hm</think:opensource>Yes.", None, ("hm", "Yes.")),
        ("<|inner_prefix|>hm<|inner_suffix|>Yes.", None, ("hm", "Yes.")),
        ("<|think|>hm<|end|><|begin|>assistant<|content|>Yes.", None, ("hm", "Yes.")),
        ("<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Yes.", None, ("hm", "Yes.")),
    ],
)
def test_the_parts_of_an_answer(text: str, marks: ReasoningMarks | None, parts: tuple[str, str]) -> None:
    assert _parts(text, marks) == parts


def test_what_is_written_here_is_read_again() -> None:
    assert _parts(written(" hm ", "Yes.")) == ("hm", "Yes.")
    assert _parts(written("hm")) == ("hm", "")


def test_marks_are_told_one_by_one() -> None:
    assert HARMONY.texts == {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"}


def test_the_clock_ends_at_the_mark_of_the_family() -> None:
    clock, marks = ThoughtClock(), ReasoningMarks("<|inner|>", "<|outer|>")
    clock.take("<|inner|>hm", 1.0, marks)
    clock.take("<|ou", 2.0, marks)
    assert clock.ms == 0
    clock.take("ter|>Yes.", 3.0, marks)
    assert clock.ms == 2000


def test_the_clock_goes_on_at_a_quoted_mark() -> None:
    clock = ThoughtClock()
    clock.take("<think>it ends with `</think>` here", 1.0)
    assert clock.ms == 0
    clock.take("</think>Yes.", 2.0)
    assert clock.ms == 1000
