"""A journal as a file, in a window without engine, store and settings; and files that are none."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from pytestqt.qtbot import QtBot

from kvdesk.__main__ import main
from kvdesk.app.windows.qt_application import run_until_closed
from kvdesk.app.windows.replay import open_journal
from kvdesk.cache.journal.file import JournalHeader, save_journal
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.store.settings_file import save_settings
from kvdesk.ui.widgets.style.colours import DARK, LIGHT, Colours
from kvdesk.ui.widgets.style.theme import Theme
from tests.cache.journals import FACTS, Player
from tests.cli.test_record import two_dumps


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    player = Player(FACTS[1], unified=True, swa_full=False, n_seq_max=2, seed=5)
    player.play(60)
    file = tmp_path / "talk.jsonl"
    save_journal(file, player.journal.recording(), JournalHeader("tiny.gguf", {"kvdesk": "0.1.0"}))
    return file


def test_a_journal_is_shown_without_a_model(qtbot: QtBot, journal: Path) -> None:
    window = open_journal(journal)
    qtbot.addWidget(window)
    window.show()
    assert "talk.jsonl" in window.about.full_text
    assert "tiny.gguf" in window.about.full_text
    assert (window.timeline._band_text.text()) == "State after operation 60 of 60"
    window.timeline.show_operation(0)
    window.timeline.scrubber.stepped.emit(1)
    assert window.timeline.at == 1
    assert "1  " in window.timeline._what.text()
    assert not window.grab().isNull()


def test_space_presses_the_button_one_is_at_and_plays_elsewhere(qtbot: QtBot, journal: Path) -> None:
    window = open_journal(journal)
    qtbot.addWidget(window)
    with qtbot.waitActive(window):
        window.show()
    timeline, scrubber = window.timeline, window.timeline.scrubber
    scrubber._back.setFocus()
    qtbot.keyClick(scrubber._back, Qt.Key.Key_Space)
    assert timeline.at == 59
    assert not scrubber.is_playing
    timeline.view.setFocus()
    qtbot.keyClick(timeline.view, Qt.Key.Key_Space)
    assert scrubber.is_playing


@pytest.mark.parametrize(("theme", "colours"), [(ThemeChoice.DARK, DARK), (ThemeChoice.LIGHT, LIGHT)])
def test_the_window_has_the_look_that_was_chosen_in_kvdesk(
    qtbot: QtBot, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theme: ThemeChoice, colours: Colours
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(Settings(theme=theme), tmp_path / "settings.json")
    window = open_journal(journal)
    qtbot.addWidget(window)
    (look,) = window.findChildren(Theme)
    assert look.colours is colours


def test_looking_for_the_look_leaves_no_folder_behind(
    qtbot: QtBot, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))
    qtbot.addWidget(open_journal(journal))
    assert not (tmp_path / "home").exists()


def test_the_chosen_operation_is_seen_whole_in_every_height(qtbot: QtBot, journal: Path) -> None:
    window = open_journal(journal)
    qtbot.addWidget(window)
    window.show()
    view = window.timeline.view
    for height in (800, 640):
        window.resize(window.width(), height)
        qtbot.waitUntil(lambda: view.viewport().rect().contains(view.visualRect(view.currentIndex())))
    assert view.verticalScrollBar().maximum() > 0


def test_a_request_of_a_log_shows_its_numbers(qtbot: QtBot, tmp_path: Path) -> None:
    log, file = tmp_path / "server.log", tmp_path / "out.kvjournal"
    log.write_text(two_dumps())
    assert main(["record", str(log), str(file), "--no-follow"]) == 0
    window = open_journal(file)
    qtbot.addWidget(window)
    model = window.timeline.model
    texts = [model.index(i).data() for i in range(model.rowCount())]
    assert any("request  slot 1 · 4,070 tokens · 0 reused" in text for text in texts)
    window.timeline.show_operation(3)
    assert "73.298 s after the start of the log, took 4.2 s" in window.timeline._about.text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_window(number: signal.Signals, qtbot: QtBot, journal: Path) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        window = open_journal(journal)
        qtbot.addWidget(window)
        QTimer.singleShot(0, lambda: signal.raise_signal(number))
        assert run_until_closed(window) == 128 + number
        assert not window.isVisible()
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_it_can_be_exported_again(qtbot: QtBot, journal: Path, tmp_path: Path) -> None:
    window = open_journal(journal)
    qtbot.addWidget(window)
    window.show()
    recording = window.timeline._recording
    assert recording is not None
    window.timeline._commands.save_recording(tmp_path / "copy.jsonl", recording)
    window.wait()
    assert (tmp_path / "copy.jsonl").read_bytes() == journal.read_bytes()
    qtbot.waitUntil(lambda: "were saved" in window.strip.text)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "could not be read"),
        (b"", "not a kvdesk journal"),
        (b"GGUF\0\1", ""),
        (b'{"format": "other"}\n', "not a kvdesk journal"),
    ],
)
def test_a_file_that_is_none_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "file.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert main(["replay", str(file)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_replay_needs_no_engine(journal: Path) -> None:
    code = "import sys; import kvdesk.app.windows.replay as r; from pathlib import Path\n"
    code += f"r.open_journal(Path({str(journal)!r})); "
    code += "assert 'llama_cpp' not in sys.modules and 'kvdesk.backends.local' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
