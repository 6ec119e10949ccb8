"""The child process that reads a file: it tells the same as reading here, and whatever becomes of it is a sentence."""

import sys
from pathlib import Path

import pytest

from kvdesk.conversations.porting import formats
from kvdesk.conversations.porting.reader_process import Progress, ReaderProcess, reader_command
from kvdesk.errors import UserError
from tests.conversations.porting.samples import chatgpt_conversation, llama_session, written


def test_the_child_tells_the_same_as_reading_here(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", [chatgpt_conversation(), llama_session()])
    with ReaderProcess(reader_command(path)) as process:
        told = list(process.found())
    size = path.stat().st_size
    assert Progress(size, size) in told
    found, here = [one for one in told if not isinstance(one, Progress)], list(formats.read(path))
    assert found == here
    assert [one.conversation.messages for one in found] == [one.conversation.messages for one in here]


def test_what_the_child_refuses_is_refused_here(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.json"  # a name that is no UTF-8
    path.write_text("[7]", "utf-8")
    with ReaderProcess(reader_command(path)) as process, pytest.raises(UserError, match="no export that kvdesk knows"):
        list(process.found())


def test_a_child_that_dies_is_a_sentence() -> None:
    with (
        ReaderProcess([sys.executable, "-c", "raise SystemExit(9)"]) as process,
        pytest.raises(UserError, match="The file could not be read: the process that reads it ended"),
    ):
        list(process.found())
    with pytest.raises(UserError, match="cannot be started"):
        ReaderProcess(["/none/such"])
