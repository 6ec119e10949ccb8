"""A disk that keeps messages out: the window says so as long as it lasts, offers another place, and asks at the end."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.store import writer as writer_module
from kvdesk.store.store import Store
from kvdesk.ui.shell.unsaved_strip import UnsavedStrip
from tests.app.conftest import Rig, over_both

FULL = "The disk is full: the conversation cannot be saved."


def _limit(rig: Rig, n_pages: int) -> None:
    """So many pages the database may have: what a full disk is to SQLite."""

    def set_limit(store: Store) -> None:
        store._connection.pragma("max_page_count", n_pages)

    rig.store.ask(set_limit).result()


def _type(rig: Rig, text: str) -> None:
    assert rig.controller.selected is not None
    rig.controller.conversations.send(rig.controller.selected, text)


@over_both
def test_the_strip_stays_until_there_is_room_again(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.01)
    _limit(rig, 1)
    _type(rig, "A long story. " * 5000)
    strip = rig.window.unsaved
    said = f"2 messages are not saved yet. {FULL} kvdesk retries automatically."
    qtbot.waitUntil(lambda: strip.sentence == said)
    rig.window.commands.save_unsaved(tmp_path / "elsewhere.md")
    assert "A long story." in (tmp_path / "elsewhere.md").read_text(encoding="utf-8")
    assert strip.sentence, "a copy elsewhere is no reason to be quiet"
    _limit(rig, 1 << 20)
    qtbot.waitUntil(lambda: not strip.sentence)
    stored = rig.store.ask(lambda store: store.all_messages(rig.controller.selected)).result()  # type: ignore[arg-type]
    assert stored[0].text.startswith("A long story.")


@over_both
def test_closing_asks_while_something_is_not_saved(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[bool] = [False, True]
    monkeypatch.setattr(UnsavedStrip, "may_close", lambda strip, _parent: not strip.sentence or answers.pop(0))
    rig.window.show()
    _limit(rig, 1)
    _type(rig, "A long story. " * 5000)
    qtbot.waitUntil(lambda: bool(rig.window.unsaved.sentence))
    assert not rig.window.close()
    assert rig.worker.running, "the answer was no"
    assert rig.window.close()
    assert not rig.worker.running
    assert rig.controller.lost.n_messages == 2


@over_both
def test_what_is_saved_closes_without_a_question(make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    rig = make_rig()
    monkeypatch.setattr("PySide6.QtWidgets.QMessageBox.exec", lambda _box: pytest.fail("asked"))
    rig.window.show()
    assert rig.window.close()
    assert not rig.controller.lost
