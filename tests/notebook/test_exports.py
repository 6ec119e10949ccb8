"""A recording as a trace and as a page: what they hold, what they leave out, and what a hostile journal cannot do."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.journal.file import JournalHeader, save_journal
from kvdesk.cache.journal.recording import Recording
from kvdesk.cli import replay
from kvdesk.errors import UserError
from kvdesk.notebook.recording_page import page
from kvdesk.notebook.trace import trace_text
from tests.notebook.test_cell_map import HOSTILE, mirror

HEADER = JournalHeader(HOSTILE, {"kvdesk": "0.1.0"})


@pytest.fixture
def recording() -> Recording:
    made = mirror()
    journal = Journal(made)
    calls = (
        ("seq_rm", lambda: made.seq_rm(0, 60, -1), 0.5),
        ("seq_cp", lambda: made.seq_cp(1, 3, -1, -1), 1.5),
        ("clear", made.clear, 2.0),
    )
    for i, (name, call, ms) in enumerate(calls):
        call()
        journal.record([Operation(made.operation, 100.0 + i, name, f"{name} {HOSTILE}", ms, "a chat", "a secret")])
    return journal.recording()


class Tags(HTMLParser):
    """The tags of a page, and the text of its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.tags.count("script") == 1 and data.strip():
            self.data = data


def test_a_trace_has_the_form_of_trace_events(recording: Recording) -> None:
    found = json.loads(trace_text(recording, HEADER))
    events = found["traceEvents"]
    assert {(event["pid"], event["tid"]) for event in events} == {(1, 1)}
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == [HOSTILE, "llama.cpp"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"]) for event in slices] == [
        ("seq_rm", 0.0, 500.0),
        ("seq_cp", 999000.0, 1500.0),
        ("clear", 1998500.0, 2000.0),
    ]
    assert [event["args"] for event in events if event["ph"] == "C"] == [{"kv 0": 70}, {"kv 0": 70}, {"kv 0": 0}]
    assert "a secret" not in json.dumps(found)


def test_a_page_has_every_call_and_loads_nothing(recording: Recording) -> None:
    text = page(recording, HEADER)
    found = Tags(text)
    assert set(found.tags) <= {*("html", "head", "meta", "title", "style", "body", "h1", "input", "p", "div", "script")}
    assert found.tags.count("script") == 2
    assert found.attributes.isdisjoint({"src", "href", "onclick", "onload"})
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|url\(|fetch|innerHTML", text)
    data = json.loads(found.data)
    assert [call["call"] for call in data["calls"]] == [f"{name} {HOSTILE}" for name in ("seq_rm", "seq_cp", "clear")]
    assert data["streams"] == [{"name": "kv 0", "size": 256}]
    assert data["base"][0] == [0, 0, 5, 0, [0, 2]]
    assert data["calls"][1]["cells"] == [[0, 70, 10, 0, [1, 3]]]
    assert "a secret" not in text


def test_the_command_writes_both(recording: Recording, tmp_path: Path) -> None:
    save_journal(tmp_path / "cells.jsonl", recording, HEADER)
    out = tmp_path / "cells.json", tmp_path / "cells.html"
    assert replay.main([str(tmp_path / "cells.jsonl"), "--trace", str(out[0]), "--html", str(out[1])]) == 0
    assert out[0].read_text(encoding="utf-8") == trace_text(recording, HEADER)
    assert out[1].read_text(encoding="utf-8") == page(recording, HEADER)
    with pytest.raises(UserError, match="cannot be written"):
        replay.main([str(tmp_path / "cells.jsonl"), "--html", str(tmp_path / "none" / "cells.html")])
