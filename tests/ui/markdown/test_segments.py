from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvdesk.ui.markdown.segments import Segment, split_segments


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


@given(st.lists(st.sampled_from(["a", "```", "```py", "~~~", "<think>", "</think>", "  b", ""]), max_size=12))
def test_any_beginning_of_an_answer_can_be_split(lines: list[str]) -> None:
    source = "\n".join(lines)
    for end in range(len(source) + 1):
        segments = split_segments(source[:end])
        assert all(segment.closed for segment in segments[:-1])
        assert sum(segment.text.count("a") for segment in segments) <= source.count("a")
