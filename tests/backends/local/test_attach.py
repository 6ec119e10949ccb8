"""What is attached to a message is read once, and nothing before it again, on every kind of memory."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Attachment, as_read
from kvdesk.protocol.cache import UsePolicy
from kvdesk.settings import CachePolicy, Sampling
from tests.backends.local.conftest import empty
from tests.backends.local.ids import NAMES, open_model, prompt_of, prompt_tokens
from tests.backends.local.test_checkpoints import open_ids
from tests.backends.local.test_turns import fresh_answer

SHORT = Sampling(temperature=0.0, max_tokens=8)
NOTES = Attachment("notes.txt", "text", "The gulls came at noon. The lamp was lit at six. " * 4)
SAID = "What do my notes say of the lamp?"


@pytest.mark.parametrize("name", NAMES)
def test_a_long_addition_costs_its_own_tokens_in_every_memory(name: str, tmp_path: Path, tiny_folder: Path) -> None:
    with closing(open_model(name, tiny_folder)) as model, closing(open_ids(model, tmp_path / "states")) as ids:
        prompt = prompt_of(3, prompt_tokens(model) // 2)
        held = [*prompt, *ids.answer("one", prompt, 6).tokens]
        attached = prompt_of(11, prompt_tokens(model) // 2)
        found = ids.answer("one", [*held, *attached], 2)
        assert found.n_reused == len(held) - 1, "all but the last token, which was sampled and never decoded"


def test_a_file_is_read_with_its_message_and_never_again(engine: HeadlessEngine) -> None:
    empty(engine)
    chat = HeadlessChat(engine, "You keep a lighthouse.")
    chat.answer("Good morning. Is the sea calm?", SHORT)
    pool = engine.engine.session.runtime.cache_manager.pool
    before = len(pool.get(chat.id).tokens)
    chat.service.attach(chat.id, (NOTES,))
    stats = chat.answer(SAID, SHORT).stats
    question = chat.messages[-2]
    assert NOTES.text in as_read(question).text
    assert stats.reused_tokens == before
    assert stats.prefilled_tokens == stats.prompt_tokens - before > 40
    before = len(pool.get(chat.id).tokens)
    again = chat.answer("Thanks. And the gulls?", SHORT).stats
    assert again.reused_tokens == before
    assert again.prefilled_tokens < len(NOTES.text) // 3, "also where a token is a byte"
    engine.do(UsePolicy(CachePolicy(memory_mb=0, disk_mb=0), None))  # nothing comes back from a saved state
    for end in (5, 7):  # system, question, answer, question, answer, …
        asked, answer = chat.messages[: end - 1], chat.messages[end - 1]
        assert fresh_answer(engine, asked)[:8] == answer.tokens[:8]
