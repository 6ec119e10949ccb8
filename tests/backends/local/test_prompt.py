"""Whose token ids may stand in a prompt, and what ids of nowhere do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.settings import Sampling

SHORT = Sampling(temperature=0.0, max_tokens=6)


def test_answers_of_another_vocabulary_are_tokenized_anew(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    chat.answer("Name a colour.", SHORT)
    session = headless.engine.session
    question, answer = chat.messages
    foreign = replace(answer, tokens=(10**6, 5), stats=replace(answer.stats, vocab="another"))  # type: ignore[type-var]
    ours = session.loaded.prompts.tokens([question, answer, question])
    theirs = session.loaded.prompts.tokens([question, foreign, question])
    assert 10**6 not in theirs
    text = b"".join(session.loaded.model.vocab.piece(t) for t in theirs)
    assert text == b"".join(session.loaded.model.vocab.piece(t) for t in ours)
    untold = replace(answer, stats=None)  # interrupted: nobody knows whose ids these are
    assert session.loaded.prompts.tokens([question, untold, question]) == theirs


@pytest.mark.parametrize("damaged", [(-1,), (10**6,), (2**31 - 1, 5), (5, 6)])
def test_stored_ids_that_do_not_read_as_the_answer_give_way_to_its_text(
    headless: HeadlessEngine, damaged: tuple[int, ...]
) -> None:
    """What a damaged database may hold; llama.cpp would end the process at an id that is not in the vocabulary."""
    chat = HeadlessChat(headless)
    chat.answer("Name a colour.", SHORT)
    prompts = headless.engine.session.loaded.prompts
    question, answer = chat.messages
    wrong = replace(answer, tokens=damaged)
    assert prompts.tokens([question, wrong, question]) == prompts.tokens(
        [question, replace(answer, tokens=()), question]
    )


@pytest.mark.parametrize("token", [-1, 10**6, 2**31 - 1])
def test_a_token_of_nowhere_has_no_text(headless: HeadlessEngine, token: int) -> None:
    vocab = headless.engine.session.loaded.model.vocab
    assert vocab.piece(token) == b""
    assert vocab.label(token) == ""
    assert vocab.text_of(token) == ""
