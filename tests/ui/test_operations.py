"""Operations by hand: what the form makes of its fields, what it refuses and why, and what came of it."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from kvdesk.cache.compaction import Layout, plan_compaction
from kvdesk.cache.compare import LogitsComparison, Verdict, compare_snapshots
from kvdesk.message import MessageId
from kvdesk.protocol import cache as protocol
from kvdesk.protocol import operations as ops
from kvdesk.protocol.chat import Working
from kvdesk.session import operation_specs as specs
from kvdesk.session.operation_specs import OperationSpec
from kvdesk.ui.operations.menus import fill_menu
from kvdesk.ui.operations.panel import OperationsPanel
from kvdesk.ui.operations.request import ask
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.cells.effect_text import logits_sentence
from tests.ui.recording import Record
from tests.ui.samples import CONTEXT, CONVERSATIONS, ONE, TWO, append_message, cache_view, message, show_messages
from tests.ui.seen import effect_text, seen, stays


def show(window: MainWindow, view: protocol.CacheView | None = None) -> OperationsPanel:
    window.store.apply(view or cache_view())
    panel = window.inspector.cache.instruments.operations
    panel.show_state()
    panel.set_open(True)
    return panel


def press(window: MainWindow, spec: OperationSpec) -> None:
    window.inspector.cache.instruments.operations.button(spec).click()


def test_every_button_makes_its_operation(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.submit)
    panel = show(window)
    panel.set_range(0, 32, 64)
    press(window, specs.REMOVE)
    press(window, specs.KEEP)
    panel._shift.setValue(-5)
    press(window, specs.SHIFT)
    panel._pos.setValue(200)
    press(window, specs.TRY)
    press(window, specs.SWAP_OUT)
    press(window, specs.VERIFY)
    press(window, specs.CLEAR)
    panel._shift.setValue(-1)
    assert [command for (command,) in sent] == [
        ops.Operate(ops.RemoveRange(0, 32, 64)),
        ops.Operate(ops.KeepOnly(0)),
        ops.Operate(ops.ShiftPositions(0, 32, 64, -5)),
        ops.Operate(ops.TryDecode(0, 200)),
        ops.Operate(ops.SwapOut(ONE)),
        protocol.VerifyConversation(ONE),
        ops.Operate(ops.ClearCache()),
    ]


@pytest.mark.usefixtures("fresh")
def test_the_call_is_shown_before_it_is_made(window: MainWindow) -> None:
    panel = show(window)
    panel.set_range(1, 40, -1)
    assert panel._call.text() == "llama_memory_seq_rm(mem, 1, 40, -1)"
    assert "llama_memory_seq_cp(mem, 1, new, 40, -1)" in panel.button(specs.FORK).toolTip()
    QApplication.sendEvent(panel.button(specs.SHIFT), QEvent(QEvent.Type.Enter))
    assert panel._call.text() == "llama_memory_seq_add(mem, 1, 40, -1, -1)"
    panel._shift.setValue(7)
    assert panel._call.text().endswith("40, -1, 7)")


def test_what_the_model_cannot_do_is_disabled_with_its_reason(window: MainWindow) -> None:
    why = "No part of a recurrent state can be removed."
    rows = (
        ops.Capability("partial seq_rm", "no", why),
        ops.Capability("seq_rm", "yes", ""),
        ops.Capability("swap", "with loss", "Leaves out."),
    )
    window.store.apply(protocol.ContextReady(CONTEXT, rebuilt=False, possible=rows))
    panel = show(window)
    QApplication.sendEvent(panel.button(specs.REMOVE), QEvent(QEvent.Type.Enter))
    assert panel.button(specs.REMOVE).isEnabled(), "all of it can be removed"
    panel.set_range(0, 32, 64)
    assert not panel.button(specs.REMOVE).isEnabled()
    assert why in panel._remark.text()
    assert why in panel.button(specs.REMOVE).toolTip()
    QApplication.sendEvent(panel.button(specs.SWAP_OUT), QEvent(QEvent.Type.Enter))
    assert panel.button(specs.SWAP_OUT).isEnabled()
    assert panel._remark.text() == "Leaves out."


def test_a_shift_that_makes_no_sense_is_refused(window: MainWindow) -> None:
    panel = show(window)
    for p0, p1, shift, why in ((64, 32, 1, "empty"), (0, 10, 0, "by 0"), (4, 10, -5, "below 0")):
        panel.set_range(0, p0, p1)
        panel._shift.setValue(shift)
        assert not panel.button(specs.SHIFT).isEnabled()
        assert why in panel.button(specs.SHIFT).toolTip()


def test_a_position_that_cannot_be_read_is_refused(window: MainWindow, qtbot: QtBot) -> None:
    panel = show(window)
    panel.set_range(0, 4, 10)
    for box, spec, others in ((panel._p1, specs.REMOVE, specs.TRY), (panel._pos, specs.TRY, specs.REMOVE)):
        box.selectAll()
        qtbot.keyClicks(box.lineEdit(), "0,7")
        assert not panel.button(spec).isEnabled()
        assert "“0,7” is not a number." in panel.button(spec).toolTip()
        assert panel.button(others).isEnabled()
        box.setValue(10)
        assert panel.button(spec).isEnabled()


def test_nothing_by_hand_while_an_answer_is_written_there(window: MainWindow) -> None:
    append_message(window, message("a", "assistant", "", state="streaming"))
    panel = show(window)
    assert not panel.button(specs.REMOVE).isEnabled()
    assert not panel.button(specs.CLEAR).isEnabled()
    panel.set_range(1, -1, -1)
    assert panel.button(specs.REMOVE).isEnabled(), "the other conversation is at rest"


def test_a_swapped_conversation_can_come_back(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.submit)
    view = cache_view()
    view = replace(view, leases=view.leases[:1], swapped=((TWO, 1_000_000),))
    panel = show(window, view)
    assert "Caches  ·  swapped out" in [panel._target.itemText(i) for i in range(panel._target.count())]
    panel.set_range(-1, -1, -1)
    assert panel.button(specs.SWAP_OUT).text() == "Swap in"
    press(window, specs.SWAP_OUT)
    assert sent == [(ops.Operate(ops.SwapIn(TWO)),)]
    assert not panel.button(specs.REMOVE).isEnabled()


def test_the_target_stays_while_the_cache_changes(window: MainWindow) -> None:
    panel = show(window)
    panel.set_range(1, 3, 9)
    show(window, cache_view(8))
    chosen = panel.chosen
    assert (chosen.target.seq_id, chosen.p0, chosen.p1) == (1, 3, 9)


def test_the_target_is_the_shown_conversation_until_another_is_chosen(window: MainWindow) -> None:
    panel = show(window)

    def shown_target() -> tuple[int, int, int]:
        chosen = panel.chosen
        return chosen.target.seq_id, chosen.p0, chosen.p1

    panel._p0.setValue(30)
    assert shown_target() == (0, 30, -1)
    window.store.show_conversations(CONVERSATIONS, TWO)
    show(window, cache_view(8))
    assert shown_target() == (1, -1, -1), "the positions were of the other one"
    panel._target.setCurrentIndex(0)
    show(window, cache_view(9))
    assert shown_target() == (0, -1, -1)
    window.store.show_conversations(CONVERSATIONS, ONE)
    show(window, cache_view(10))
    window.store.show_conversations(CONVERSATIONS, TWO)
    show(window, cache_view(11))
    assert shown_target() == (1, -1, -1)


def test_a_refused_token_says_x_and_y(window: MainWindow) -> None:
    panel = show(window)
    window.store.apply(ops.BatchRefused(0, 179, 300, "llama.cpp takes a token only at position 180."))
    assert "X = 179, Y = 300" in panel._remark.text()
    assert "only at position 180" in window.activity.text


def effect(verdict: Verdict = Verdict.EXACT) -> ops.Effect:
    before, after = cache_view(7).snapshot, cache_view(8, runs=((0, 32, (0, 1), 0, 1), (32, 64, (0,), 32, 3))).snapshot
    logits = LogitsComparison(1, 0.02, 1.5, 0, 3, 4, verdict)
    return ops.Effect(compare_snapshots(before, after, {0: logits}), bytes_moved=8_000_000, audited=True)


def done(undoable: bool = True) -> protocol.OperationDone:
    call = "llama_memory_seq_rm(mem, 0, 64, -1)"
    return protocol.OperationDone(8, 1.0, "seq_rm", call, 2.0, ONE, effect=effect(Verdict.CHANGED), undoable=undoable)


@pytest.mark.parametrize(
    ("verdict", "token_after", "said"),
    [
        (Verdict.EXACT, -1, "exactly the same."),
        (Verdict.ROUNDING, -1, "are the same up to rounding (KL 0.02 nats, logits differ by at most 1.5)."),
        (
            Verdict.ROUNDING,
            4,
            "rounding (KL 0.02 nats, logits differ by at most 1.5): “ay” and “oh” are equally likely.",
        ),
        (Verdict.CHANGED, 4, "are changed (KL 0.02 nats, logits differ by at most 1.5); the likeliest was “ay” and is"),
        (Verdict.STRONGLY_CHANGED, -1, "are changed strongly (KL 0.02"),
    ],
)
def test_what_became_of_the_next_token(verdict: Verdict, token_after: int, said: str) -> None:
    rows = (-1, -1, -1) if token_after < 0 else (0, 3, token_after)
    sentence = logits_sentence(LogitsComparison(1, 0.02, 1.5, *rows, verdict), "Tides", {3: " ay", 4: " oh"})
    assert said in sentence
    assert "approximate" not in sentence


def test_what_did_that_do(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.submit)
    show(window)
    for _ in range(16):
        window.store.apply(protocol.SpeedSample(1.0, "decode", 1, 10.0, 256))
    window.store.apply(done())
    card = window.inspector.cache.instruments.effect
    assert card.isVisible()
    assert "Cells in use 220 → 64" in effect_text(card)
    assert "Read per new token 256 → 256" in effect_text(card)
    assert "116 freed" in effect_text(card)
    assert "| changed: token 3 → token 4 | 0.02" in effect_text(card)
    assert "4.0 GB/s" in effect_text(card)
    assert "map agrees" in effect_text(card)
    assert "tok/s" not in effect_text(card), "not measured yet"
    for _ in range(16):
        window.store.apply(protocol.SpeedSample(2.0, "decode", 1, 8.0, 256))
    assert "tok/s 100 → 125" in effect_text(card)
    window.store.apply(replace(cache_view(8), undoable=(8,)))
    window.store.count()
    panel = window.inspector.cache.instruments.operations
    panel.set_open(True)
    assert card.undo_button.isVisible()
    assert not panel.button(specs.UNDO).isVisible(), "one is enough"
    card.undo_button.click()
    assert sent == [(ops.Operate(ops.Undo(8)),)]
    window.store.apply(cache_view(9))
    window.store.count()
    assert not card.undo_button.isVisible(), "its blob is gone"
    assert panel.button(specs.UNDO).isVisible()


def test_the_next_token_is_written_as_text(window: MainWindow) -> None:
    show(window)
    window.store.apply(protocol.TokenTexts({3: " ay", 4: " oh"}))
    window.store.apply(done())
    assert "changed: “␣ay” → “␣oh”" in effect_text(window.inspector.cache.instruments.effect)


def test_compaction_is_previewed_and_done(window: MainWindow, qtbot: QtBot, record: Record) -> None:
    sent = record(window.commands.submit)
    show(window)
    press(window, specs.COMPACT)
    card = window.inspector.cache.instruments.compaction
    assert card.isVisible()
    assert sent == [(ops.PreviewCompaction(Layout.KEEP_ORDER),)]
    assert not card.compact_button.isEnabled(), "not before one has seen what it does"
    plan = plan_compaction(cache_view().snapshot, Layout.KEEP_ORDER)
    window.store.apply(ops.CompactionPreview(plan, 1.08, "Decoding should be 8 % faster."))
    assert "High water (H): 240 → 220" in card._figures.text()
    assert "+8.0 %" in card._figures.text()
    qtbot.keyClick(card.cancel_button, Qt.Key.Key_Escape)
    assert (card.isHidden(), sent[1:]) == (True, [])
    assert window.chat.composer.edit.hasFocus()
    press(window, specs.COMPACT)
    card.choose(Layout.HOT_FIRST)
    assert sent[2:] == [(ops.PreviewCompaction(Layout.HOT_FIRST, (0, 1)),)]
    window.store.apply(ops.CompactionPreview(replace(plan, layout=Layout.HOT_FIRST), 1.08, ""))
    card.compact_button.click()
    assert sent[3:] == [(ops.Operate(ops.Compact(Layout.HOT_FIRST, (0, 1))),)]
    assert card.isHidden()
    window.store.apply(replace(done(), name="compact"))
    assert window.inspector.cache.instruments.effect.isVisible()


@pytest.mark.usefixtures("fresh")
def test_a_compaction_that_changes_nothing_is_not_offered(window: MainWindow) -> None:
    show(window)
    window.action_set.run("cache.compact")
    card = window.inspector.cache.instruments.compaction
    tight = cache_view(9, runs=((0, 100, (0,), 0, 1),)).snapshot
    plan = plan_compaction(tight, Layout.KEEP_ORDER)
    plan = replace(plan, bytes_to_move=23_000_000)
    window.store.apply(ops.CompactionPreview(plan, 1.0, "Every cell is where it would go: nothing is gained."))
    assert not card.compact_button.isEnabled()
    assert "nothing is gained" in card._remark.text()
    assert "MB" not in card._figures.text(), "nothing would be moved"


def test_long_work_has_progress_and_cancel(window: MainWindow, record: Record) -> None:
    cancelled = record(window.commands.cancel_work)
    window.store.apply(Working("Verifying", 32, 320))
    assert window.activity.text == "Verifying: 32 of 320 tokens"
    window.activity._work.cancel.click()
    assert cancelled == [()]
    window.store.apply(Working("Verifying", 0, 0))
    assert window.activity.text == ""


def test_a_verification_ends_in_a_sentence(window: MainWindow) -> None:
    window.store.apply(Working("Verifying", 320, 320))
    window.store.apply(protocol.Verified(ONE, 320, LogitsComparison(1, 0, 0, -1, -1, -1, Verdict.EXACT), 812.0))
    window.store.apply(Working("Verifying", 0, 0))
    assert "The next token of “A village far away” is exact" in window.activity.text
    assert "320 tokens" in window.activity.text
    assert "removed" not in window.activity.text


@pytest.mark.parametrize(
    ("ghost", "said"), [(0.25, "25% of what was removed still counts"), (None, "What was removed makes no difference")]
)
def test_a_verification_says_what_is_left_of_what_was_removed(
    window: MainWindow, ghost: float | None, said: str
) -> None:
    alike = LogitsComparison(1, 0.001, 0.1, -1, -1, -1, Verdict.ROUNDING)
    window.store.apply(protocol.Verified(ONE, 320, alike, 812.0, ghost, without_effect=ghost is None))
    assert said in window.activity.text


def cells_menu(window: MainWindow, name: str) -> dict[str, QAction]:
    """What can be done with the cells of a message; all of that is in one submenu."""
    menu = window.chat.view.menu(MessageId(name))
    (cache,) = [action.menu() for action in menu.actions() if action.text() == "Cache"]
    assert isinstance(cache, QMenu)
    assert not any("ells" in action.text() for action in menu.actions())
    return {action.text(): action for action in cache.actions()}


def fork(window: MainWindow, name: str) -> None:
    menu = window.chat.view.menu(MessageId(name))
    next(action for action in menu.actions() if action.text() == "Fork the chat after it").trigger()


@pytest.mark.usefixtures("fresh")
def test_the_menu_of_a_message_knows_its_cells(window: MainWindow, record: Record) -> None:
    forks, sent = record(window.commands.fork), record(window.commands.submit)
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "Hi")))
    assert not cells_menu(window, "q")["Cells of this message"].isEnabled(), "nobody has said where it lies"
    fork(window, "q")
    spans = (
        protocol.MessageSpan(MessageId("q"), 0, 12, 3, (5,)),
        protocol.MessageSpan(MessageId("a"), 12, 30, 15, (2,)),
    )
    window.store.apply(protocol.MessageSpans(ONE, 0, spans))
    window.store.apply(cache_view())
    found = cells_menu(window, "q")
    fork(window, "q")
    assert forks == [(ONE, "q", -1, -1), (ONE, "q", -1, 12)]
    found["Remove its cells"].trigger()
    found["Remove its cells and all after it"].trigger()
    assert sent == [(ops.Operate(ops.RemoveRange(0, 0, 12)),), (ops.Operate(ops.RemoveRange(0, 0, -1)),)]
    found["Choose its cells for an operation"].trigger()
    panel = window.inspector.cache.instruments.operations
    assert panel.is_open
    assert panel._call.text() == "llama_memory_seq_rm(mem, 0, 0, 12)"


def test_what_is_done_to_a_chat_is_done_where_it_goes_on_and_not_to_its_inactive_branch(
    window: MainWindow, record: Record
) -> None:
    sent = record(window.commands.submit)
    leases = (protocol.Lease(ONE, 1), protocol.Lease(ONE, 0, inactive=True))
    window.store.apply(replace(cache_view(), leases=leases, swapped=((TWO, 99),)))
    ask(window.kit, specs.REMOVE, ONE)
    assert sent == [(ops.Operate(ops.RemoveRange(1, -1, -1)),)]
    targets = [(target.seq_id, target.conversation, target.swapped_bytes) for target in window.store.targets()]
    assert targets == [(0, ONE, 0), (1, ONE, 0), (-1, TWO, 99)]


def test_the_menu_of_a_conversation(window: MainWindow, record: Record) -> None:
    sent = record(window.commands.submit)
    menu = QMenu(window)
    fill_menu(menu, window.kit, TWO)
    assert not any(action.isEnabled() for action in menu.actions()), "nothing is known of the cache yet"
    window.store.apply(cache_view())
    menu = QMenu(window)
    fill_menu(menu, window.kit, TWO)
    found = {action.text(): action for action in menu.actions()}
    found["Keep only its cells"].trigger()
    found["Verify its cells"].trigger()
    assert sent == [(ops.Operate(ops.KeepOnly(1)),), (protocol.VerifyConversation(TWO),)]
    assert "llama_memory_seq_keep(mem, 1)" in found["Keep only its cells"].toolTip()


def test_an_evicted_branch_is_told_in_the_activity_strip(window: MainWindow) -> None:
    note = "was removed from the cache although cells are free: all 8 sequences (n_seq_max) are in use."
    window.store.apply(protocol.OperationDone(9, 1.0, "seq_rm", "", 0.1, ONE, "its seq_id is needed", note=note))
    assert window.activity.text == f"A branch of “{CONVERSATIONS[0].title}” {note}"
    window.store.apply(
        protocol.OperationDone(10, 1.0, "seq_rm", "", 0.1, ONE, "its seq_id is needed", emptied=True, note=note)
    )
    assert window.activity.text == f"“{CONVERSATIONS[0].title}” {note}"


def test_an_audit_says_what_it_found_where_one_looks(window: MainWindow) -> None:
    window.store.apply(cache_view())
    window.store.count()
    found = "all 220 used cells agree with llama.cpp's own state in position and sequences (12 ms)."
    window.store.apply(protocol.Audited("verified", "14:02:31", found))
    assert window.activity.text == f"Audit at 14:02:31: {found}"
    assert not stays(window.activity), "good news goes by itself, into the status line"
    assert seen(window.status).endswith("map verified at operation 7, audited 14:02:31")
    window.store.apply(protocol.Audited("mismatch", "14:03:00", "the map and llama.cpp's own state disagree: cell 3."))
    assert "disagree: cell 3" in window.activity.text
    assert stays(window.activity), "a failure stays"
    assert "audited" not in seen(window.status)
