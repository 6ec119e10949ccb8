import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.reasoning import ReasoningMarks
from kvdesk.ui.markdown.segments import Segment
from kvdesk.ui.markdown.text_chunks import GrowingAnswer
from tests.ui.markdown.whole import answer_pieces, split_segments


def test_prose_and_code_are_told_apart() -> None:
    assert split_segments("before\n```python\nx = 1\n```\nafter") == (
        Segment("prose", "before"),
        Segment("code", "x = 1", "python"),
        Segment("prose", "after", closed=False),
    )


def test_a_fence_without_an_end_is_open() -> None:
    assert split_segments("```c\nint x;") == (Segment("code", "int x;", "c", closed=False),)


def test_a_longer_fence_contains_a_shorter_one() -> None:
    (segment,) = split_segments("````\n```\nx\n```\n````")
    assert segment.text == "```\nx\n```"


def test_code_in_a_list_loses_its_indent() -> None:
    segments = split_segments("1. do\n   ```sh\n   ls\n     -l\n   ```\n2. done")
    assert segments[1] == Segment("code", "ls\n  -l", "sh")
    assert segments[2].text == "2. done"


def test_thinking_is_folded_out_of_the_answer() -> None:
    assert split_segments("<think>\nhm\n</think>\nYes.") == (
        Segment("think", "hm"),
        Segment("prose", "Yes.", closed=False),
    )


def test_thinking_that_goes_on_is_open() -> None:
    assert split_segments("<think>\nhm")[0].closed is False


def test_the_tag_inside_code_is_code() -> None:
    (segment,) = split_segments("```\n<think>\n```")
    assert segment == Segment("code", "<think>")


def test_the_tag_inside_a_line_is_text() -> None:
    (segment,) = split_segments("models write <think> first")
    assert segment.kind == "prose"


@pytest.mark.parametrize(
    ("answer", "thought", "rest"),
    [
        ("<think>\nhm\n</think>\n\nYes.", "hm", "\nYes."),
        ("<thinking>hm</thinking> Yes.", "hm", "Yes."),
        ("<reasoning>\nhm\n</reasoning>\nYes.", "hm", "Yes."),
        ("<thought>\nhm\n</thought>\nYes.", "hm", "Yes."),
        ("<seed:think>hm</seed:think>Yes.", "hm", "Yes."),
        ("[THINK]hm[/THINK]Yes.", "hm", "Yes."),
        ("◁think▷hm◁/think▷Yes.", "hm", "Yes."),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.", "hm", "Yes."),
        ("<|begin_of_thought|>\nhm\n<|end_of_thought|>\n\n<|begin_of_solution|>Yes.", "hm", "Yes."),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", *("hm", "Yes.")),
        ("analysisWe say yes.assistantfinalYes.", "We say yes.", "Yes."),
        ("hm\n\n```py\nx\n```\n</think>\n\nYes.", "hm\n\n```py\nx\n```", "\nYes."),  # the template opened it
        ("hm, so yes.</think>\nYes.", "hm, so yes.", "Yes."),
    ],
)
def test_reasoning_of_every_known_family_is_told_from_the_answer(answer: str, thought: str, rest: str) -> None:
    segments = [s for s in split_segments(answer) if s.text.strip()]
    assert [(s.kind, s.text.strip()) for s in segments] == [("think", thought), ("prose", rest.strip())]
    assert segments[0].closed
    for end in range(len(answer)):  # it grows
        assert all(s.kind in ("prose", "think", "code") for s in split_segments(answer[:end]))


def test_the_mark_of_an_answer_without_reasoning_is_not_shown() -> None:
    assert split_segments("<|channel|>final<|message|>Yes.") == (Segment("prose", "Yes.", closed=False),)


def test_empty_reasoning_is_none() -> None:
    assert [s.kind for s in split_segments("<think>\n\n</think>\n\nYes.")] == ["prose"]


@pytest.mark.parametrize("text", ["Write `</think>` at its end.", "analysis of the text", "A line </think> in two"])
def test_an_answer_may_speak_of_marks(text: str) -> None:
    assert [s.kind for s in split_segments(text)] == ["prose"]


def test_tables_stand_alone() -> None:
    found = split_segments("See:\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\nafter | it")
    assert [(s.kind, s.text) for s in found] == [
        ("prose", "See:"),
        ("table", "| a | b |\n|:--|--:|\n| 1 | 2 |"),
        ("prose", "\nafter | it"),
    ]
    assert [s.kind for s in split_segments("| a | b |\n|---|")] == ["prose"], "a ruler for another number of columns"


