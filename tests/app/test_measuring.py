"""When it is asked how full a context is, and with which messages."""

from pytestqt.qtbot import QtBot

from kvdesk.message import NO_STATS
from kvdesk.protocol.cache import ContextReady, OperationDone
from kvdesk.protocol.chat import Generate, MeasureContext, TurnEnded
from kvdesk.settings import Overflow
from tests.app.conftest import Rig
from tests.app.test_controller import CONTEXT, answer, say


def measured(rig: Rig) -> list[list[str]]:
    """The texts that were asked about, question by question."""
    return [[m.text for m in c.turn.messages] for c in rig.worker.commands if isinstance(c, MeasureContext)]


def asked_again(rig: Rig, qtbot: QtBot, n: int) -> list[str]:
    qtbot.waitUntil(lambda: len(measured(rig)) > n)
    return measured(rig)[-1]


def test_a_branch_that_is_shown_is_measured(rig: Rig, qtbot: QtBot) -> None:
    first = say(rig, "A joke")
    answer(rig, qtbot, first, "A long joke")
    assert asked_again(rig, qtbot, 1) == ["A joke", "A long joke"]
    rig.window.commands.conversations.turns.edit(first.conversation, first.messages[0].id, "Hi")
    answer(rig, qtbot, rig.worker.asked[-1], "Hello")
    assert asked_again(rig, qtbot, 2) == ["Hi", "Hello"]
    rig.window.commands.conversations.turns.show_branch(first.conversation, first.messages[0].id)
    assert measured(rig)[-1] == ["A joke", "A long joke"]


def test_nothing_is_asked_while_the_turn_itself_tells(rig: Rig) -> None:
    n = len(measured(rig))
    say(rig, "A joke")
    rig.controller.chats.measure()
    assert len(measured(rig)) == n


def test_a_question_that_did_not_fit_counts(rig: Rig, qtbot: QtBot) -> None:
    asked: Generate = say(rig, "Far too long")
    n = len(measured(rig))
    rig.worker.give(TurnEnded(asked.conversation, asked.answer, "failed", NO_STATS, "It needs 1,082 tokens."))
    assert asked_again(rig, qtbot, n) == ["Far too long"]


def test_what_changes_the_context_or_its_cells_has_it_measured_anew(rig: Rig, qtbot: QtBot) -> None:
    asked = say(rig, "A joke")
    answer(rig, qtbot, asked, "A long joke")
    n = len(measured(rig))
    rig.worker.give(ContextReady(CONTEXT, rebuilt=True))
    asked_again(rig, qtbot, n)
    rig.worker.give(OperationDone(4, 1.0, "seq_rm", "", 0.1, asked.conversation, "forgotten", emptied=True))
    asked_again(rig, qtbot, n + 1)
    rig.window.commands.conversations.choose_overflow(asked.conversation, Overflow.SLIDE)
    asked_again(rig, qtbot, n + 2)
    rig.worker.give(OperationDone(5, 2.0, "prefill", "", 0.1, asked.conversation))
    rig.worker.give(OperationDone(6, 2.0, "seq_rm", "", 0.1, asked.conversation, "forgotten", emptied=True))
    asked_again(rig, qtbot, n + 3)
    assert len(measured(rig)) == n + 4, "a decode by itself is no reason"
