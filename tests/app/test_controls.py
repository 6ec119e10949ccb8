"""Every control of the inspector, pressed in the real window on the real engine; the map is audited after each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.protocol.cache import CacheView, ContextReady, OperationDone, Verified
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import BatchRefused, Operate, RemoveRange, SwapIn
from kvdesk.settings import ContextSettings, Sampling, Settings
from kvdesk.store.settings_file import save_settings
from kvdesk.ui.operations.compaction_dialog import CompactionDialog
from kvdesk.viewmodel import operation_specs as specs
from kvdesk.viewmodel.operation_specs import OperationSpec
from tests.app.test_main_path import App

SETTINGS = Settings(
    context=ContextSettings(n_ctx=512, n_threads=1, n_threads_batch=1),
    sampling=Sampling(temperature=0.0, max_tokens=12),
)


class Desk(App):
    """The application with two answered conversations, and hands that press and look."""

    def __init__(self, qtbot: QtBot) -> None:
        super().__init__(qtbot)
        window = self.parts.window
        self.ask("What is the sea?")
        window.new_chat_requested.emit()
        self.ask("Name three towns.")
        self.form = window.inspector.cache.operations
        self.form.set_open(True)
        self.wait(lambda: len(self.view.leases) == 2)

    @property
    def view(self) -> CacheView:
        view = self.last(CacheView)
        assert isinstance(view, CacheView)
        return view

    def done(self, name: str = "") -> list[OperationDone]:
        return [e for e in self.events if isinstance(e, OperationDone) and e.reason == "by hand" and name in e.name]

    def press(self, spec: OperationSpec, *, expect: int = 1) -> OperationDone:
        """Press a button and wait for what it did; the map must agree with the engine's own state then."""
        before = len(self.done())
        self.form.show_state(self.parts.window._state)
        button = self.form.button(spec)
        assert button.isEnabled(), f"{spec.label}: {button.toolTip()}"
        button.click()
        self.wait(lambda: len(self.done()) >= before + expect)
        assert not [e for e in self.events if isinstance(e, CommandFailed)]
        self.audit()
        return self.done()[-1]

    def audit(self) -> None:
        n = sum(isinstance(e, OperationDone) and e.name == "audit" for e in self.events)
        self.parts.window.audit_requested.emit()
        self.wait(lambda: sum(isinstance(e, OperationDone) and e.name == "audit" for e in self.events) > n)
        last = [e.operation for e in self.events if isinstance(e, OperationDone)][-1]
        self.wait(lambda: self.view.snapshot.operation >= last)
        self.wait(lambda: self.view.snapshot.verification.state == "verified")


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    save_settings(SETTINGS, paths.settings_file())
    desk = Desk(qtbot)
    yield desk
    desk.parts.window.close()


def test_every_button_on_the_real_engine(desk: Desk) -> None:
    form, used = desk.form, desk.used()
    form.set_range(0, 30, 34)  # behind what both share
    removed = desk.press(specs.REMOVE)
    assert desk.used() < used
    assert removed.effect is not None
    assert removed.effect.comparison.sequences
    desk.press(specs.UNDO)
    assert desk.used() == used
    form.set_range(0, 20, -1)
    form._shift.setValue(4)
    desk.press(specs.SHIFT)
    desk.press(specs.UNDO)
    form.set_range(0, -1, -1)
    form._pos.setValue(400)
    desk.press(specs.TRY)
    refused = desk.last(BatchRefused)
    assert isinstance(refused, BatchRefused)
    assert refused.y == 400
    assert desk.parts.window.inspector.rulers is not None
    desk.press(specs.SWAP_OUT)
    assert desk.view.swapped
    desk.parts.window.command_requested.emit(Operate(SwapIn(desk.view.swapped[0][0])))  # the menu of its chat
    desk.wait(lambda: bool(desk.done("swap in")))
    desk.audit()
    assert not desk.view.swapped
    used = desk.used()  # what comes back has cells of its own
    form.set_range(1, -1, -1)
    desk.press(specs.KEEP)
    desk.press(specs.UNDO)
    desk.press(specs.CLEAR)
    assert desk.used() == 0
    desk.press(specs.UNDO)
    assert desk.used() == used


def test_a_fork_shares_its_cells(desk: Desk) -> None:
    used = desk.used()
    desk.form.set_range(0, -1, -1)
    desk.press(specs.FORK)
    assert desk.used() == used
    assert len(desk.view.leases) == 3


def test_verify_says_how_exact_the_cache_is(desk: Desk) -> None:
    desk.form.set_range(0, -1, -1)
    desk.form.show_state(desk.parts.window._state)
    desk.form.button(specs.VERIFY).click()
    desk.wait(lambda: desk.last(Verified) is not None)
    verified = desk.last(Verified)
    assert isinstance(verified, Verified)
    assert str(verified.logits.verdict) in ("exact", "equal up to rounding")
    desk.audit()


def test_compaction_from_its_dialog(desk: Desk) -> None:
    desk.parts.window.command_requested.emit(Operate(RemoveRange(0), measured=False))
    desk.wait(lambda: bool(desk.done("seq_rm")))
    desk.form.show_state(desk.parts.window._state)
    desk.form.button(specs.COMPACT).click()
    desk.wait(lambda: desk.parts.window.findChild(CompactionDialog) is not None)
    dialog = desk.parts.window.findChild(CompactionDialog)
    assert isinstance(dialog, CompactionDialog)
    desk.wait(dialog.compact_button.isEnabled)
    dialog.compact_button.click()
    desk.wait(lambda: bool(desk.done("compact")))
    done = desk.done("compact")[-1]
    assert done.effect is not None
    assert done.effect.audited
    assert done.effect.comparison.streams[0].after.hole_ratio == 0.0
    desk.audit()


def test_a_rebuild_keeps_the_conversations(desk: Desk) -> None:
    used = desk.used()
    n = sum(isinstance(e, ContextReady) for e in desk.events)
    desk.parts.window.rebuild_requested.emit(SETTINGS.context.model_copy(update={"n_ctx": 1024}), "tokens")
    desk.wait(lambda: sum(isinstance(e, ContextReady) for e in desk.events) > n and desk.used() == used)
    assert desk.view.snapshot.n_ctx == 1024
    desk.audit()
