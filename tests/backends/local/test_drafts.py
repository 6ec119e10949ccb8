"""Answers with guessed tokens in their batches: the same tokens, and no cell of a wrong guess stays."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.llama.memory.decodes import DecodeKind
from kvdesk.backends.local.scheduler import request as requests
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import TurnStats, new_message_id
from kvdesk.policies.drafting import Chance, Draft, DraftSize
from kvdesk.protocol.cache import AuditCache, Audited, OperationDone, SpeedSample, UsePolicy
from kvdesk.protocol.chat import CloseConversation, Generate, TextDelta, TurnEnded
from kvdesk.settings import CachePolicy, Sampling
from kvdesk.values import replace
from tests.backends.local.conftest import SMALL, emptied, opened_with
from tests.backends.local.test_turns import held, of
from tests.backends.local.tiny_models import written

GREEDY = Sampling(temperature=0.0, max_tokens=40)
ASKED = "Say it again: " + "one two three four five six seven eight nine ten. " * 4


class Scripted:
    """Guesses the tokens of a known answer, every `wrong`-th of them wrongly (0: none)."""

    answer: Sequence[int] = ()
    wrong = 0
    holds = 1.0

    def __init__(self, _others: object, tokens: Sequence[int], _forced: object) -> None:
        answer = list(self.answer)
        self._n = next(n for n in range(len(answer), -1, -1) if list(tokens[len(tokens) - n :]) == answer[:n])

    def next(self, most: int) -> list[int]:
        ahead = enumerate(self.answer[self._n : self._n + most], self._n)
        return [1 if self.wrong and n % self.wrong == 0 else token for n, token in ahead]

    def add(self, _token: int) -> None:
        self._n += 1


def _all(_self: DraftSize, chances: Sequence[Chance], most: int, _usual: object) -> Draft:
    """As many tokens as may be, powers of two, for each answer alike."""
    sizes = (min(chance.most, most // len(chances)) for chance in chances)
    return Draft(tuple(1 << max(0, n.bit_length() - 1) for n in sizes), 2.0)


@pytest.fixture
def _much(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tokens are in each batch as may be, and there is no rest."""
    monkeypatch.setattr(DraftSize, "choose", _all)
    monkeypatch.setattr(DraftSize, "step_ms", lambda *_: None)


much = pytest.mark.usefixtures("_much")


