"""How likely the tokens of an answer were: asked for where a person wants it, and kept with the answer."""

import pytest

from kvdesk.message import Message
from kvdesk.protocol.chat import BackendReady, Generate, PreviewTurn, TextDelta, TokenLogprobs, TurnEnded, TurnStarted
from kvdesk.protocol.features import Feature
from kvdesk.protocol.logprobs import N_KEPT, pack, unpack
from kvdesk.protocol.messages import SubscriptionDropped
from kvdesk.settings import Settings
from kvdesk.values import replace
from tests.conversations.conftest import STATS, Held
from tests.protocol.logprobs import answer_logprobs, prob

TEXTS = (" a", "b\u00e9", " c")


@pytest.fixture
def held() -> Held:
    return Held(Settings(token_probabilities=True)).listen()


def written(held: Held, asked: Generate, some: tuple[TokenLogprobs, ...], text: str = "") -> None:
    """The back end writes these tokens, as one piece of text."""
    tokens = tuple(one.chosen.token for one in some)
    text = text or "".join(one.chosen.piece.decode() for one in some)
    held.service.take([TextDelta(asked.conversation, asked.answer, text, tokens, some)])


def answer(held: Held, n: int = 3, finish: str = "limit") -> Message:
    asked = held.say("Say three letters")
    written(held, asked, answer_logprobs(n, TEXTS))
    held.service.take([TurnEnded(asked.conversation, asked.answer, "complete", STATS, "", finish)])  # type: ignore[arg-type]
    return held.last(asked.conversation)


def go_on(held: Held, before: Message, continued: tuple[int, ...], some: tuple[TokenLogprobs, ...]) -> Message:
    held.service.turns.continue_answer(before.conversation)
    asked = held.asked[-1]
    held.service.apply(TurnStarted(asked.conversation, asked.answer, 0, 12, 11, continued, "v"))
    written(held, asked, some, "more")
    held.end(asked)
    return held.last(before.conversation)


def test_they_are_asked_for_only_where_they_are_wanted(held: Held) -> None:
    assert held.say("Hello").n_probs == N_KEPT
    assert Held().listen().say("Hello").n_probs == -1


def test_they_are_kept_with_the_answer_and_not_sent_again(held: Held) -> None:
    kept = answer(held)
    assert unpack(kept.probabilities) == answer_logprobs(3)
    held.say("And then?", kept.conversation)
    assert [message.probabilities for message in held.asked[-1].messages] == [b"", b"", b""]


def test_an_answer_that_is_cut_off_keeps_its_own(held: Held) -> None:
    asked = held.say("Go")
    written(held, asked, answer_logprobs(2))
    held.service.turns.interrupt("The engine is gone.")
    assert unpack(held.last(asked.conversation).probabilities) == answer_logprobs(2)


def test_text_that_comes_again_is_counted_once(held: Held) -> None:
    asked = held.say("Go")
    written(held, asked, answer_logprobs(2))
    held.service.apply(SubscriptionDropped("Too slow."))
    written(held, asked, answer_logprobs(3))
    held.end(asked)
    assert unpack(held.last(asked.conversation).probabilities) == answer_logprobs(3)


def test_an_answer_that_goes_on_keeps_those_of_before(held: Held) -> None:
    before = answer(held)
    after = go_on(held, before, before.tokens, answer_logprobs(2))
    assert unpack(after.probabilities) == (*answer_logprobs(3), *answer_logprobs(2))


def test_of_tokens_that_are_others_now_nothing_is_known(held: Held) -> None:
    before = answer(held)
    after = go_on(held, before, (*before.tokens[:1], 77, 78, 79), answer_logprobs(2))
    known = unpack(after.probabilities)
    assert [one.rank for one in known] == [1, 0, 0, 0, 1, 2]
    assert b"".join(one.chosen.piece for one in known[:4]).decode() == before.text


def test_where_only_the_beginning_was_kept_the_rest_has_none(held: Held) -> None:
    before = answer(held)
    held.settings = Settings()
    after = go_on(held, before, before.tokens, ())
    assert [one.rank for one in unpack(after.probabilities)] == [1, 2, 3]
    plain = Held().listen()
    asked = plain.say("Go")
    plain.answer(asked, "Gone")
    assert plain.last(asked.conversation).probabilities == b""


def test_an_edited_answer_has_none(held: Held) -> None:
    before = answer(held)
    held.service.turns.edit_answer(before.conversation, before.id, "Other words")
    assert held.last(before.conversation).probabilities == b""


# --- another token in its place ---------------------------------------------------------------------------------------


def test_another_token_is_gone_on_with_in_a_branch(held: Held) -> None:
    first = answer(held)
    other = unpack(first.probabilities)[1].top[0]
    new = held.service.turns.take_token(first.conversation, first.id, 1, other.token)
    asked = held.asked[-1]
    assert asked.answer == new
    assert (asked.continued.text, asked.continued.tokens) == (" a" + other.piece.decode(), (0, other.token))
    assert asked.continued.probabilities == b"", "no back end reads them"
    last = held.last(first.conversation)
    assert (last.id, last.parent, last.state) == (new, first.parent, "streaming")
    written(held, asked, answer_logprobs(1))
    held.end(asked)
    known = unpack(held.last(first.conversation).probabilities)
    assert [one.chosen.token for one in known] == [0, other.token, 0]
    assert known[1].top == unpack(first.probabilities)[1].top
    assert len(held.service.alternatives(first.conversation, first.id)) == 2


def test_its_price_is_that_of_going_on_there(held: Held) -> None:
    first = answer(held)
    held.service.turns.preview_token(first.conversation, first.id, 2)
    asked = held.commands[-1]
    assert isinstance(asked, PreviewTurn)
    assert (asked.replaced, asked.continued.tokens[:2], len(asked.continued.tokens)) == (first.id, (0, 10), 3)
    assert [message.text for message in asked.messages] == ["Say three letters"]
    assert len(held.service.branch(first.conversation)) == 2, "nothing is done yet"


def test_what_cannot_be_gone_on_with_is_refused(held: Held) -> None:
    first = answer(held)
    turns, there = held.service.turns, (first.conversation, first.id)
    token = unpack(first.probabilities)[1].top[0].token
    assert turns.take_token(*there, 1, first.tokens[1]) is None, "it is the one that is there"
    assert turns.take_token(*there, 1, 4711) is None, "nobody knows its text"
    assert turns.take_token(*there, 9, token) is None
    held.service.apply(BackendReady(frozenset({Feature.CHAT})))
    assert turns.take_token(*there, 1, token) is None
    held.service.apply(BackendReady(frozenset({Feature.CHAT, Feature.CONTINUE})))
    running = held.say("More", first.conversation)
    assert turns.take_token(*there, 1, token) is None, "an answer is being written"
    held.end(running)
    assert turns.take_token(*there, 1, token) is not None


def test_a_token_that_ends_the_answer_is_no_text_to_go_on_with(held: Held) -> None:
    first = answer(held)
    known = unpack(first.probabilities)
    end = prob(99, 0.3, "<|end|>", hidden=True)
    changed = (known[0], TokenLogprobs(known[1].chosen, (end,), 2), known[2])
    held.service._known.tree(first.conversation).put(replace(first, probabilities=pack(changed)))
    assert held.service.turns.take_token(first.conversation, first.id, 1, 99) is None
