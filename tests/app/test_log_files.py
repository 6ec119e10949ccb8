"""Log and crash file: written where they can be, named if they cannot; never a reason not to start."""

import logging
import os
from pathlib import Path

import pytest

from kvdesk.app.log_files import log_files
from tests.needs import FULL, needs_full_disk, needs_pipes


def test_lines_of_kvdesk_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("kvdesk"), "propagate", False)  # the test runner cannot pass the line on
    with log_files(tmp_path) as complaints:
        logging.getLogger("kvdesk.test").info("half a character: \udc80")
    assert complaints == ()
    assert "half a character" in (tmp_path / "kvdesk.log").read_text(encoding="utf-8")
    assert (tmp_path / "crash.log").exists()


@pytest.mark.parametrize("name", ["kvdesk.log", "crash.log"])
def test_a_folder_in_its_place_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with log_files(tmp_path) as complaints:
        pass
    assert len(complaints) == 1
    assert f"{name} cannot be written (it is a folder)" in complaints[0]


@needs_pipes
@pytest.mark.parametrize("name", ["kvdesk.log", "crash.log"])
def test_a_pipe_in_its_place_does_not_block(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with log_files(tmp_path) as complaints:
        logging.getLogger("kvdesk.test").info("still here")
    assert "it is not a file" in complaints[0]


@needs_full_disk
def test_a_full_disk_costs_lines_of_the_log_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("kvdesk")
    monkeypatch.setattr(logger, "propagate", False)
    with log_files(tmp_path):
        handler = logger.handlers[-1]
        assert isinstance(handler, logging.StreamHandler)
        kept = handler.setStream(FULL.open("w", encoding="utf-8"))
        kept.close()
        logger.info("no room for this line")
    assert capfd.readouterr().err == ""
