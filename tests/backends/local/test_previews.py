"""What is said before something is done: a draft against its room, compaction, a context."""

import pytest

from kvdesk.cache.compaction import Layout
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Attachment, Message, as_read, attachment_as_read, new_message_id
from kvdesk.protocol.cache import ContextPreview, Forget, PreviewContext, RebuildContext
from kvdesk.protocol.chat import ContextUse, MeasureContext, Overflowed, PreviewTurn, TurnEnded, TurnPreview
from kvdesk.protocol.operations import CompactionPreview, PreviewCompaction
from kvdesk.settings import Overflow, Sampling
from tests.backends.local.conftest import NARROW
from tests.backends.local.test_turns import of

ONE = Sampling(temperature=0.0, max_tokens=1)
SHORT = Sampling(temperature=0.0, max_tokens=16)
SEA = "The sea is wide and the boats go out in the morning. "
N_CTX = NARROW.n_ctx


def use(headless: HeadlessEngine, chat: HeadlessChat) -> ContextUse:
    turn = PreviewTurn(chat.id, tuple(chat.messages), chat.overflow, evicted=chat.evicted)
    return of(headless.do(MeasureContext(turn)), ContextUse)[0]


def preview(headless: HeadlessEngine, chat: HeadlessChat, text: str, max_tokens: int = 1024) -> TurnPreview:
    message = Message(new_message_id(), chat.id, None, "user", text)
    asked = PreviewTurn(
        chat.id,
        (*chat.messages, message),
        chat.overflow,
        evicted=chat.evicted,
        max_tokens=max_tokens,
        n_typed=len(text),
    )
    return of(headless.do(asked), TurnPreview)[0]


# --- how full a context is --------------------------------------------------------------------------------------------


