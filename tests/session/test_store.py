"""What an event changes in the state of the window, and that nothing else changes it."""

import ast
import sys
from pathlib import Path

import pytest

import kvdesk
from kvdesk.cache.compare import compare_snapshots
from kvdesk.conversations.changes import AnswerEnded, BranchChanged, MessagesAdded, MessagesDeleted
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.protocol import chat
from kvdesk.protocol.cache import ContextReady, MessageSpan, MessageSpans, OperationDone, RecordingTaken, SpeedSample
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.operations import Capability, Effect
from kvdesk.session import Changed, Store
from kvdesk.session.changed import Notice, Problem, Update
from kvdesk.session.state import State
from kvdesk.session.store import MAX_EFFECTS
from kvdesk.settings import Sampling
from kvdesk.values import replace
from tests.cache.journals import FACTS, Player
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE, STATS, TWO, cache_view, message

ANSWER = MessageId("a")


def with_context() -> Store:
    state = Store()
    state.show_conversations(CONVERSATIONS, ONE)
    state.apply(chat.ModelLoaded(MODEL))
    state.apply(ContextReady(CONTEXT, rebuilt=False, possible=(Capability("swap", "yes", ""),)))
    return state


def operation(number: int, *, emptied: bool = False) -> OperationDone:
    snapshot = cache_view().snapshot
    effect = Effect(compare_snapshots(snapshot, snapshot))
    return OperationDone(number, 0.0, "seq_rm", "", 1.0, ONE, effect=effect, emptied=emptied)


def test_chats_of_another_kvdesk_have_colours_too() -> None:
    state = with_context()
    view = cache_view()
    there = tuple(replace(lease, conversation=ConversationId(f"there {lease.seq_id}")) for lease in view.leases)
    state.apply(replace(view, leases=there))
    assert state.looks(state.leases) == ({}, {}), "cells of a chat that is deleted here are nobody's"
    far = replace(view.snapshot, verification=replace(view.snapshot.verification, by="office"))
    state.apply(replace(view, snapshot=far, leases=there))
    colours, titles = state.looks(state.leases)
    assert colours.keys() == titles.keys() == {lease.seq_id for lease in there}
    assert len(set(colours.values())) == len(there) > 1


def test_a_sequence_that_came_with_an_operation_is_its_chats() -> None:
    state = with_context()
    assert state.title_after(operation(1), 0) == CONVERSATIONS[0].title, "swapped in: nothing is leased yet"
    state.apply(cache_view())
    assert state.title_after(operation(8), 0) == CONVERSATIONS[0].title
    assert state.title_after(operation(8), 3) == "sequence 3", "a fork is nobody's"


def test_sequences_that_another_context_took_over_keep_their_titles_before_its_first_view() -> None:
    """As after a conversion of K and V: the operation is reported before anyone has a lease there."""
    state = with_context()
    player = Player(FACTS[0], unified=True, swa_full=True, n_seq_max=4, seed=3)
    player.play(4)
    state.apply(cache_view())
    titles = [state.title_after(operation(8), seq) for seq in state.leases]
    state.apply(RecordingTaken(player.journal.recording(), is_over=True))
    state.apply(ContextReady(CONTEXT, rebuilt=True))
    assert [state.title_after(operation(1), lease.seq_id) for lease in cache_view().leases] == titles
    assert CONVERSATIONS[0].title in titles


def test_the_use_of_a_context_follows_the_answer() -> None:
    state = with_context()
    assert state.apply(chat.TextDelta(ONE, ANSWER, "a", (1,))) is Changed.NOTHING, "nothing is known of it yet"
    assert state.apply(chat.ContextUse(ONE, 50, 0, 1024)) is Changed.USE
    assert state.apply(chat.TurnStarted(ONE, ANSWER, 0, 100, 0)) == Changed.RUNNING | Changed.USE
    assert state.apply(chat.ContextUse(ONE, 50, 0, 1024)) is Changed.NOTHING, "it counts what was before the answer"
    assert state.apply(chat.TextDelta(ONE, ANSWER, "a", (1, 2))) is Changed.GROWTH
    assert state.use[ONE].n_tokens == 102
    spans = MessageSpans(ONE, 0, (MessageSpan(ANSWER, 0, 90, 0, ()),))
    assert state.apply(spans) == Changed.SPANS | Changed.USE
    assert state.use[ONE].n_tokens == 90


