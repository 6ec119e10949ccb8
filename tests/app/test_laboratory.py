"""The laboratory in the window with a real child: it runs to a result, is cancelled, and ends with model and window."""

import time
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.app.slices import laboratory
from kvdesk.app.slices.laboratory import Laboratory, past_results
from kvdesk.experiments import report
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.ui.lab.page import LabPage
from kvdesk.values import replace
from tests.app.conftest import Rig
from tests.experiments.test_framework import RECORD

TIMEOUT_MS = 60_000  # the machine may be busy; the child loads the model in about a second


def controller(rig: Rig) -> Laboratory:
    found = rig.controller.slices["lab"]
    assert isinstance(found, Laboratory)
    return found


@pytest.fixture
def lab(rig: Rig, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, talking_file: Path) -> LabPage:
    """The page, with a model open and the quickest question chosen."""
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    rig.window.show()
    rig.window.rooms.show_room("lab")
    page = rig.window.rooms.get("lab")
    assert isinstance(page, LabPage)
    controller(rig).apply(ModelLoaded(ModelInfo(LocalFile(talking_file), "Tiny")))
    qtbot.waitUntil(lambda: page.question is not None, timeout=TIMEOUT_MS)
    page.choose("positions")
    qtbot.waitUntil(lambda: "of memory" in page.setup._needs.text(), timeout=TIMEOUT_MS)
    return page


def begun(rig: Rig, lab: LabPage, qtbot: QtBot) -> psutil.Process:
    """The child of an experiment that has begun to load its model."""
    lab.setup.run_button.click()
    qtbot.waitUntil(lambda: controller(rig)._run is not None, timeout=TIMEOUT_MS)
    run = controller(rig)._run
    qtbot.waitUntil(lambda: run.pid is not None, timeout=TIMEOUT_MS)
    return psutil.Process(run.pid)


def test_it_runs_to_a_result_that_is_kept(
    rig: Rig, lab: LabPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "the time is measured when it starts" in lab.setup._needs.text()
    begun(rig, lab, qtbot)
    qtbot.waitUntil(lambda: controller(rig)._run is None, timeout=TIMEOUT_MS)
    qtbot.waitUntil(lambda: lab.past.view.count() == 1, timeout=TIMEOUT_MS)
    (kept,) = past_results("positions")
    assert kept.record.finished.result.verdict.sentence in [label.text() for label in lab.result.findChildren(QLabel)]
    assert lab.banner.sentence == ""
    assert lab._stack.currentWidget() is not lab.run
    opened: list[str] = []

    def opens(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", opens)
    lab.result.findChildren(QPushButton)[0].click()
    assert [Path(file) for file in opened] == [kept.folder / "report.html"]
    (kept.folder / "report.html").unlink()
    lab.result.findChildren(QPushButton)[0].click()
    assert lab.banner.sentence.startswith("The report no longer exists")
    trash: list[Path] = []

    def moved(folder: Path) -> bool:
        trash.append(folder.rename(folder.parent / "gone"))
        return True

    monkeypatch.setattr(laboratory, "move_to_trash", moved)
    rig.window.commands.lab.delete_results((past_results("positions")[0],))
    qtbot.waitUntil(lambda: lab.past.view.count() == 0, timeout=TIMEOUT_MS)
    assert len(trash) == 1
    trash[0].rename(kept.folder)  # a person took it out of the trash again
    lab.choose("seq-ids")
    qtbot.waitUntil(lambda: "at the speed of the last run on this model" in lab.setup._needs.text(), timeout=TIMEOUT_MS)


def test_it_is_cancelled_within_a_second(rig: Rig, lab: LabPage, qtbot: QtBot) -> None:
    child = begun(rig, lab, qtbot)
    start = time.perf_counter()
    lab.setup.cancel_button.click()
    qtbot.waitUntil(lambda: controller(rig)._run is None, timeout=TIMEOUT_MS)
    assert time.perf_counter() - start < 3  # one second, and what other tests beside it take
    assert not child.is_running()
    assert lab.banner.sentence == "The experiment was cancelled."
    assert past_results("positions") == []


def test_another_model_ends_it(rig: Rig, lab: LabPage, qtbot: QtBot) -> None:
    child = begun(rig, lab, qtbot)
    rig.window.rooms.show_chats()
    rig.window.commands.open_model(Path("/models/other.gguf"))
    qtbot.waitUntil(lambda: controller(rig)._run is None, timeout=TIMEOUT_MS)
    assert not child.is_running()
    assert lab.banner.sentence == "The experiment was ended because another model was opened."


def test_closing_the_window_ends_it(rig: Rig, lab: LabPage, qtbot: QtBot) -> None:
    child = begun(rig, lab, qtbot)
    rig.window.close()
    assert not child.is_running()


def test_a_model_that_is_none_cannot_be_run_on(rig: Rig, lab: LabPage, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "none.gguf"
    file.write_bytes(b"GGUF")
    controller(rig).apply(ModelLoaded(ModelInfo(LocalFile(file), "none")))
    qtbot.waitUntil(lambda: "none.gguf" in lab.setup._needs.text(), timeout=TIMEOUT_MS)
    assert not lab.setup.run_button.isEnabled()


def test_what_is_no_result_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    folder = tmp_path / "lab" / "positions-20260101-000000"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    (tmp_path / "lab" / "positions-20260101-000001").mkdir()
    assert past_results("positions") == []


def test_a_result_larger_than_any_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    record = replace(RECORD, request=replace(RECORD.request, experiment_id="positions"))
    kept = report.write(record, tmp_path / "lab" / "positions-20260101-000000")
    assert [past.record for past in past_results("positions")] == [record]
    monkeypatch.setattr(report, "MOST_RESULT", (kept.parent / "result.json").stat().st_size - 1)
    assert past_results("positions") == []
