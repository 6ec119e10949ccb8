"""Marks around reasoning: the parts of an answer, and how long its reasoning took."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvdesk import reasoning
from kvdesk.reasoning import ReasoningMarks, SaidStart, ThoughtClock, parts_of, written

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


# --- where an answer begins to say something, while it comes ----------------------------------------------------------

GROWING = [
    ("Hello.", None, "Hello."),
    ("\n\n<x>", None, "\n\n<x>"),
    ("<think>hm</think>\n\nYes.", None, "Yes."),
    ("<think>it writes `</think>` here\nhm</think>Yes.", None, "Yes."),
    ("<think>a ` alone</think>\nYes.", None, "Yes."),
    ("hm\n\nhm</think>\n\nYes.", OPENED, "Yes."),
    ("<think>hm</think>Yes.", OPENED, "Yes."),
    (written("hm\n" * 200, "Yes."), None, "Yes."),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>bot<|channel|>final<|message|>Yes.", HARMONY, "Yes."),
    ("analysisHm.assistantfinalYes.", None, "Yes."),
    ("analysis is hard", None, "analysis is hard"),
    ("<think>never ended", None, None),
    ("never ended", OPENED, None),
    ("<thin", None, None),
]


@pytest.mark.parametrize(("text", "marks", "said"), GROWING)
def test_what_an_answer_says_is_found_while_it_comes(text: str, marks: ReasoningMarks | None, said: str | None) -> None:
    n_other = len(text) - len(said) if said is not None else len(text)
    for size in (1, 2, 7, 1000):
        found = SaidStart(marks)
        for i in range(0, len(text), size):
            found.take(text[i : i + size])
            assert found.n_other <= n_other, f"nothing of what it says, in pieces of {size}"
        assert (None if found.at is None else text[found.at :]) == said, size


@given(
    st.text("`\n x", max_size=12), st.text("ab \n", max_size=8), st.lists(st.integers(1, 9), min_size=40, max_size=40)
)
@example("`a` ", "b", [3] * 40)
def test_it_is_found_where_the_whole_answer_has_it(thought: str, said: str, sizes: list[int]) -> None:
    text = f"<think>{thought}</think>\n{said}."
    parts = parts_of(text)
    found, rest = SaidStart(None), text
    for size in sizes:
        found.take(rest[:size])
        rest = rest[size:]
    if found.at is None:
        assert "`" in thought, "a mark behind a backtick counts when its line is over"
    else:
        assert found.at == parts.said


@pytest.mark.parametrize("start", reasoning._STARTS)
def test_every_beginning_of_reasoning_is_waited_for(start: str) -> None:
    found = SaidStart(None)
    for char in start:
        found.take(char)
        assert found.at is None
    found.take("Hm")
    assert (found.at, found.n_other) == (None, len(start) + 2)


@pytest.mark.parametrize(
    "thought",
    [
        *("The tag `</think>` ends it.", "Two: ``</think>`` here.", "In `a </think> b` it is quoted."),
        *('They write "</think>" there.', "标记“</think>”结束。", "「</think>」です", "Die Marke „</think>“ endet."),
        *("Press the ` key.", 'He said "yes"', "It is ``quoted'' so", "No mark."),
    ],
)
def test_a_quoted_mark_does_not_end_reasoning(thought: str) -> None:
    said = '"Yes": press `~` now.'
    text = f"<think>{thought}</think>{said}"
    parts = parts_of(text)
    assert (text[parts.thought : parts.thought_end], text[parts.said : parts.said_end]) == (thought, said)
    start = SaidStart(None)
    for character in text:
        start.take(character)
    assert start.at == parts.said