def test_of_several_answers_only_the_shown_one_counts() -> None:
    state = with_context()
    answers = [MessageId(name) for name in ("first", "second", "third")]
    state.show_conversations([replace(one, leaf=answers[2]) for one in CONVERSATIONS], ONE)
    for seq, answer in enumerate(answers):
        state.apply(chat.TurnStarted(ONE, answer, seq, 100, 0))
    for n in range(1, 11):
        for answer in answers:
            state.apply(chat.TextDelta(ONE, answer, "a", (1,)))
        assert state.use[ONE].n_tokens == 100 + n
    state.apply(MessageSpans(ONE, 0, (MessageSpan(answers[0], 0, 110, 0, ()),)))
    state.apply(chat.TurnEnded(ONE, answers[0], "complete", STATS))
    assert state.apply(chat.TextDelta(ONE, answers[1], "a", (1,))) is Changed.NOTHING
    assert state.use[ONE].n_tokens == 110
    assert state.apply(chat.ContextUse(ONE, 50, 0, 1024)) is Changed.NOTHING, "the shown one is still written"
    shown = MessageSpans(ONE, 2, (MessageSpan(answers[2], 0, 111, 0, ()),))
    assert state.apply(shown) == Changed.SPANS | Changed.USE
    state.apply(chat.TurnEnded(ONE, answers[2], "complete", STATS))
    state.apply(MessageSpans(ONE, 1, (MessageSpan(answers[1], 0, 300, 0, ()),)))
    assert (state.use[ONE].n_tokens, state.spans[ONE]) == (111, shown), "the second goes on elsewhere"
    state.show_conversations([replace(one, leaf=MessageId("before")) for one in CONVERSATIONS], ONE)
    assert state.apply(chat.ContextUse(ONE, 70, 0, 1024)) is Changed.USE, "another branch is shown while it goes on"
    assert state.use[ONE].n_tokens == 70


def test_a_server_that_counts_each_answer_counts_the_shown_one() -> None:
    state = Store()
    first, shown = MessageId("first"), MessageId("shown")
    state.show_conversations([replace(one, leaf=shown) for one in CONVERSATIONS], ONE)
    for answer, n_tokens in ((shown, 105), (first, 300)):
        state.apply(chat.TurnStarted(ONE, answer))
        state.apply(chat.TurnEnded(ONE, answer, "complete", STATS))
        changed = state.apply(chat.ContextUse(ONE, n_tokens, n_tokens, 4096, last=answer))
        assert changed == (Changed.USE if answer == shown else Changed.NOTHING)
    assert state.use[ONE].n_tokens == 105


def test_cells_are_known_from_turns_until_a_view_comes() -> None:
    state = with_context()
    state.apply(chat.TurnStarted(ONE, ANSWER, 0, 100, 0))
    assert state.apply(chat.TurnEnded(ONE, ANSWER, "complete", STATS)) == Changed.RUNNING | Changed.CELLS
    assert state.cells == {ONE: STATS.cells_used}
    assert state.apply(operation(3, emptied=True)) == Changed.EFFECTS | Changed.CELLS
    assert state.cells == {}
    state.apply(cache_view())
    state.count()
    assert set(state.cells) == {ONE, TWO}
    assert state.apply(chat.TurnEnded(ONE, ANSWER, "complete", STATS)) is Changed.RUNNING, "the next view counts them"


def test_another_context_knows_nothing_of_the_one_before() -> None:
    state = with_context()
    state.apply(cache_view())
    state.apply(chat.MessageRetention(ONE, ((ANSWER, "evicted"),)))
    state.apply(operation(3))
    changed = state.apply(chat.EngineRestarted("", ""))
    assert changed & Changed.CONTEXT
    assert (state.context, state.view, state.cells) == (None, None, {})
    assert state.history.effects, "what was done can be read until there is another context"
    state.apply(ContextReady(CONTEXT, rebuilt=True))
    assert (state.history.effects, state.leases, state.retention, state.possible) == ({}, {}, {}, {})


def test_a_conversation_is_answered_until_the_last_of_its_answers_has_ended() -> None:
    state = with_context()
    first, second, third = (message(name, "assistant", "", "streaming") for name in ("a", "b", "c"))
    for answer in (first, second, third):
        assert state.apply(MessagesAdded((answer,))) is Changed.RUNNING
    state.apply(chat.TurnStarted(ONE, first.id, 0, 100, 0))
    state.apply(chat.TurnEnded(ONE, first.id, "complete", STATS))
    assert state.running == {ONE}, "two are still being written"
    state.apply(CommandFailed(chat.Generate(ONE, second.id, (), Sampling()), "No room."))
    assert state.running == {ONE}
    state.apply(BranchChanged(ONE, (message("q", "user", "Joke?"), replace(first, state="complete"))))
    assert state.running == {ONE}, "the branch that is shown is not the one that is being written"
    assert state.apply(AnswerEnded(replace(third, state="stopped"))) is Changed.RUNNING
    assert state.running == frozenset()


def test_a_dead_engine_answers_nobody() -> None:
    state = with_context()
    state.apply(chat.TurnStarted(ONE, ANSWER, 0, 100, 0))
    assert state.apply(chat.EngineDied("", "")) & Changed.DEAD
    assert (state.dead, state.running, state.model) == (True, frozenset(), None)


