"""What would leave with the chosen positions, under the form of the operations."""

import pytest

from kvdesk.protocol.attention import Attend, AttentionPreview, PreviewAttention
from kvdesk.protocol.cache import ContextReady, MessageSpan, MessageSpans
from kvdesk.protocol.chat import MessageRetention
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import Capability
from kvdesk.ui.operations.leaving_row import LeavingRow
from kvdesk.ui.shell.main_window import MainWindow
from tests.ui.attended import attended, price
from tests.ui.chat.test_overflow_choice import MESSAGES
from tests.ui.recording import Record
from tests.ui.samples import CONTEXT, ONE
from tests.ui.test_operations import show


@pytest.fixture
def row(window: MainWindow) -> LeavingRow:
    rows = (
        Capability("attention", "yes", ""),
        Capability("seq_rm", "yes", ""),
        Capability("partial seq_rm", "yes", ""),
    )
    window.store.apply(ContextReady(CONTEXT, rebuilt=False, possible=rows))
    panel = show(window)
    panel.set_range(0, 4, 10)
    return panel.leaving


def test_the_price_comes_first_and_then_the_share(window: MainWindow, row: LeavingRow, record: Record) -> None:
    sent = record(window.commands.submit)
    assert row.text.startswith("Cells: 6")
    row.measure.click()
    ((asked,),) = sent
    assert isinstance(asked, PreviewAttention)
    assert row.measure.text() == "Attention"
    window.store.apply(price(asked.queries))
    assert "A second context of 24.0 MB" in row.text
    assert row.measure.text() == "Compute"
    assert "24.0 MB" in row.measure.accessibleDescription()
    row.measure.click()
    command = sent[-1][0]
    assert isinstance(command, Attend)
    assert command.queries == asked.queries
    assert "Computing" in row.text
    window.store.apply(attended(asked.queries, command.number - 1))
    assert "Computing" in row.text, "an answer to another question"
    window.store.apply(attended(asked.queries, command.number))
    assert "of their attention" in row.text
    assert window.store.attention.shown is None, "the Attention tab has asked for nothing"
    window.inspector.cache.instruments.operations.set_range(0, 4, 12)
    assert "attention" not in row.text, "it was that of other positions"


def test_what_cannot_be_measured_is_said(window: MainWindow, row: LeavingRow, record: Record) -> None:
    sent = record(window.commands.submit)
    row.measure.click()
    ((asked,),) = sent
    assert isinstance(asked, PreviewAttention)
    queries = asked.queries
    window.store.apply(AttentionPreview(queries, refused="It does not fit."))
    assert "It does not fit." in row.text
    assert row.measure.text() == "Attention"
    window.store.apply(price(queries))
    row.measure.click()
    command = sent[-1][0]
    assert isinstance(command, Attend)
    window.store.apply(CommandFailed(command, "It failed."))
    assert "It failed." in row.text


def test_nothing_looks_at_what_is_last(window: MainWindow, row: LeavingRow) -> None:
    window.inspector.cache.instruments.operations.set_range(0, 4, -1)
    assert not row.measure.isEnabled()
    assert "No token is behind" in row.measure.toolTip()


def test_a_model_without_attention_says_so(window: MainWindow, row: LeavingRow) -> None:
    rows = (Capability("attention", "no", "It is recurrent."),)
    window.store.apply(ContextReady(CONTEXT, rebuilt=False, possible=rows))
    show(window)
    assert not row.measure.isEnabled()
    assert row.measure.toolTip() == "It is recurrent."


def test_what_leaves_next_fills_the_form(window: MainWindow, row: LeavingRow) -> None:
    assert not row.next.isEnabled()
    spans = tuple(MessageSpan(m.id, 10 * i, 10 * i + 10, 10 * i + 2, ()) for i, m in enumerate(MESSAGES))
    window.store.apply(MessageSpans(ONE, 0, spans))
    window.store.apply(
        MessageRetention(ONE, tuple((m.id, "next" if i == 1 else "in the cache") for i, m in enumerate(MESSAGES)))
    )
    panel = show(window)
    assert row.next.isEnabled()
    row.next.click()
    assert (panel.chosen.p0, panel.chosen.p1) == (10, 20)
