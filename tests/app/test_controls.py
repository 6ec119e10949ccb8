"""Every control of the inspector, pressed in the real window on the real engine; the map is audited after each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.protocol.cache import AuditCache, CacheView, OperationDone, Verified
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import BatchRefused, Operate, RemoveRange, SwapIn
from kvdesk.session import operation_specs as specs
from kvdesk.session.operation_specs import OperationSpec
from kvdesk.store.settings_file import save_settings
from tests.app.whole import SETTINGS, App


class DrivenWindow(App):
    """The application with two answered conversations, and hands that press and look."""

    def __init__(self, qtbot: QtBot) -> None:
        super().__init__(qtbot)
        window = self.parts.window
        self.ask("What is the sea?")
        window.commands.new_chat()
        self.ask("Name three towns.")
        self.form = window.inspector.cache.instruments.operations
        self.form.set_open(True)
        self.wait(lambda: len(self.view.leases) == 2)
        self.audit()  # until then the view may lack the last tokens

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
        self.form.show_state()
        button = self.form.button(spec)
        assert button.isEnabled(), f"{spec.label}: {button.toolTip()}"
        button.click()
        self.wait(lambda: len(self.done()) >= before + expect)
        assert not [e for e in self.events if isinstance(e, CommandFailed)]
        self.audit()
        return self.done()[-1]

    def audit(self) -> None:
        n = sum(isinstance(e, OperationDone) and e.name == "audit" for e in self.events)
        self.parts.window.commands.submit(AuditCache())
        self.wait(lambda: sum(isinstance(e, OperationDone) and e.name == "audit" for e in self.events) > n)
        last = [e.operation for e in self.events if isinstance(e, OperationDone)][-1]
        self.wait(lambda: self.view.snapshot.operation >= last)
        self.wait(lambda: self.view.snapshot.verification.state == "verified")


@pytest.fixture
def driven(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, talking_file: Path) -> Iterator[DrivenWindow]:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "embedded_model", lambda: talking_file)
    save_settings(SETTINGS, paths.settings_file())
    driven = DrivenWindow(qtbot)
    yield driven
    driven.parts.window.close()


def test_every_button_on_the_real_engine(driven: DrivenWindow) -> None:
    form, used = driven.form, driven.used()
    form.set_range(0, 30, 34)  # behind what both share
    removed = driven.press(specs.REMOVE)
    assert driven.used() < used
    assert removed.effect.comparison.sequences
    driven.press(specs.UNDO)
    assert driven.used() == used
    form.set_range(0, 20, -1)
    form._shift.setValue(4)
    driven.press(specs.SHIFT)
    driven.press(specs.UNDO)
    form.set_range(0, -1, -1)
    form._pos.setValue(400)
    driven.press(specs.TRY)
    refused = driven.last(BatchRefused)
    assert isinstance(refused, BatchRefused)
    assert refused.y == 400
    assert driven.parts.window.inspector.cache.instruments.rulers is not None
    driven.press(specs.SWAP_OUT)
    assert driven.view.swapped
    driven.parts.window.commands.submit(Operate(SwapIn(driven.view.swapped[0][0])))  # the menu of its chat
    driven.wait(lambda: bool(driven.done("swap in")))
    driven.audit()
    assert not driven.view.swapped
    used = driven.used()  # what comes back has cells of its own
    form.set_range(1, -1, -1)
    driven.press(specs.KEEP)
    driven.press(specs.UNDO)
    driven.press(specs.CLEAR)
    assert driven.used() == 0
    driven.press(specs.UNDO)
    assert driven.used() == used
    form.set_range(0, -1, -1)
    driven.press(specs.FORK)
    assert driven.used() == used, "a fork shares its cells"
    assert len(driven.view.leases) == 3


def test_verify_says_how_exact_the_cache_is_and_a_rebuild_keeps_the_conversations(driven: DrivenWindow) -> None:
    driven.form.set_range(0, -1, -1)
    driven.form.show_state()
    driven.form.button(specs.VERIFY).click()
    driven.wait(lambda: driven.last(Verified) is not None)
    verified = driven.last(Verified)
    assert isinstance(verified, Verified)
    assert verified.logits.verdict.same
    driven.audit()
    used = driven.used()
    driven.parts.window.commands.rebuild(SETTINGS.context.model_copy(update={"n_ctx": 1024}), "tokens")
    driven.wait(lambda: driven.view.snapshot.n_ctx == 1024 and driven.used() == used)
    driven.audit()


def test_compaction_from_its_card(driven: DrivenWindow) -> None:
    driven.parts.window.commands.submit(Operate(RemoveRange(0), measured=False))
    driven.wait(lambda: bool(driven.done("seq_rm")))
    driven.form.show_state()
    driven.form.button(specs.COMPACT).click()
    compact = driven.parts.window.inspector.cache.instruments.compaction.compact_button
    driven.wait(compact.isEnabled)
    compact.click()
    driven.wait(lambda: bool(driven.done("compact")))
    done = driven.done("compact")[-1]
    assert done.effect.audited
    assert done.effect.comparison.streams[0].after.hole_ratio == 0.0
    driven.audit()
