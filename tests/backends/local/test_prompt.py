"""Whose token ids may stand in a prompt, and what ids of nowhere do."""

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, new_conversation_id, new_message_id
from kvdesk.protocol.chat import Generate, TextDelta, TurnEnded
from kvdesk.settings import Sampling
from kvdesk.values import replace

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


def test_an_answer_without_a_question_is_answered_and_said_once(headless: HeadlessEngine) -> None:
    """A greeting that was imported, or a first question that was deleted, with a template that insists on turns."""
    template = (
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{{ '<|im_start|>assistant\n' }}"
    )
    conversation = new_conversation_id()
    messages = [
        Message(new_message_id(), conversation, None, "assistant", "Welcome!"),
        Message(new_message_id(), conversation, None, "user", "Name a colour."),
    ]

    def asked() -> TurnEnded:
        answer = new_message_id()
        ended = headless.do(Generate(conversation, answer, tuple(messages), SHORT, template=template))
        found = next(event for event in ended if isinstance(event, TurnEnded))
        text = "".join(event.text for event in ended if isinstance(event, TextDelta))
        tokens = tuple(token for event in ended if isinstance(event, TextDelta) for token in event.tokens)
        said = Message(answer, conversation, None, "assistant", text, tokens=tokens, stats=found.stats)
        messages.append(replace(said, note=found.note))
        return found

    first = asked()
    assert first.state in ("complete", "stopped")
    assert "empty question was added before it" in first.note
    messages.append(Message(new_message_id(), conversation, None, "user", "Another one."))
    second = asked()
    assert "empty question" not in second.note
    assert second.stats.reused_tokens >= first.stats.prompt_tokens + first.stats.generated_tokens - 1
