"""What usually makes prompts of programs differ."""

from __future__ import annotations

import pytest

from kvdesk.cache.usual_causes import usual_cause


@pytest.mark.parametrize(
    ("held", "prompt", "word"),
    [
        ("Today is 2026-11-21.", "Today is 2026-11-22.", "date"),
        ("It is 14:03 now", "It is 14:04 now", "date"),
        ("Nov 21, Friday", "Nov 22, Saturday", "date"),
        ("x-attribution: cc=1; cch=abc12;", "x-attribution: cc=1; cch=9ff01;", "identifier"),
        ("session_id: 3f2a9c0d1e4b", "session_id: 9b1c77aa02de", "identifier"),
        ("<think>\nWell", "The answer", "reasoning"),
        ('{"name": "read", "description": "x"}', '{"name": "write", "description": "y"}', "tools"),
        ("<think>\nWell", "<think>\nWell, then", ""),
        ("a plain text", "another plain text", ""),
        ("The year was long ago", "It is 14:03 now", ""),
    ],
)
def test_the_first_cause_that_fits_is_named(held: str, prompt: str, word: str) -> None:
    said = usual_cause(held, prompt)
    assert word in said
    assert bool(said) == bool(word)
