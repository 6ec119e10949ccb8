"""Answers with guessed tokens in their batches: the same tokens, and no cell of a wrong guess stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kvdesk.backends.local.scheduler import running
from kvdesk.chat import TurnStats
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.policies.drafting import Draft, DraftSize
from kvdesk.protocol.cache import AuditCache, Audited, OperationDone, UsePolicy
from kvdesk.settings import CachePolicy, Sampling
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

    def __init__(self, _others: object, tokens: Sequence[int]) -> None:
        answer = list(self.answer)
        self._n = next(n for n in range(len(answer), -1, -1) if list(tokens[len(tokens) - n :]) == answer[:n])

    def next(self, most: int) -> list[int]:
        ahead = enumerate(self.answer[self._n : self._n + most], self._n)
        return [1 if self.wrong and n % self.wrong == 0 else token for n, token in ahead]

    def add(self, _token: int) -> None:
        self._n += 1


@pytest.fixture(autouse=True)
def _much_is_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tokens are in each batch as may be."""
    monkeypatch.setattr(
        DraftSize, "choose", lambda _self, _holds, most, _usual: Draft(1 << max(0, most.bit_length() - 1))
    )


@pytest.fixture
def drafting(headless: HeadlessEngine) -> Iterator[HeadlessEngine]:
    yield headless
    headless.do(UsePolicy(CachePolicy()))


@pytest.fixture(scope="module", params=["mamba2", "granitehybrid"])
def other(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    """Models of memories that cannot give back a token."""
    for headless in opened_with(written(tiny_folder, request.param, text=True), SMALL):
        session_of(headless).loaded.model.vocab.ignore_eog()
        yield headless


def answer(engine: HeadlessEngine, sampling: Sampling = GREEDY, *, drafts: bool) -> tuple[HeadlessChat, TurnStats]:
    engine.do(UsePolicy(CachePolicy(drafts=drafts)))
    chat = HeadlessChat(engine)
    return chat, chat.answer(ASKED, sampling).stats


def said_again(engine: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch) -> tuple[HeadlessChat, TurnStats]:
    """The answer with drafts, `wrong` as in `Scripted`: it must be that without."""
    chat, _ = answer(engine, drafts=False)
    plain = chat.messages[-1]
    monkeypatch.setattr(running, "Guess", type("Script", (Scripted,), {"answer": plain.tokens, "wrong": wrong}))
    chat, stats = answer(engine, drafts=True)
    assert chat.messages[-1].tokens == plain.tokens
    assert chat.messages[-1].text == plain.text
    (audited,) = of(engine.do(AuditCache()), Audited)
    assert audited.state == "verified", audited.sentence
    return chat, stats


@pytest.mark.parametrize("wrong", [0, 1, 3, 7])
def test_the_answer_is_the_same(drafting: HeadlessEngine, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, stats = said_again(drafting, wrong, monkeypatch)
    held(drafting, chat)
    assert stats.drafted_tokens > 0
    assert (stats.accepted_tokens == stats.drafted_tokens) == (wrong == 0)
    assert (stats.accepted_tokens > 0) == (wrong != 1)
    follow_up = chat.answer("And once more.", GREEDY)
    assert follow_up.stats.prefilled_tokens < follow_up.stats.reused_tokens


def test_memories_that_cannot_give_back_have_no_drafts(other: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    _, stats = said_again(emptied(other, monkeypatch), 3, monkeypatch)
    assert stats.drafted_tokens == 0


@pytest.mark.parametrize("n_tokens", [1, 2, 9, 10, 11])
def test_a_limit_within_a_draft_counts(
    drafting: HeadlessEngine, n_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, _ = answer(drafting, drafts=False)
    monkeypatch.setattr(running, "Guess", type("Script", (Scripted,), {"answer": chat.messages[-1].tokens}))
    short = GREEDY.model_copy(update={"max_tokens": n_tokens})
    with_drafts, stats = answer(drafting, short, drafts=True)
    assert with_drafts.messages[-1].tokens == chat.messages[-1].tokens[:n_tokens]
    assert stats.generated_tokens == n_tokens


def test_a_stop_string_within_a_draft_counts(drafting: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, _ = answer(drafting, drafts=False)
    whole = chat.messages[-1]
    monkeypatch.setattr(running, "Guess", type("Script", (Scripted,), {"answer": whole.tokens}))
    at = len(whole.text) // 2
    stop = GREEDY.model_copy(update={"stop": (whole.text[at : at + 3],)})
    expected, _ = answer(drafting, stop, drafts=False)
    with_drafts, _ = answer(drafting, stop, drafts=True)
    assert with_drafts.messages[-1].text == expected.messages[-1].text
    assert len(with_drafts.messages[-1].text) < len(whole.text)


def test_the_seed_gives_the_same_answer(drafting: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is sampled as it would be alone, in the same order: chance is drawn as often."""
    seeded = Sampling(temperature=1.0, seed=42, max_tokens=40, repeat_penalty=1.1)
    chat, _ = answer(drafting, seeded, drafts=False)
    script: Any = type("Script", (Scripted,), {"answer": chat.messages[-1].tokens, "wrong": 4})
    monkeypatch.setattr(running, "Guess", script)
    with_drafts, _ = answer(drafting, seeded, drafts=True)
    assert with_drafts.messages[-1].tokens == chat.messages[-1].tokens


def test_wrong_guesses_are_seen_to_leave(drafting: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, _ = answer(drafting, drafts=False)
    script: Any = type("Script", (Scripted,), {"answer": chat.messages[-1].tokens, "wrong": 3})
    monkeypatch.setattr(running, "Guess", script)
    answer(drafting, drafts=True)
    done = [event for event in of(drafting.events, OperationDone) if event.reason == "a guess was wrong"]
    assert done
    assert all("seq_rm" in event.call for event in done)
