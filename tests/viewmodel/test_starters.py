"""The questions of an empty chat, and what is said when it asked twice."""

import pytest

from kvdesk import translation
from kvdesk.values import replace
from kvdesk.viewmodel.chat.starters import STARTERS, TWICE, compared
from tests.ui.samples import STATS


def test_one_asks_twice_about_a_text_that_is_long_enough_to_see_the_difference() -> None:
    twice, *others = STARTERS
    assert twice.name == TWICE
    first, second = twice.messages(in_english=True)
    assert len(first.split()) > 250
    assert len(second.split()) < 10
    assert all(len(one.messages(in_english=True)) == 1 for one in others)
    assert any("```python" in one.messages(in_english=True)[0] for one in others)


def test_a_model_that_speaks_english_alone_is_asked_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "_translate", lambda text, *_: f"«{text}»")
    for starter in STARTERS:
        assert not any("«" in text for text in starter.messages(in_english=True))
        assert all("«" in text for text in starter.messages(in_english=False))


def test_both_times_are_said_with_what_was_reused() -> None:
    first = replace(STATS, ttft_ms=920.0, reused_tokens=0)
    second = replace(STATS, ttft_ms=90.0, reused_tokens=412, prompt_tokens=440)
    assert compared(first, second) == (
        "The first answer began after 0.92 s, the second after 0.09 s: 412 of its 440 tokens were in the cache."
    )
    assert compared(first, replace(second, ttft_ms=0.0)) == ""
