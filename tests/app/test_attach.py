"""Another program's cache in a window, by a log that grows."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.app.windows import attach
from kvdesk.cli import attach as command
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import follow
from kvdesk.errors import UserError
from tests.engine_log.test_cells import messages, plain
from tests.engine_log.test_doctor import LOGS
from tests.places import ROOT

SERVER = """
import signal
print("0.00.000.001 I ready", flush=True)
signal.pause()
"""


def test_cells_and_requests_are_shown_as_they_come(qtbot: QtBot, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(plain(messages(40)) + (LOGS / "lru-2026-08.log").read_text())
    over = threading.Event()
    there = threading.Event()
    lines = follow(log, there.set, over.is_set)
    window = attach.open_window(attach.Log(log.name, lambda: read_lines(lines), over.set, there.is_set))
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: "low similarity" in window.requests.toPlainText())
    assert "not verified" in window.about.full_text
    assert "40 of 256 cells used" in window.numbers.toPlainText()
    with log.open("a") as more:
        more.write(plain(messages(60)) + "slot      release: id  0\n")
    qtbot.waitUntil(lambda: "60 of 256 cells used" in window.numbers.toPlainText())
    qtbot.waitUntil(lambda: (newest := window.timeline._newest) is not None and newest.last == 2)
    window.timeline.show_operation(2)
    assert "as printed by the engine at ubatch 2" in window.timeline._about.text()
    assert "5.100 s after the start of the log, 20 cells changed" in window.timeline._about.text()
    assert " ms" not in window.timeline._about.text(), "the log shows no time of the call"
    assert " ms" not in window.timeline.model.index(0).data()
    assert not window.grab().isNull()
    window.close()
    assert over.is_set()
    assert window.reading.ended.wait(10)


def test_every_stream_is_shown_whole(qtbot: QtBot) -> None:
    log = plain([*messages(40), *messages(30, stream=1), "slot decode: x\n"]).encode()
    window = attach.open_window(attach.Log("server", lambda: read_lines([log]), lambda: None))
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: "it has ended" in window.about.full_text)
    text = window.numbers.toPlainText()
    assert [part in text for part in ("stream 0 ·", "40 of 256", "stream 1 ·", "30 of 256")] == [True] * 4
    assert window.numbers.height() >= window.numbers.document().size().height()
    assert window.isVisible()
    assert window._timer.interval() == attach.RARELY_MS, "nothing is left to look for but a signal"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.matrix)])
def test_the_window_of_a_watched_server_ends_with_it(name: str, tmp_path: Path) -> None:
    number = signal.Signals[name]
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    command = [sys.executable, "-m", "kvdesk", "watch", "--", sys.executable, str(server)]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as watch:
        assert watch.stderr is not None
        assert any("ready" in line for line in watch.stderr)
        watch.send_signal(number)
        assert watch.wait(60) == 128 + number


def test_a_log_that_is_not_there_opens_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        command.main([str(tmp_path / "none")])
    monkeypatch.setattr(attach, "has_display", lambda: False)
    (tmp_path / "a.log").write_text("")
    with pytest.raises(UserError, match="--text"):
        command.main([str(tmp_path / "a.log")])


def test_a_server_that_is_watched_has_the_processors(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What showing takes is followed by a rest of 49 times that, no shorter and no longer than said."""
    log = tmp_path / "server.log"
    log.write_text(plain(messages(40)))
    over, spent, live = threading.Event(), [0.0], [True]
    monkeypatch.setattr(time, "thread_time", lambda: spent[0])
    shown = attach.Log(
        log.name, lambda: read_lines(follow(log, threading.Event().set, over.is_set)), over.set, lambda: live[0]
    )
    window = attach.open_window(shown)
    qtbot.addWidget(window)
    for took, rest in ((0.001, attach.LOOK_MS), (0.02, 980), (0.5, attach.RARELY_MS)):
        spent[0] += took
        window._look()
        assert window._timer.interval() == rest
    live[0] = False
    spent[0] += 0.5
    window._look()
    assert window._timer.interval() == attach.LOOK_MS
    window.close()
