"""Nothing of a chat and no person's name is left in what goes into a report."""

import json

import pytest

from kvdesk.app.report import redaction
from kvdesk.settings import Sampling, Settings, ThemeChoice

SECRET = "my secret recipe"
LOG = f"""2026-11-22 10:00:00,123 WARNING kvdesk.store: the chat “{SECRET}” is damaged
2026-11-22 10:00:01,123 ERROR kvdesk: unexpected error
Traceback (most recent call last):
  File "/home/alice/kvdesk/kvdesk/app/chat/chats.py", line 12, in send
    raise ValueError(text)
    ^^^^^^^^^^^^^^^^^^^^^^
ValueError: {SECRET}
    {SECRET}
File "{SECRET}
KeyError: {SECRET}
2026-11-22 10:00:02,000 INFO kvdesk.qt: QFont: {SECRET!r} is not there
"""


def test_a_log_keeps_frames_and_loses_texts() -> None:
    kept = redaction.log_without_texts(LOG)
    assert SECRET not in kept
    assert kept.splitlines() == [
        f"2026-11-22 10:00:00,123 WARNING kvdesk.store: the chat “{redaction.LEFT_OUT}” is damaged",
        "2026-11-22 10:00:01,123 ERROR kvdesk: unexpected error",
        "Traceback (most recent call last):",
        '  File "/home/alice/kvdesk/kvdesk/app/chat/chats.py", line 12, in send',
        "    raise ValueError(text)",
        f"ValueError: {redaction.LEFT_OUT}",
        f"2026-11-22 10:00:02,000 INFO kvdesk.qt: QFont: “{redaction.LEFT_OUT}” is not there",
    ]


@pytest.mark.parametrize("quotes", ["“{}”", '"{}"', "'{}'", "`{}`", "«{}»", '"{}', "“{}"])
def test_quoted_texts_go_closed_or_not(quotes: str) -> None:
    assert SECRET not in redaction.without_quotes(f"the chat {quotes.format(SECRET)}")


@pytest.mark.parametrize(
    "path",
    [
        "/home/alice/models/a.gguf",
        "/media/alice/my disk/a.gguf",
        r"C:\Users\alice\a.gguf",
        r"C:\\Users\\alice\\a.gguf",
        r"\\server\alice\a.gguf",
        "file:///home/alice/a.gguf",
    ],
)
def test_of_a_path_the_name_of_the_file_stays(path: str) -> None:
    assert redaction.without_folders(f"loaded from {path} (version 3)").endswith("…/a.gguf (version 3)")
    assert "alice" not in redaction.without_folders(f"loaded from {path}")


def test_the_persons_name_goes_where_there_is_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    assert redaction.without_folders("owner: Alice, malice 118 tok/s") == "owner: …, malice 118 tok/s"


def test_known_texts_take_their_lines_with_them() -> None:
    text = f"one\nsaid {SECRET} here\nthree\n"
    assert redaction.without_lines(text, [f"a line\n  {SECRET}", "one"]) == f"one\n{redaction.LEFT_OUT}\nthree\n"


def test_settings_keep_what_is_no_text() -> None:
    settings = Settings(
        model="/home/alice/a.gguf", system_prompt=SECRET, theme=ThemeChoice.DARK, sampling=Sampling(top_k=7)
    )
    kept = redaction.settings_without_texts(settings)
    assert (kept["model"], kept["theme"], kept["sampling"]["top_k"]) == ("…/a.gguf", "dark", 7)
    assert kept["language"] == "system"
    assert SECRET not in json.dumps(kept)
    assert kept["context"] == settings.context.model_dump(mode="json"), "nothing of the context is a free text"


def test_every_text_of_every_setting_is_left_out() -> None:
    """Also of settings that are added later: each field that takes a text gets one."""
    values = {name: SECRET for name, info in Settings.model_fields.items() if info.annotation is str}
    assert "system_prompt" in values
    sampling = {name: SECRET for name, info in Sampling.model_fields.items() if info.annotation is str}
    own = Sampling().model_copy(update=sampling)
    settings = Settings().model_copy(update={**values, "sampling": own, "language": "", "model": ""})
    text = json.dumps(redaction.settings_without_texts(settings))
    assert SECRET not in text


def test_a_journal_has_no_tokens() -> None:
    runs = [[0, 10, 2, 10, [0], 7, [312, 9906]], [0, 40, 5]]
    line = json.dumps({"n": 7, "reason": f"for “{SECRET}”", "cells": runs})
    entry = json.loads(redaction.journal_line_without_tokens(line))
    assert entry["cells"] == [[0, 10, 2, 10, [0], 7, [-1, -1]], [0, 40, 5]]
    assert SECRET not in entry["reason"]
    assert json.loads(redaction.journal_line_without_tokens(json.dumps({"more": runs[:1]})))["more"][0][-1] == [-1, -1]