@pytest.fixture(scope="module", params=["mamba2", "granitehybrid"])
def other(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    """Models of memories that cannot give back a token."""
    for headless in opened_with(written(tiny_folder, request.param, text=True), SMALL):
        session_of(headless).loaded.model.vocab.ignore_eog()
        yield headless


@pytest.fixture(scope="module")
def earlier(tiny_folder: Path) -> Iterator[HeadlessEngine]:
    """A hybrid memory with the states before the last four tokens of a batch."""
    path = written(tiny_folder, "lfm2", text=True)
    for headless in opened_with(path, SMALL.model_copy(update={"n_rs_seq": 4})):
        session_of(headless).loaded.model.vocab.ignore_eog()
        yield headless


@pytest.fixture(scope="module", params=["tiny", "embedded"])
def exact(request: pytest.FixtureRequest, talking_file: Path, model_file: Path) -> Iterator[HeadlessEngine]:
    path = talking_file if request.param == "tiny" else model_file
    yield from opened_with(path, SMALL.model_copy(update={"exact": True}))


@pytest.fixture(scope="module", params=[True, False], ids=["unified", "streams"])
def several(request: pytest.FixtureRequest, talking_file: Path) -> Iterator[HeadlessEngine]:
    yield from opened_with(talking_file, SMALL.model_copy(update={"kv_unified": request.param}))


def answer(engine: HeadlessEngine, sampling: Sampling = GREEDY, *, drafts: bool) -> tuple[HeadlessChat, TurnStats]:
    engine.do(UsePolicy(CachePolicy(drafts=drafts)))
    chat = HeadlessChat(engine)
    return chat, chat.answer(ASKED, sampling).stats


def guess(monkeypatch: pytest.MonkeyPatch, tokens: Sequence[int], wrong: int = 0, holds: float = 1.0) -> None:
    """From now on the guesses are these tokens, see `Scripted`."""
    script = {"answer": tokens, "wrong": wrong, "holds": holds}
    monkeypatch.setattr(requests, "Guess", type("Script", (Scripted,), script))


def said_again(
    engine: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch, sampling: Sampling = GREEDY
) -> tuple[HeadlessChat, TurnStats]:
    """The answer with drafts, `wrong` as in `Scripted`: it must be that without."""
    chat, _ = answer(engine, sampling, drafts=False)
    plain = chat.messages[-1]
    guess(monkeypatch, plain.tokens, wrong)
    chat, stats = answer(engine, sampling, drafts=True)
    assert chat.messages[-1].tokens == plain.tokens
    assert chat.messages[-1].text == plain.text
    (audited,) = of(engine.do(AuditCache()), Audited)
    assert audited.state == "verified", audited.sentence
    return chat, stats


@much
@pytest.mark.parametrize("wrong", [0, 3, *(pytest.param(n, marks=pytest.mark.matrix) for n in (1, 7))])
def test_the_answer_is_the_same(headless: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, stats = said_again(headless, wrong, monkeypatch)
    held(headless, chat)
    assert stats.drafted_tokens > 0
    assert (stats.accepted_tokens == stats.drafted_tokens) == (wrong == 0)
    assert (stats.accepted_tokens > 0) == (wrong != 1)
    follow_up = chat.answer("And once more.", GREEDY)
    assert follow_up.stats.prefilled_tokens < follow_up.stats.reused_tokens


@much
def test_memories_that_cannot_give_back_have_no_drafts(other: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    _, stats = said_again(emptied(other, monkeypatch), 3, monkeypatch)
    assert stats.drafted_tokens == 0
    assert stats.draft_why == "No drafts: this model's memory cannot remove a wrong token."


@much
def test_a_memory_that_could_keep_earlier_states_says_so(tiny_folder: Path) -> None:
    for headless in opened_with(written(tiny_folder, "lfm2", text=True), SMALL):
        _, stats = answer(headless, Sampling(temperature=0.0, max_tokens=4), drafts=True)
        assert stats.drafted_tokens == 0
        assert "only with Earlier states (n_rs_seq), which are 0" in stats.draft_why


@much
@pytest.mark.parametrize("wrong", [0, 2])
def test_earlier_states_take_a_wrong_token_back(
    earlier: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stats = said_again(emptied(earlier, monkeypatch), wrong, monkeypatch)
    assert stats.drafted_tokens
    assert (stats.accepted_tokens == stats.drafted_tokens) == (not wrong)


@much
@pytest.mark.parametrize("n_tokens", [1, 2, 9, 10, 11])
def test_a_limit_within_a_draft_counts(
    headless: HeadlessEngine, n_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, _ = answer(headless, drafts=False)
    guess(monkeypatch, chat.messages[-1].tokens)
    short = GREEDY.model_copy(update={"max_tokens": n_tokens})
    with_drafts, stats = answer(headless, short, drafts=True)
    assert with_drafts.messages[-1].tokens == chat.messages[-1].tokens[:n_tokens]
    assert stats.generated_tokens == n_tokens


@much
def test_a_stop_string_within_a_draft_counts(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, _ = answer(headless, drafts=False)
    whole = chat.messages[-1]
    guess(monkeypatch, whole.tokens)
    at = len(whole.text) // 2
    stop = GREEDY.model_copy(update={"stop": (whole.text[at : at + 3],)})
    expected, _ = answer(headless, stop, drafts=False)
    with_drafts, _ = answer(headless, stop, drafts=True)
    assert with_drafts.messages[-1].text == expected.messages[-1].text
    assert len(with_drafts.messages[-1].text) < len(whole.text)


@much
def test_the_seed_gives_the_same_answer(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is sampled as it would be alone, in the same order: chance is drawn as often."""
    said_again(headless, 4, monkeypatch, Sampling(temperature=1.0, seed=42, max_tokens=40, repeat_penalty=1.1))


@much
def test_wrong_guesses_are_seen_to_leave(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, _ = answer(headless, drafts=False)
    guess(monkeypatch, chat.messages[-1].tokens, 3)
    answer(headless, drafts=True)
    done = [event for event in of(headless.events, OperationDone) if event.reason == "a guess was wrong"]
    assert done
    assert all("seq_rm" in event.call for event in done)
    samples = [event for event in of(headless.events, SpeedSample) if event.n_drafted]
    assert samples
    assert all(0 <= sample.n_accepted <= sample.n_tokens <= sample.n_drafted + 1 for sample in samples)
    assert all(sample.n_accepted < sample.n_tokens for sample in samples[:-1])  # the end of an answer is no token


@much
def test_a_batch_of_guesses_that_was_stopped_is_counted(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, _ = answer(headless, drafts=False)
    guess(monkeypatch, chat.messages[-1].tokens)
    headless.do(UsePolicy(CachePolicy(drafts=True)))
    asked = Generate(chat.id, new_message_id(), tuple(chat.messages[:-1]), GREEDY)
    decode = Cache.decode

    def stopped(cache: Cache, parts: Any, kind: DecodeKind) -> object:
        if kind == "draft":
            headless.host.stop(asked.answer)
        return decode(cache, parts, kind)

    monkeypatch.setattr(Cache, "decode", stopped)
    events = headless.do(asked)
    assert [event.rc for event in of(events, SpeedSample) if event.rc] == [2]
    (ended,) = of(events, TurnEnded)
    assert ended.state == "stopped"
    (audited,) = of(headless.do(AuditCache()), Audited)
    assert audited.state == "verified", audited.sentence


@much
def test_probabilities_are_those_without(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each token, up to rounding: the row is that of its own place, behind right guesses and wrong ones."""
    told = []
    chat = HeadlessChat(headless)
    chat.add_question(ASKED)
    for drafts in (False, True):
        headless.do(UsePolicy(CachePolicy(drafts=drafts)))
        asked = Generate(HeadlessChat(headless).id, chat.messages[-1].id, tuple(chat.messages), GREEDY, n_probs=3)
        events = headless.do(asked)
        probs = [one for event in of(events, TextDelta) for one in event.logprobs]
        tokens = [token for event in of(events, TextDelta) for token in event.tokens]
        told.append(probs)
        assert [one.chosen.token for one in probs] == tokens
        guess(monkeypatch, tokens, 5)
    (ended,) = of(events, TurnEnded)
    assert 0 < ended.stats.accepted_tokens < ended.stats.drafted_tokens
    without, with_drafts = told
    for one, other in zip(without, with_drafts, strict=True):
        assert other.chosen.logprob == pytest.approx(one.chosen.logprob, abs=1e-3)
        assert {prob.token for prob in other.top} == {prob.token for prob in one.top}


SCHEMA = (
    '{"type": "object", "properties": {"first_name": {"enum": ["Ann", "Bo"]}, "last_name": {"enum": ["Lee"]}},'
    ' "required": ["first_name", "last_name"], "additionalProperties": false}'
)


@much
@pytest.mark.parametrize("wrong", [pytest.param(0, marks=pytest.mark.matrix), 3])
def test_a_grammar_is_followed_by_each_token(
    headless: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = GREEDY.model_copy(update={"json_schema": SCHEMA, "repeat_penalty": 1.3})
    _, stats = said_again(headless, wrong, monkeypatch, schema)
    assert stats.drafted_tokens > 0


@much
def test_what_a_grammar_leaves_no_choice_of_is_guessed(headless: HeadlessEngine) -> None:
    """Nothing of the answer was there before: its guesses are the names of the schema."""
    schema = GREEDY.model_copy(update={"grammar": 'root ::= "zebra crossing " [0-9] " over the wide water " [0-9]'})
    plain, _ = answer(headless, schema, drafts=False)
    chat, stats = answer(headless, schema, drafts=True)
    assert chat.messages[-1].text == plain.messages[-1].text
    assert stats.accepted_tokens > 4


@much
def test_several_answers_draft_at_once(several: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch a step has guesses of all; each text is that of the conversation alone."""
    headless = emptied(several, monkeypatch)
    chat, _ = answer(headless, drafts=False)
    plain = chat.messages[-1]
    guess(monkeypatch, plain.tokens, 4)
    headless.do(UsePolicy(CachePolicy(drafts=True)))
    chats = [HeadlessChat(headless) for _ in range(3)]
    headless.events = []
    for one in chats:
        one.add_question(ASKED.rstrip())
        headless.engine.handle(Generate(one.id, one.messages[-1].id, tuple(one.messages), GREEDY))
    headless.host.run_until_idle()
    for one in chats:
        told = [event for event in of(headless.events, TextDelta) if event.conversation == one.id]
        assert tuple(token for event in told for token in event.tokens) == plain.tokens
    stats = [event.stats for event in of(headless.events, TurnEnded)]
    assert all(0 < one.accepted_tokens < one.drafted_tokens for one in stats)
    most = max(sample.n_drafted for sample in of(headless.events, SpeedSample))
    assert most >= 3, "one batch had guesses of all"
    (audited,) = of(headless.do(AuditCache()), Audited)
    assert audited.state == "verified", audited.sentence


def test_where_only_one_answer_can_have_guesses_several_say_so(
    earlier: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    headless = emptied(earlier, monkeypatch)
    headless.do(UsePolicy(CachePolicy(drafts=True)))
    headless.events = []
    for chat in (HeadlessChat(headless), HeadlessChat(headless)):
        chat.add_question(ASKED)
        headless.engine.handle(Generate(chat.id, chat.messages[-1].id, tuple(chat.messages), GREEDY))
    headless.host.run_until_idle()
    said = {event.stats.draft_why for event in of(headless.events, TurnEnded)}
    assert said == {"No drafts: in this context only one answer at a time can have them."}


@pytest.mark.parametrize("free", [False, True])
def test_where_batches_are_dear_it_says_so_and_where_they_are_free_it_drafts(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, *, free: bool
) -> None:
    """The same answer with the costs of two machines."""
    chat, _ = answer(headless, drafts=False)
    guess(monkeypatch, chat.messages[-1].tokens, holds=0.99)
    monkeypatch.setattr(DraftSize, "steps", lambda _self, k, n: 1.0 if free else n / k)
    with_drafts, stats = answer(headless, drafts=True)
    assert with_drafts.messages[-1].tokens == chat.messages[-1].tokens
    assert (stats.drafted_tokens > 0) == free
    assert stats.draft_why.startswith("Drafts: " if free else "No drafts: a batch of 2 costs 2.0 steps here.")


@much
def test_other_texts_of_the_chat_are_guessed_from(headless: HeadlessEngine) -> None:
    """With the real guesses: the same answer is foreseen where its text is among the others, and not without."""
    headless.do(UsePolicy(CachePolicy(drafts=True)))
    chat = HeadlessChat(headless)
    chat.add_question("Name three rivers.")
    asked = Generate(chat.id, chat.messages[-1].id, tuple(chat.messages), GREEDY)
    events = headless.do(asked)
    text = "".join(event.text for event in of(events, TextDelta))
    (alone,) = of(events, TurnEnded)
    events = headless.do(replace(asked, others=("", text)))
    (ended,) = of(events, TurnEnded)
    assert "".join(event.text for event in of(events, TextDelta)) == text
    assert ended.stats.accepted_tokens > alone.stats.accepted_tokens


@much
def test_with_exact_answers_guesses_change_no_bit(exact: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a token among others is computed as alone; elsewhere there are none, and it says so."""
    told, short = [], GREEDY.model_copy(update={"max_tokens": 20})
    for drafts in (False, True):
        exact.do(UsePolicy(CachePolicy(drafts=drafts)))
        chat = HeadlessChat(exact)
        chat.add_question(ASKED)
        events = exact.do(Generate(chat.id, chat.messages[-1].id, tuple(chat.messages), short, n_probs=3))
        told.append([one for event in of(events, TextDelta) for one in event.logprobs])
        guess(monkeypatch, [one.chosen.token for one in told[0]], 4)
        exact.do(CloseConversation(chat.id))
    assert told[0] == told[1]
    (ended,) = of(events, TurnEnded)
    alike = session_of(exact).runtime.context.block == 1
    assert (ended.stats.drafted_tokens > 0) == alike
    assert ended.stats.draft_why.startswith("Drafts" if alike else "No drafts: with exact answers")
