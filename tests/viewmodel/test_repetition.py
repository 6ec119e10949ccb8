"""Answers that go round in circles are noticed; code, tables and lists are not."""

import time

import pytest

from kvdesk.viewmodel.chat.repetition import WINDOW, repeated

STORY = (
    "Once upon a time, in a village far away, there lived a keeper of a lighthouse. Every night she climbed the stairs "
    "and lit the lamp, and every morning she wrote down the ships that had passed. One winter no ship came at all.\n\n"
)
PARAGRAPH = (
    "The lighthouse stood on the rock, and the sea was all around it. The keeper looked out of the window and saw "
    "nothing but water. He went down the stairs, made himself a cup of tea, and went up again to look at the sea.\n\n"
)
STARS = (
    "They built the lighthouse using a combination of stone and wood, and they built it in a way that would allow "
    "them to see the stars. "
)
FROM_THE_EMBEDDED_MODEL = {
    "story": STORY + (STARS.replace("They", "The sailors") + STARS * 2 + "\n\n").replace(". \n", ".\n") * 3,
    "list": "".join(
        f"{n}. Paperclip: A tool used for lifting heavy objects, often in a creative and creative way.\n"
        for n in range(1, 6)
    ),
}
"""What SmolLM2-135M writes at temperature 0, asked for a long story and for 40 uses of a paperclip."""
LOOPS = FROM_THE_EMBEDDED_MODEL | {
    "a word": STORY + "very " * 50,
    "a sentence": STORY + "I am a large language model, trained by people. " * 6,
    "two sentences": STORY + "I'm sorry. I do not know what you mean by that, my friend. " * 5,
    "a paragraph": STORY + PARAGRAPH * 4,
    "a paragraph, three times": STORY + PARAGRAPH * 3,
    "cut in the middle": STORY + PARAGRAPH * 5 + PARAGRAPH[:90],
    "marks": STORY + "！" * 120,
    "chinese": "从前有一座山，" + "山里有一座庙，庙里有一个老和尚在讲故事。" * 5,
    "a numbered list": STORY
    + "".join(f"{n}. The model is trained on a large dataset of text and code.\n" for n in range(1, 9)),
    "bullets": STORY + "- The cache is full, and the oldest message goes first.\n" * 6,
    "numbers in a row": STORY + "and then 1, 2, 3, " * 30,
    "code for ever": "```python\n" + "    print('Hello, world!')\n" * 60,
    "zeros for ever": "The digits are: " + "0" * 1300,
}
PLAIN = {
    "prose": STORY + PARAGRAPH,
    "a paragraph said twice": STORY + PARAGRAPH * 2,
    "a sentence said three times": STORY + "Nobody came, nobody called, and nobody wrote a word to her at all. " * 3,
    "a refrain": "".join(f"Verse {n}: {STORY[20 * n : 20 * n + 120]}\nSail away, sail away home.\n" for n in range(8)),
    "matrix": "```python\ngrid = [\n" + "    [0, 0, 0, 0, 0, 0, 0, 0],\n" * 8 + "]\n",
    "blank lines of code": "```c\n" + '    printf("\\n");\n' * 12,
    "cases": "```c\n" + "".join(f"case {n}: return names[{n}];\n" for n in range(40)),
    "table": "| a | b |\n|---|---|\n" + "| 0 |   |\n" * 30,
    "timetable": "| Time | Monday | Tuesday |\n|---|---|---|\n" + "|      |        |         |\n" * 12,
    "ruled line": "Chapter 1\n" + "-" * 300,
    "times table": "".join(f"7 x {n} = {7 * n}\n" for n in range(1, 60)),
    "form": "Name: " + "_" * 260,
    "checklist": "".join(f"- [ ] Look at page {n} again\n" for n in range(1, 40)),
    "list": "".join(f"{n}. {word} is a fruit that one can eat.\n" for n, word in enumerate(STORY.split(), 1)),
    "json": "```json\n[\n" + '  {"x": 0, "y": 0},\n' * 14 + "]\n",
    "poem": "Row, row, row your boat,\nGently down the stream.\nMerrily, merrily, merrily, merrily,\n" * 2,
    "empty": "",
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_is_noticed(text: str) -> None:
    piece = repeated(text)
    assert piece
    assert len(piece) < WINDOW / 4


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_what_is_usual_is_none(text: str) -> None:
    assert not any(repeated(text[:n]) for n in range(0, len(text) + 7, 7))


def test_it_is_noticed_in_time_and_gone_with_other_words() -> None:
    assert not repeated(STORY + PARAGRAPH * 2)
    assert repeated(STORY + PARAGRAPH * 3).strip() == PARAGRAPH.strip()
    assert not repeated(STORY + PARAGRAPH * 4 + "Then a ship came in from the west, and everything was different.")


def test_the_shortest_piece_is_named() -> None:
    assert repeated(STORY + "very " * 80).strip() == "very"


@pytest.mark.parametrize("text", [STORY * 400, "a" * 100_000, "| a " * 30_000, LOOPS["a paragraph"] * 40])
def test_it_costs_the_same_however_long_the_text_is(text: str) -> None:
    """Ten times a second: a hundredth of that would be too much."""
    best = min(_took(text) for _ in range(5))
    assert best < 0.005


def _took(text: str) -> float:
    start = time.perf_counter()
    repeated(text)
    return time.perf_counter() - start