def test_the_oldest_effects_are_dropped_first() -> None:
    state = with_context()
    for number in range(MAX_EFFECTS + 2):
        state.apply(operation(number))
    assert (len(state.history.effects), min(state.history.effects)) == (MAX_EFFECTS, 2)


def test_only_the_state_changes_itself() -> None:
    """No assignment to a field of a store, to an item of one, or to a field of a field, in the window's modules."""
    names = set(vars(State()))
    found = []
    for path in sorted(Path(kvdesk.__file__).parent.rglob("*.py")):
        if path.parent.name in ("ui", "app", "dev") or "/ui/" in path.as_posix():
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else ()
                found += [f"{path.name}:{target.lineno}" for target in targets if _is_of_state(target, names)]
    assert found == []


def _is_of_state(target: ast.expr, names: set[str]) -> bool:
    while isinstance(target, ast.Subscript | ast.Attribute):
        inner = target.value
        if isinstance(target, ast.Attribute) and target.attr in names:
            owner = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
            if owner.lstrip("_") in ("state", "store", "session"):
                return True
        target = inner
    return False


def test_listeners_hear_what_changed_until_they_stop_and_one_that_fails_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = Store()
    reported: list[type] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: reported.append(kind))
    heard: list[tuple[Changed, Update | None]] = []

    def fail(_changed: Changed, _update: Update | None) -> None:
        raise RuntimeError

    state.listen(fail)
    stop = state.listen(lambda changed, update: heard.append((changed, update)))
    state.notify("Saved.", "good")
    state.complain("The disk is full.")
    state.show_conversations(CONVERSATIONS, TWO)
    state.show_conversations(CONVERSATIONS[::-1], TWO)
    stop()
    state.show_conversations(CONVERSATIONS, ONE)
    assert heard == [
        (Changed.NOTHING, Notice("Saved.", "good")),
        (Changed.NOTHING, Problem("The disk is full.")),
        (Changed.CONVERSATIONS | Changed.SELECTED, None),
        (Changed.CONVERSATIONS, None),
    ]
    assert (state.selected, state.shown) == (ONE, CONVERSATIONS[0])
    assert reported == [RuntimeError] * 5


def test_nobody_hears_of_what_no_list_of_chats_shows() -> None:
    state, heard = Store(), list[Changed]()
    state.show_conversations(CONVERSATIONS, TWO)
    state.listen(lambda changed, _update: heard.append(changed))
    first, *others = CONVERSATIONS
    used = replace(first, leaf=ANSWER, updated_ms=1)
    state.show_conversations((used, *others), TWO)
    assert heard == []
    assert state.conversations[ONE].leaf == ANSWER
    for seen in (replace(used, title="B"), replace(used, title="B", draft="Why"), replace(used, draft="Why")):
        state.show_conversations((seen, *others), TWO)
    assert heard == [Changed.CONVERSATIONS] * 3


def test_a_listener_is_called_only_for_those_frequent_events_that_it_needs() -> None:
    state = with_context()
    heard: list[Update | None] = []
    state.listen(lambda _changed, update: heard.append(update), often=())
    state.listen(lambda _changed, update: heard.append(update), Changed.VIEW, often=(SpeedSample,))
    sample, view = SpeedSample(1.0, "decode", 1, 10.0, 256), cache_view()
    for update in (sample, view, chat.TextDelta(ONE, ANSWER, "a", (1,))):
        state.apply(update)
    assert heard == []
    assert (state.view, state.measured.last_decode) == (view, sample)
    state.listen(lambda _changed, update: heard.append(update), often=(SpeedSample,))
    state.apply(sample)
    state.apply(view)
    assert heard == [sample]
    state.notify("Saved.")
    assert heard == [sample, Notice("Saved."), Notice("Saved.")]


def test_deleted_messages_can_come_back_until_they_do() -> None:
    state = with_context()
    left: tuple[Message, ...] = ()
    assert state.apply(MessagesDeleted(ONE, (ANSWER,), left)) is Changed.DELETED
    assert (state.undeletable, state.messages_last) == ({ONE}, True)
    state.show_deleted(["Another chat"])
    assert not state.messages_last, "the chat goes first"
    state.undelete(ONE)
    assert not state.undeletable


def test_a_back_end_without_cells_takes_those_of_the_one_before_away() -> None:
    state = Store()
    state.cells = {ONE: 5}
    state.sequences = {ONE: 1}
    assert Changed.CONTEXT not in state.apply(chat.BackendReady(frozenset(Feature)))
    assert state.cells
    changed = state.apply(chat.BackendReady(frozenset({Feature.CHAT})))
    assert Changed.CONTEXT in changed
    assert not state.cells
    assert not state.sequences
    assert state.view is None
