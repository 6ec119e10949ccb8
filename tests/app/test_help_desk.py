"""About, and the report of a problem: what is in the file, and that no text of a chat is unless it was ticked."""

import json
import logging
import os
import threading
import zipfile
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from kvdesk.app.log_files import log_files
from kvdesk.cache.journal.file import load_journal
from kvdesk.protocol.cache import ContextReady, RecordingTaken, TakeRecording
from kvdesk.protocol.chat import LogLine, ModelLoaded
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import Capability
from kvdesk.session.commands import ReportChoice
from kvdesk.settings import Settings
from kvdesk.values import replace
from tests.app.conftest import Rig
from tests.app.test_controller import answer, say
from tests.cache.journals import FACTS, Player
from tests.needs import needs_pipes
from tests.ui.samples import CONTEXT, MODEL

QUESTION, ANSWER, DRAFT = "Question of pearl divers", "Answer about oysters", "Draft on lighthouses"
TITLE, PROMPT = "Title of umbrellas", "Prompt of violins"
TEXTS = (QUESTION, ANSWER, DRAFT, TITLE, PROMPT)
FOLDER = "/home/marguerite/models"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "log"
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setattr(logging.getLogger("kvdesk"), "propagate", False)
    folder.mkdir(exist_ok=True)
    return folder


def in_use(rig: Rig, qtbot: QtBot) -> Player:
    """A model, a chat with texts everywhere, and a journal."""
    model = LocalFile(Path(FOLDER) / "a.gguf")
    possible = (Capability("swap", "yes", "why it can"),)
    rig.worker.give(ModelLoaded(replace(MODEL, source=model)))
    rig.worker.give(ContextReady(CONTEXT, rebuilt=False, possible=possible))
    asked = say(rig, QUESTION)
    answer(rig, qtbot, asked, ANSWER)
    rig.window.commands.conversations.rename(asked.conversation, TITLE)
    rig.window.commands.conversations.keep_draft(asked.conversation, DRAFT)
    rig.window.store.settings.change(system_prompt=PROMPT, model=f"{FOLDER}/a.gguf")
    rig.worker.give(LogLine("info", f"loaded from {FOLDER}/a.gguf"), LogLine("warning", f"odd: {DRAFT}"))
    player = Player(FACTS[0], unified=True, swa_full=True, n_seq_max=2, seed=1)
    player.play(20)
    rig.window.show()
    return player


