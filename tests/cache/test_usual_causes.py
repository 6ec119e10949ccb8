"""What usually makes prompts of programs differ."""

import pytest

from kvdesk.cache.reuse.usual_causes import UsualCause, cause_in_answer, usual_cause


def said(cause: UsualCause | None) -> str:
    return cause.sentence if cause is not None else ""


@pytest.mark.parametrize(
    ("held", "prompt", "word"),
    [
        ("Today is 2026-11-21.", "Today is 2026-11-22.", "date"),
        ("It is 14:03 now", "It is 14:04 now", "date"),
        ("Nov 21, Friday", "Nov 22, Saturday", "date"),
        ("x-attribution: cc=1; cch=abc12;", "x-attribution: cc=1; cch=9ff01;", "identifier"),
        ("cc_entrypoint=cli; cch=a5145;You are", "cc_entrypoint=cli; cch=9ff01;You are", "Claude Code"),
        ("session_id: 3f2a9c0d1e4b", "session_id: 9b1c77aa02de", "identifier"),
        ("<think>\nWell", "The answer", "reasoning"),
        ("Well.\n</think>\n\nYes", "Well.\n</think>\nYes", "blanks"),
        ('{"name": "read", "description": "x"}', '{"name": "write", "description": "y"}', "tools"),
        ("<think>\nWell", "<think>\nWell, then", ""),
        ("a plain text", "another plain text", ""),
        ("The year was long ago", "It is 14:03 now", ""),
        ("You think before you answer. It is 14:03", "You think before you answer. It is 14:05", "date"),
        ("A reasoning assistant, up to May 1", "A reasoning assistant, up to May 2", "date"),
        ("</think>\n\nYes. It is 14:03", "</think>\n\nYes. It is 14:05", "date"),
        ("◁think▷Well◁/think▷Yes", "Yes", "reasoning"),
    ],
)
def test_the_first_cause_that_fits_is_named(held: str, prompt: str, word: str) -> None:
    cause = usual_cause(held, prompt)
    assert word in said(cause)
    assert bool(cause) == bool(word)


CALL = '<tool_call>{"name": "look", "arguments": {"b": "Zürich", "a": null, "c": 1}}</tool_call><tool>here</tool>'


@pytest.mark.parametrize(
    ("prompt", "word"),
    [
        (CALL.replace('"b": "Zürich", "a": null', '"a": null, "b": "Zürich"'), "another order"),
        (CALL.replace('"a": null, ', ""), "null"),
        (CALL.replace(": ", ":").replace(", ", ","), "blanks"),
        (CALL.replace("ü", "\\u00fc"), "escapes"),
        (CALL.replace("</tool_call>", "</tool_call>\n"), "blanks"),
        (CALL.replace("Zürich", "Bern"), ""),
        (CALL.replace('"c": 1', '"d": 1'), ""),
        ("It is there.", ""),
        ("<think>\nHm.</think>" + CALL, "reasoning"),
    ],
)
def test_the_way_in_which_a_program_writes_a_call_again_is_named(prompt: str, word: str) -> None:
    cause = cause_in_answer(CALL, prompt)
    assert word in said(cause)
    assert bool(cause) == bool(word)


def test_other_ids_of_calls_are_named() -> None:
    for text in (
        '[TOOL_CALLS][{{"name": "f", "id": "{}"}}]',
        "[TOOL_CALLS]f[CALL_ID]{}[ARGS]{{}}",
        '{{"tool_call_id": "{}"}}',
    ):
        held, prompt = text.format("a1b2c3d4e"), text.format("z9y8x7w6v")
        assert cause_in_answer(held, prompt) is UsualCause.CALL_IDS
        assert usual_cause(held, prompt) is UsualCause.IDENTIFIER