@pytest.mark.parametrize(
    "formula", ["$$ x^2 $$", "$$\nx^2\n$$", "\\[ x^2 \\]", "\\[\nx^2\n\\]", "  $$x^2$$", "```math\nx^2\n```"]
)
def test_formulas_on_lines_of_their_own_stand_alone(formula: str) -> None:
    found = split_segments(f"before\n{formula}\nafter")
    assert [(s.kind, s.text) for s in found] == [("prose", "before"), ("formula", "x^2"), ("prose", "after")]


def test_environments_are_formulas_too() -> None:
    source = "\\begin{align*}\na &= b \\\\\nc &= d\n\\end{align*}"
    assert split_segments(source) == (Segment("formula", source),)


@pytest.mark.parametrize("text", ["$$ is money", "$$\n\nx", "$$a$$ and $$b$$", "\\[ x", "$$$$"])
def test_half_formulas_are_prose(text: str) -> None:
    assert [s.kind for s in split_segments(text + "\n\nafter")] == ["prose"]


PARTS = (
    *("a b", "```", "```py", "~~~", "<think>", "</think>", "  b", "", "| a | b |", "|---|---|", "$$", "x$$", "\\["),
    *("\\]", "[THINK]", "analysisA", "assistantfinalb", "word " * 300),
)


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.integers(1, 200))
def test_an_answer_that_grows_is_split_as_if_it_were_whole(lines: list[str], step: int) -> None:
    source = "\n".join(lines)
    growing = GrowingAnswer()
    for end in (*range(0, len(source), step * (1 + len(source) // 2000)), len(source)):
        assert growing.pieces(source[:end]) == answer_pieces(source[:end])
    starts = [piece.start for piece in growing.pieces(source)]
    assert starts == [piece.start for piece in answer_pieces(source)]
    assert starts == sorted(starts)


@given(st.lists(st.sampled_from(["a", "```", "```py", "~~~", "<think>", "</think>", "  b", ""]), max_size=12))
def test_any_beginning_of_an_answer_can_be_split(lines: list[str]) -> None:
    source = "\n".join(lines)
    for end in range(len(source) + 1):
        segments = split_segments(source[:end])
        assert all(segment.closed for segment in segments[:-1])
        assert sum(segment.text.count("a") for segment in segments) <= source.count("a")


OPENED = ReasoningMarks("<think>", "</think>", is_open=True)
CHANNEL = ReasoningMarks("<|channel|>analysis<|message|>", "<|end|>", "<|start|>bot<|channel|>final<|message|>")


@pytest.mark.parametrize(
    ("text", "marks", "kinds"),
    [
        ("hm</think>Yes.", OPENED, [("think", "hm"), ("prose", "Yes.")]),
        ("hm `</think>` hm</think>Yes.", OPENED, [("think", "hm `</think>` hm"), ("prose", "Yes.")]),
        ("```\nx\n```\n</think>Yes.", OPENED, [("think", "```\nx\n```"), ("prose", "Yes.")]),
        ("Never ended.", OPENED, [("prose", "Never ended.")]),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>bot<|channel|>final<|message|>Yes.",
            CHANNEL,
            [("think", "hm"), ("prose", "Yes.")],
        ),
        ("<think>hm `</think>` hm</think>Yes.", None, [("think", "hm `</think>` hm"), ("prose", "Yes.")]),
        ("hm.</think>Hello", None, [("think", "hm."), ("prose", "Hello")]),
        ("<|channel>thought\nhm\n<channel|>Yes.", None, [("think", "hm"), ("prose", "Yes.")]),
    ],
)
def test_marks_of_the_family_that_wrote_it(
    text: str, marks: ReasoningMarks | None, kinds: list[tuple[str, str]]
) -> None:
    assert [(s.kind, s.text) for s in split_segments(text, marks)] == kinds


def test_reasoning_that_the_prompt_opened_is_open_while_it_grows() -> None:
    growing = GrowingAnswer()
    long = "hm, " * 3000 + "\n\nhm"
    (open_,) = growing.pieces(long, OPENED, grows=True)
    assert (open_.kind, open_.closed) == ("think", False)
    assert [s.kind for s in growing.pieces(long + "</think>Yes.", OPENED, grows=True)] == ["think", "prose"]
    assert growing.pieces(long, OPENED, grows=False)[0].kind == "prose", "it has ended, and was no reasoning"


def test_an_answer_behind_reasoning_is_split_at_its_end_only() -> None:
    growing, text = GrowingAnswer(), "hm</think>"
    for i in range(150):
        text += f"Line {i}.\n\n```\ncode {i}\n```\n\n"
        assert growing.pieces(text, OPENED, grows=True) == answer_pieces(text, OPENED)
    assert growing.n_settled > 100
