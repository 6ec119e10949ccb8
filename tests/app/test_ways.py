"""How a click reaches the host: the files whose code is running then are those that docs/architecture.md lists."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from PySide6.QtWidgets import QAbstractButton, QWidget
from pytestqt.qtbot import QtBot

import kvdesk
from kvdesk.host.host import Host
from kvdesk.message import MessageId
from kvdesk.protocol.cache import CacheView, ContextReady, Lease, RebuildContext, UsePolicy
from kvdesk.protocol.chat import Generate
from kvdesk.protocol.messages import Command
from kvdesk.protocol.operations import Operate
from kvdesk.session.operation_specs import REMOVE
from kvdesk.settings import CacheType
from tests.app.conftest import Rig
from tests.app.test_controller import CONTEXT, answer, say
from tests.docs.headings import sections
from tests.places import ROOT
from tests.ui.samples import cache_view

MOST = 3
"""Files on the way to the host."""
_KVDESK = Path(kvdesk.__file__).parent
_TABLE = sections((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))["the-way-of-a-command"]
LISTED = {
    click: re.findall(r"`([\w.]+)`", way) for click, way in re.findall(r"(?m)^\| ([^|`]+?) \| (`[^|]+) \|$", _TABLE)
}


def _running() -> list[str]:
    """Modules of kvdesk whose code is running, from the outermost on. `guarded` calls what it is given."""
    frame: FrameType | None = sys._getframe(2)
    found: list[str] = []
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_KVDESK):
            found.append(".".join(file.relative_to(_KVDESK).with_suffix("").parts))
        frame = frame.f_back
    return [name for name in dict.fromkeys(reversed(found)) if name != "errors"]


class Ways:
    """By which files commands came to the host, by their type; those of a stop as `MessageId`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._taken: dict[type, list[str]] = {}
        submit, stop = Host.submit, Host.stop

        def submitted(host: Host, command: Command, age_s: float = 0.0) -> None:
            self._taken[type(command)] = _running()
            submit(host, command, age_s)

        def stopped(host: Host, name: MessageId) -> None:
            self._taken[MessageId] = _running()
            stop(host, name)

        monkeypatch.setattr(Host, "submit", submitted)
        monkeypatch.setattr(Host, "stop", stopped)

    def of(self, kind: type, click: Callable[[], object]) -> list[str]:
        self._taken.clear()
        click()
        return self._taken[kind]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """Before the host is made, whose methods are kept."""
    return Ways(monkeypatch)


def button(place: QWidget, name: str) -> QAbstractButton:
    """The last one of that name which is shown."""
    return [one for one in place.findChildren(QAbstractButton) if one.accessibleName() == name and one.isVisible()][-1]


@pytest.fixture
def full(ready: Rig, qtbot: QtBot) -> Rig:
    """A chat with an answer has cells."""
    ready.worker.give(ContextReady(CONTEXT, rebuilt=False))
    asked = say(ready, "One")
    answer(ready, qtbot, asked, "First")
    ready.window.commands.watch(True)
    ready.worker.give(CacheView(cache_view().snapshot, (Lease(asked.conversation, 0),)))
    qtbot.waitUntil(lambda: ready.window.store.view is not None)
    return ready


def test_a_message_is_sent_stopped_and_answered_again(ways: Ways, ready: Rig, qtbot: QtBot) -> None:
    composer = ready.window.chat.composer
    composer.set_text("One")
    assert ways.of(Generate, button(composer, "Send").click) == LISTED["*Send*"]
    assert ways.of(MessageId, button(composer, "Stop").click) == LISTED["*Stop*"]
    answer(ready, qtbot, ready.worker.asked[-1], "First")
    again = button(ready.window.chat.view, "Answer again")
    assert ways.of(Generate, again.click) == LISTED["*Answer again*"]


def test_operations_reach_it(ways: Ways, full: Rig) -> None:
    instruments = full.window.inspector.cache.instruments
    instruments.operations.set_open(True)
    assert ways.of(Operate, instruments.operations.button(REMOVE).click) == LISTED["*Remove*"]
    instruments.compaction.ask()
    instruments.compaction.compact_button.setEnabled(True)  # as a plan does that moves something
    assert ways.of(Operate, instruments.compaction.compact_button.click) == LISTED["*Compact*"]


def test_settings_reach_it(ways: Ways, full: Rig) -> None:
    page = full.window.rooms.show_settings()
    page.field("cache", "n_keep").setValue(7)  # type: ignore[attr-defined]
    assert ways.of(UsePolicy, page.apply_now) == LISTED["a setting of the cache"]
    kind = page.field("context", "type_k")
    kind.setCurrentIndex(kind.findData(CacheType.Q8_0))  # type: ignore[attr-defined]
    assert ways.of(RebuildContext, page.bar.apply.click) == LISTED["*Apply and rebuild*"]


@pytest.mark.parametrize("click", LISTED)
def test_no_way_is_long(click: str) -> None:
    assert 0 < len(LISTED[click]) <= MOST
