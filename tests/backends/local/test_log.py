"""What llama.cpp says is told with its own level; a stop that was asked for is nothing to be alarmed at."""

import pytest

from kvdesk.backends.local.llama.binding import engine_log
from kvdesk.cache.batch import Batch
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.cache import RebuildContext
from kvdesk.protocol.chat import LogLine
from kvdesk.protocol.messages import Event


@pytest.fixture(autouse=True)
def heard(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of a process has one listener: that of the engine made last, which another test may have closed."""
    monkeypatch.setattr(engine_log(), "listener", lambda level, text: headless.events.append(LogLine(level, text)))


def lines_of(events: list[Event]) -> list[LogLine]:
    return [event for event in events if isinstance(event, LogLine)]


def test_a_stopped_decode_is_neither_a_warning_nor_an_error(headless: HeadlessEngine) -> None:
    context = session_of(headless).runtime.context
    engine_log().forget()
    headless.events.clear()
    context.stop.raise_()
    try:
        rc = context.decode(Batch.of(0, 0, list(range(100, 164))), "prefill").rc
    finally:
        context.stop.lower()
    assert rc == 2
    said = lines_of(headless.events)
    assert any("failed to compute graph, compute status: 1" in line.text for line in said)
    assert {line.level for line in said} <= {"info", "debug"}
    assert engine_log().problems() == ""


def test_lines_have_the_levels_that_llama_cpp_gave_them(headless: HeadlessEngine) -> None:
    settings = session_of(headless).runtime.context.settings
    lines = lines_of(headless.do(RebuildContext(settings)))
    assert not any("input tensor '" in line.text for line in lines), "one for each of hundreds"
    level = {line.text: line.level for line in lines}
    assert level["llama_context: constructing llama_context"] == "info"
    assert level["set_abort_callback: call"] == "debug"
