"""Titles proposed from first messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.conversations.titles import TITLE_COLUMNS, propose_title
from tests.conversations.conftest import Held


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("What is a ring buffer?", "What is a ring buffer?"),
        ("Hi there! Can you explain ring buffers?", "Can you explain ring buffers?"),
        ("hello, please write a haiku about snow.", "Write a haiku about snow"),
        ("Hello", "Hello"),
        ("Good morning!\n\nI have ten numbers. How do I sort them in Python?", "How do I sort them in Python?"),
        ("# Release notes\n\nPlease shorten them.", "Release notes"),
        ("Fix this:\n\n```python\nprint('x'\n```", "Fix this"),
        ("```python\ndef add(a, b):\n    return a + b\n```", "Def add(a, b): return a + b"),
        ("Summarise https://example.org/a/long/path?q=1 for me", "Summarise for me"),
        ("https://example.org/paper", "https://example.org/paper"),
        ("Read [the manual](https://example.org/m) and **compare** `both`.", "Read the manual and compare both"),
        ("- [ ] buy milk\n- [ ] call Ada", "Buy milk call Ada"),
        ("iPhone battery drains quickly", "iPhone battery drains quickly"),
        ("Translate into German:\nThe cat sat on the mat.", "Translate into German: The cat sat on the mat"),
        ("你好！请解释一下什么是环形缓冲区。谢谢", "解释一下什么是环形缓冲区"),
        ("Highlight the history of Hirschau", "Highlight the history of Hirschau"),
        ("Dearborn is where?", "Dearborn is where?"),
        ("3.5 is more than 3.14, is it not?", "3.5 is more than 3.14, is it not?"),
        ("...\n\n", "..."),
        ("   ", ""),
    ],
)
def test_a_title_says_what_is_asked(message: str, title: str) -> None:
    assert propose_title(message) == title


def test_a_long_first_message_is_cut_at_a_word_and_one_without_spaces_at_a_character() -> None:
    long = "What is a ring buffer,\nand why would one use it in a cache of keys and values?"
    assert propose_title(long) == "What is a ring buffer, and why would one use it…"
    assert propose_title("环形缓冲区" * 20) == ("环形缓冲区" * 5)[:23] + "…"
    assert len(propose_title("x" * 500)) == TITLE_COLUMNS


@pytest.mark.parametrize(
    "sign", ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0915\u094d\u0937\u093f", "e\u0301\u0323"]
)
def test_a_title_is_cut_at_whole_signs(sign: str) -> None:
    title = propose_title("Ab" + sign * 40)
    assert title.endswith("…")
    assert title[2:-1] == sign * ((len(title) - 3) // len(sign))


@given(st.text(max_size=300))
def test_any_message_has_a_title_of_one_line(message: str) -> None:
    title = propose_title(message)
    assert len(title) <= TITLE_COLUMNS
    assert len(title.splitlines()) <= 1
    assert bool(title) == bool(message.split())


def test_the_title_that_a_person_gave_stays(held: Held) -> None:
    new = held.service.create()
    held.service.rename(new, "My own title")
    asked = held.say("What is a ring buffer?", new)
    held.answer(asked, "A loop.")
    held.service.turns.edit(new, held.service.branch(new)[0].id, "And what is a queue?")
    assert held.service.get(new).title == "My own title"
    assert held.service.get(held.say("Hello! What is a stack?").conversation).title == "What is a stack?"