def report(rig: Rig, qtbot: QtBot, player: Player, file: Path, choice: ReportChoice) -> dict[str, str]:
    """Ask for a report and answer what the window asks the engine: names of its files, and their text."""
    with log_files(file.parent / "log"):
        try:
            raise ValueError(ANSWER)
        except ValueError:
            logging.getLogger("kvdesk").exception("while saying “%s”", QUESTION)
    rig.window.commands.report_problem(file, choice)
    if choice.journal:
        assert isinstance(rig.worker.commands[-1], TakeRecording)
        rig.worker.give(RecordingTaken(player.journal.recording()))
    qtbot.waitUntil(lambda: f"saved to {file}." in rig.window.activity.text)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_text_of_a_chat_is_in_a_report(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    player = in_use(rig, qtbot)
    found = report(rig, qtbot, player, tmp_path / "report.zip", ReportChoice())
    assert set(found) == {
        *("versions.json", "settings.json", "model.json", "journal.jsonl", "README.txt"),
        *("log/kvdesk.log", "log/crash.log", "log/window.log"),
    }
    everything = "".join(found.values())
    assert [text for text in TEXTS if text in everything] == []
    assert "marguerite" not in everything
    assert logs.exists()
    assert "ValueError: (left out)" in found["log/kvdesk.log"]
    assert "loaded from …/a.gguf" in found["log/window.log"]
    assert {"kvdesk", "Python", "Qt", "SQLite", "llama.cpp", "built for"} <= set(json.loads(found["versions.json"]))
    assert json.loads(found["settings.json"])["sampling"]["top_k"] == Settings().sampling.top_k
    model = json.loads(found["model.json"])
    assert (model["model"]["file"], model["capabilities"][0]["why"]) == ("…/a.gguf", "why it can")
    journal = tmp_path / "journal.jsonl"
    journal.write_text(found["journal.jsonl"], encoding="utf-8")
    assert load_journal(journal)[1].last == player.journal.recording().last, "it can be replayed"
    runs = [run for line in found["journal.jsonl"].splitlines() for run in json.loads(line)["cells"]]
    tokens = {token for run in runs for token in (run[6] if len(run) > 3 else ())}
    assert tokens == {-1}


def test_no_text_of_another_branch_is_in_a_report(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    player, chat = in_use(rig, qtbot), rig.controller.selected
    assert chat is not None
    rig.window.commands.conversations.turns.regenerate(chat, 1)
    answer(rig, qtbot, rig.worker.asked[-1], "Another about pelicans")
    rig.worker.give(LogLine("warning", f"odd: {ANSWER}"))
    found = report(rig, qtbot, player, tmp_path / "report.zip", ReportChoice())
    assert logs.exists()
    assert "odd" not in found["log/window.log"]
    assert ANSWER not in found["log/window.log"]


def test_what_is_ticked_is_in_it(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    player = in_use(rig, qtbot)
    found = report(rig, qtbot, player, tmp_path / "all.zip", ReportChoice(texts=True, folders=True))
    assert logs.exists()
    for text in (QUESTION, ANSWER):
        assert text in found["chat.md"]
        assert text in found["log/kvdesk.log"]
    assert PROMPT in found["settings.json"]
    assert f"loaded from {FOLDER}/a.gguf" in found["log/window.log"]
    assert "chat.md" in found["README.txt"]


def test_what_is_not_ticked_is_not(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    player = in_use(rig, qtbot)
    found = report(rig, qtbot, player, tmp_path / "little.zip", ReportChoice(logs=False, journal=False))
    assert logs.exists()
    assert set(found) == {"versions.json", "settings.json", "model.json", "README.txt"}


def test_an_engine_that_hangs_does_not_keep_it_from_being_written(
    rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path
) -> None:
    in_use(rig, qtbot)
    rig.controller.help._waiting.setInterval(10)
    rig.window.commands.report_problem(tmp_path / "hung.zip", ReportChoice())
    qtbot.waitUntil(lambda: "hung.zip" in rig.window.activity.text)
    assert logs.exists()
    assert "journal.jsonl" not in zipfile.ZipFile(tmp_path / "hung.zip").namelist()


def test_a_report_that_cannot_be_written_is_said(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    rig.window.show()
    rig.window.commands.report_problem(tmp_path / "no" / "such.zip", ReportChoice(journal=False))
    qtbot.waitUntil(lambda: "could not be saved to such.zip" in rig.window.activity.text)
    assert logs.exists()


@needs_pipes
def test_a_pipe_among_the_logs_is_not_waited_for(rig: Rig, qtbot: QtBot, tmp_path: Path, logs: Path) -> None:
    os.mkfifo(logs / "x.log")
    rig.window.show()
    rig.window.commands.report_problem(tmp_path / "piped.zip", ReportChoice(journal=False))
    qtbot.waitUntil(lambda: "piped.zip" in rig.window.activity.text)
    assert zipfile.ZipFile(tmp_path / "piped.zip").read("log/x.log") == b""


def test_a_report_that_hangs_does_not_keep_the_window_open(
    rig: Rig, tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()
    monkeypatch.setattr("kvdesk.app.report.problem_report.write_report", lambda *_: may.wait(60))
    monkeypatch.setattr("kvdesk.app.report.help_desk.CLOSE_S", 0.01)
    rig.window.commands.report_problem(tmp_path / "hung.zip", ReportChoice(journal=False))
    rig.controller.help.close()
    assert logs.exists()
    assert not may.is_set()
    may.set()


def test_lines_of_kvdesks_log_are_in_the_window(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("kvdesk")
    monkeypatch.setattr(logger, "propagate", False)
    logging.getLogger("kvdesk.test").warning("a %s line", "certain")
    assert rig.window.inspector.log.lines[-1] == LogLine("warning", "kvdesk.test: a certain line")
    rig.controller.shut_down()
    logging.getLogger("kvdesk.test").warning("one more")
    assert rig.window.inspector.log.lines[-1].text == "kvdesk.test: a certain line"


def test_about_says_versions_and_licences(rig: Rig) -> None:
    rig.window.action_set.run("help.about")
    about = rig.window.help.about
    for name in ("kvdesk", "Python", "Qt", "SQLite", "llama-cpp-python", "llama.cpp", "built for"):
        assert any(line.startswith(name) for line in about.versions_text.splitlines()), name
    assert "PySide6_Essentials 6.11.3" in str(about._facts.licences)
    assert "LGPL-3.0" in str(about._facts.licences)
    about.copy_button.click()
    assert QGuiApplication.clipboard().text() == about.versions_text