def test_a_conversation_that_does_not_fit_is_more_than_full_and_not_empty(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    with pytest.raises(UserError, match="needs") as refused:
        chat.answer(SEA * 40, SHORT)
    chat.add_question((SEA * 40).rstrip())
    found = use(narrow, chat)
    assert found.n_ctx == N_CTX
    assert f"needs {found.n_tokens:,} tokens" in str(refused.value)
    assert (found.n_tokens > N_CTX, found.n_cached) == (True, 0)


def test_what_is_cached_is_told_apart_from_what_the_conversation_takes(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    assert use(narrow, chat) == ContextUse(chat.id, 0, 0, N_CTX, n_answer=N_CTX // 8)
    stats = chat.answer(SEA, SHORT).stats
    whole = stats.prompt_tokens + stats.generated_tokens
    full = use(narrow, chat)
    assert (full.n_tokens, full.n_cached) == (whole, whole - 1), "of the token sampled last there is no K and V yet"
    narrow.do(Forget(chat.id))
    assert use(narrow, chat) == ContextUse(chat.id, whole, 0, N_CTX, n_answer=N_CTX // 8), (
        "forgetting cells takes nothing from a conversation"
    )


def test_each_branch_is_as_full_as_it_is(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    chat.answer("Hello", SHORT)
    short = list(chat.messages)
    chat.messages = []
    chat.answer(SEA * 4, SHORT)
    long = use(narrow, chat)
    chat.messages = short
    again = use(narrow, chat)
    assert long.n_tokens > again.n_tokens + 30
    assert again.n_cached >= again.n_tokens - 1, "its branch is inactive, and still in the cache"


def test_what_was_evicted_takes_no_room(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow, overflow=Overflow.SLIDE)
    while not chat.evicted.messages:
        chat.answer(SEA * 3, SHORT)
    assert use(narrow, chat).n_tokens < N_CTX
    every = MeasureContext(PreviewTurn(chat.id, tuple(chat.messages)))  # with "stop" nothing leaves
    assert of(narrow.do(every), ContextUse)[0].n_tokens > N_CTX


# --- a draft against its room -----------------------------------------------------------------------------------------


def test_a_draft_is_counted_against_the_room_there_is(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    chat.answer("Hello", SHORT)
    found = preview(narrow, chat, SEA)
    more = preview(narrow, chat, SEA * 2)
    assert 8 < found.n_draft < more.n_draft
    assert found.n_conversation == more.n_conversation, "the text of the draft is no part of it"
    assert found.n_conversation + found.n_draft == found.n_reused + found.n_prefill
    assert (found.n_ctx, found.n_answer) == (N_CTX, N_CTX // 8)
    assert found.room == N_CTX - found.n_conversation - N_CTX // 8
    assert (found.text, found.refused, found.n_evicted_messages, found.n_fitting) == (SEA, "", 0, len(SEA.rstrip()))
    assert preview(narrow, chat, SEA, max_tokens=4).n_answer == 4


def test_too_long_is_said_before_it_is_sent_and_how_much_of_it_fits(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    chat.answer("Hello", SHORT)
    text = SEA * 40
    found = preview(narrow, chat, text)
    assert f"needs {found.n_conversation + found.n_draft:,} tokens" in found.refused
    assert found.n_draft > found.room
    cut = preview(narrow, chat, text[: found.n_fitting])
    assert cut.refused == ""
    assert found.room - 4 <= cut.n_draft <= found.room + 1, "what is cut off is as little as can be"


def test_a_question_that_was_never_answered_is_no_part_of_the_draft(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    text = SEA * 40
    joined = Message(new_message_id(), chat.id, None, "user", f"{SEA}\n\n{text}")
    (found,) = of(narrow.do(PreviewTurn(chat.id, (joined,), n_typed=len(text))), TurnPreview)
    (alone,) = of(narrow.do(PreviewTurn(chat.id, (joined,))), TurnPreview)
    assert alone.n_draft - found.n_draft >= 10
    assert 0 < found.n_fitting < len(text) - len(SEA)


def attached(headless: HeadlessEngine, chat: HeadlessChat, text: str, *attachments: Attachment) -> TurnPreview:
    question = Message(new_message_id(), chat.id, None, "user", text, attachments=attachments)
    lengths = tuple(len(attachment_as_read(attachment)) for attachment in attachments)
    asked = PreviewTurn(chat.id, (*chat.messages, as_read(question)), n_typed=len(text), n_attached=lengths)
    return of(headless.do(asked), TurnPreview)[0]


def test_what_is_attached_is_counted_one_by_one(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow, system="Be brief.")
    short, long = Attachment("a.txt", "text", SEA), Attachment("b.txt", "text", SEA * 2)
    found = attached(narrow, chat, "What is it?", short, long)
    assert (len(found.n_attached), found.attached_chars) == (2, (len(SEA) + 17, 2 * len(SEA) + 17))
    assert 0 < found.n_attached[0] < found.n_attached[1] < found.n_draft
    assert found.n_draft - sum(found.n_attached) == preview(narrow, chat, "What is it?").n_draft
    assert found.text == "What is it?"
    assert 0 < found.n_system < found.n_conversation


def test_the_part_of_an_attachment_that_fits_fits(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    chat.answer("Hello", SHORT)
    text = SEA * 40
    found = attached(narrow, chat, "What is it?", Attachment("a.txt", "text", text))
    assert found.refused
    assert found.n_fitting == 0
    n_text = found.n_attached_fitting - len("a.txt:\n```\n")
    assert 0 < n_text < len(text)
    cut = attached(narrow, chat, "What is it?", Attachment("a.txt", "text", text[:n_text]))
    assert cut.refused == ""
    assert found.room - 20 <= cut.n_draft <= found.room


def test_of_what_is_far_too_long_the_part_that_fits_is_known_too(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    text = SEA * 20_000
    found = attached(narrow, chat, "What is it?", Attachment("a.txt", "text", text))
    assert found.refused.startswith("Too long: 1,060,0")
    assert (found.n_draft, found.n_fitting) == (0, 0)
    n_text = found.n_attached_fitting - len("a.txt:\n```\n")
    cut = attached(narrow, chat, "What is it?", Attachment("a.txt", "text", text[:n_text]))
    assert cut.refused == ""
    assert cut.n_draft > found.room / 2
    typed = preview(narrow, chat, text)
    assert (typed.n_draft, preview(narrow, chat, text[: typed.n_fitting]).refused) == (0, "")


def test_what_will_be_evicted_is_said_before(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow, overflow=Overflow.SLIDE)
    while not (found := preview(narrow, chat, SEA * 4)).n_evicted_messages:
        chat.answer(SEA, SHORT)
    chat.answer(SEA * 4, ONE)
    (told,) = of(narrow.events, Overflowed)
    assert len(told.evicted) == found.n_evicted_messages
    assert f"({found.n_evicted_tokens:,} tokens)" in told.sentence


def test_a_turn_that_does_not_fit_says_so_as_an_overflow(narrow: HeadlessEngine) -> None:
    chat = HeadlessChat(narrow)
    with pytest.raises(UserError):
        chat.answer(SEA * 40, SHORT)
    (told,) = of(narrow.events, Overflowed)
    (ended,) = of(narrow.events, TurnEnded)
    assert (told.policy, told.answer, told.sentence) == (Overflow.STOP, ended.answer, ended.note)


# --- compaction, and another context ----------------------------------------------------------------------------------


def test_a_compaction_that_moves_no_cell_moves_no_bytes(narrow: HeadlessEngine) -> None:
    HeadlessChat(narrow).answer(SEA, SHORT)
    (found,) = of(narrow.do(PreviewCompaction(Layout.KEEP_ORDER)), CompactionPreview)
    assert found.plan.changes_nothing
    assert (found.plan.bytes_to_move, found.gain) == (0, 1.0)


def test_no_decode_speed_is_foretold_from_prompts_alone(narrow: HeadlessEngine) -> None:
    session = narrow.engine.session
    session.loaded.costs.clear()
    narrow.do(RebuildContext(session.runtime.context.settings))
    chat = HeadlessChat(narrow)
    chat.answer(SEA * 8, ONE)  # its only token comes with the prompt: none was decoded by itself

    def tok_s() -> float | None:
        return of(narrow.do(PreviewContext(session.runtime.context.settings)), ContextPreview)[0].tok_s

    assert tok_s() is None
    chat.answer("And?", SHORT)
    known = tok_s()
    assert known is not None
    assert known > 5
