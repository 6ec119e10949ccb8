"""Another token in the place of one that was written: what stands before it is reused, and the price said is true."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import ConversationId, Message, finish_of
from kvdesk.protocol.chat import Generate, PreviewTurn, TurnEnded, TurnPreview
from kvdesk.protocol.logprobs import alternatives, unpack
from kvdesk.protocol.messages import Event
from kvdesk.settings import CacheType, Sampling
from tests.backends.local.conftest import empty
from tests.backends.local.ids import NAMES, Ids, open_model, prompt_of, prompt_tokens
from tests.backends.local.test_turns import of

N, AT = 24, 7


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("type_kv", "swa_full"), [(CacheType.F16, True), (CacheType.Q8_0, True), (CacheType.F16, False)]
)
def test_one_token_is_read_where_the_memory_can_give_back_a_part(
    name: str, type_kv: CacheType, swa_full: bool, tmp_path: Path, tiny_folder: Path
) -> None:
    with closing(open_model(name, tiny_folder)) as model:
        prompt = prompt_of(3, prompt_tokens(model))
        ids = Ids(model, tmp_path / "one", type_kv, swa_full=swa_full)
        first = ids.answer("one", prompt, N).tokens
        other = [*prompt, *first[:AT], (first[AT] + 1) % 100]
        expected, _ = ids.cache_manager.estimate_reuse(ConversationId("one"), other, moved=True)
        reused, second, _ = ids.answer("one", other, 8)
        can = ids.context.can("partial seq_rm")
        ids.close()
        assert reused == expected, "what is said before is what happens"
        assert (reused == len(other) - 1) == can, "one token is read"
        fresh = Ids(model, tmp_path / "two", type_kv, swa_full=swa_full)
        assert fresh.answer("two", other, 8).tokens == second
        fresh.close()


# --- whole turns ------------------------------------------------------------------------------------------------------


@pytest.fixture
def chat(engine: HeadlessEngine) -> HeadlessChat:
    return HeadlessChat(engine, "You keep a lighthouse.", probabilities=True)


def carried_out(chat: HeadlessChat) -> list[Event]:
    """What the service asked of the engine last."""
    events = chat.headless.do(chat._asked.pop())
    chat.service.take(events)
    return events


def answered(chat: HeadlessChat) -> Message:
    chat.answer("Tell me a long story about a lighthouse and the sea.", Sampling(temperature=0.0, max_tokens=N))
    assert len(chat.last.tokens) == N, "the answer ended by itself: choose another question"
    return chat.last


def takeable(answer: Message, at: int) -> int:
    """Another likely token there that is text."""
    return next(one.token for one in alternatives(answer, at) if not one.hidden and one.piece.isascii())


def test_the_price_is_said_before_and_the_rest_is_kept(chat: HeadlessChat) -> None:
    answer = answered(chat)
    assert [one.chosen.token for one in unpack(answer.probabilities)] == list(answer.tokens)
    token = takeable(answer, AT)
    chat.service.turns.preview_token(chat.id, answer.id, AT)
    (preview,) = of(carried_out(chat), TurnPreview)
    assert (preview.replaced, preview.refused) == (answer.id, "")
    new = chat.service.turns.take_token(chat.id, answer.id, AT, token)
    (ended,) = of(carried_out(chat), TurnEnded)
    assert ended.answer == new
    can = chat.headless.engine.session.runtime.context.can("partial seq_rm")
    assert (ended.stats.prefilled_tokens == 1) == can
    assert (preview.n_prefill, preview.n_reused) == (ended.stats.prefilled_tokens, ended.stats.reused_tokens)
    last = chat.last
    assert last.tokens[: AT + 1] == (*answer.tokens[:AT], token)
    assert len(last.tokens) == AT + 1 + N
    known = unpack(last.probabilities)
    assert [one.chosen.token for one in known] == list(last.tokens)
    assert known[:AT] == unpack(answer.probabilities)[:AT]
    assert known[AT].top == unpack(answer.probabilities)[AT].top
    assert known[AT].top[known[AT].rank - 1].token == token
    assert chat.service.alternatives(chat.id, last.id) == (answer, last), "the first answer stays, as a branch"
    assert finish_of(last) == "limit"


def test_it_is_what_a_fresh_context_writes(chat: HeadlessChat) -> None:
    answer = answered(chat)
    chat.service.turns.take_token(chat.id, answer.id, AT, takeable(answer, AT))
    (command,) = chat._asked
    carried_out(chat)
    empty(chat.headless)
    assert isinstance(command, Generate)
    events = chat.headless.do(command)
    (ended,) = of(events, TurnEnded)
    assert ended.stats.reused_tokens == 0
    assert (
        tuple(t for e in events for t in getattr(e, "tokens", ()) if e.answer == command.answer)
        == chat.last.tokens[AT + 1 :]
    )


def test_the_first_token_and_the_last_can_be_others(chat: HeadlessChat) -> None:
    answer = answered(chat)
    for at in (0, N - 1):
        assert chat.service.turns.take_token(chat.id, answer.id, at, takeable(answer, at)) is not None
        (ended,) = of(carried_out(chat), TurnEnded)
        assert ended.state == "complete"
        assert chat.last.tokens[: at + 1] == (*answer.tokens[:at], takeable(answer, at))


def test_a_token_that_was_not_likely_is_not_taken(chat: HeadlessChat) -> None:
    answer = answered(chat)
    turns = chat.service.turns
    assert turns.take_token(chat.id, answer.id, AT, answer.tokens[AT]) is None
    assert turns.take_token(chat.id, answer.id, N, 5) is None
    turns.preview_token(chat.id, answer.id, N)
    assert not chat._asked
    assert chat.last == answer


def test_what_does_not_fit_is_said_in_the_preview(chat: HeadlessChat) -> None:
    answer = answered(chat)
    chat.service.turns.preview_token(chat.id, answer.id, AT)
    command = chat._asked.pop()
    assert isinstance(command, PreviewTurn)
    assert (command.continued.probabilities, {m.probabilities for m in command.messages}) == (b"", {b""})
