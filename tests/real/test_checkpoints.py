"""A conversation of two sliding windows on each real model that has one: an edit reuses all that stays (its whole
blocks, where answers can be exact only so), and the answer is that of one in an empty cache that was never edited.

If no model has a window, the smallest is asked for the same: it needs no checkpoint.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.library.gguf_header import read_header
from kvdesk.protocol.cache import OperationDone
from tests.backends.local.conftest import emptied, empty
from tests.backends.local.test_turns import GREEDY, of
from tests.real.conftest import EXACT, MODELS, name_of, opened_real

DEFAULT_WINDOW = 512
SYSTEM = (
    "You keep a lighthouse on a small island in the north. Write short answers about the birds there, what they eat, "
    "where they breed, and what the sea brings to the shore in winter."
)
EDITS = {"inside": (3, "And then? {long} and a clock"), "outside": (3, "Name a bird."), "first": (1, "Who are you?")}
"""By where the edit is, as the window sees it: the messages that stay, and the question that follows them now."""


def window_of(path: Path) -> int:
    """Tokens; 0 without one."""
    return read_header(path).hyper("attention.sliding_window")


WINDOWED = tuple(path for path in MODELS if window_of(path)) or (*MODELS[:1],) or (None,)


@pytest.fixture(scope="module")
def window(real_file: Path) -> int:
    return window_of(real_file) or DEFAULT_WINDOW


@pytest.fixture(scope="module")
def narrow_window(real_file: Path, window: int) -> Iterator[HeadlessEngine]:
    """One sequence, so that the window cache has little more than one window."""
    few = {"n_ctx": 4 * window, "n_seq_max": 1, "n_batch": 512, "n_ubatch": 128, "swa_full": False}
    yield from opened_real(real_file, EXACT.model_copy(update=few))


def long_text(n_tokens: int) -> str:
    """Of at least so many tokens."""
    return "The keeper wrote down what the sea brought: " + "a rope, a bottle, a plank, a shoe; " * (n_tokens // 11)


@pytest.fixture
def chat(narrow_window: HeadlessEngine, window: int, monkeypatch: pytest.MonkeyPatch) -> HeadlessChat:
    """Two exchanges, each longer than the window."""
    chat = HeadlessChat(emptied(narrow_window, monkeypatch), SYSTEM)
    for n, question in enumerate((long_text(window), f"And then? {long_text(window)}"), start=1):
        assert chat.answer(question, GREEDY).stats.cells_used > n * window
    return chat


@pytest.mark.parametrize("real_file", WINDOWED, indirect=True, ids=name_of, scope="module")
@pytest.mark.parametrize("where", EDITS)
def test_an_edit_reuses_all_that_stays(chat: HeadlessChat, real_file: Path, window: int, where: str) -> None:
    before = tokens_of(chat)
    n_kept, question = EDITS[where]
    chat.messages = chat.messages[:n_kept]
    stats = chat.answer(question.format(long=long_text(window)), GREEDY).stats
    block, stays = session_of(chat.headless).runtime.context.block, common_prefix(before, tokens_of(chat))
    assert stays > block
    assert stats.reused_tokens == stays // block * block
    back = [e.reason for e in of(chat.headless.events, OperationDone) if e.name == "swap in"]
    needs_state = where != "inside" and window_of(real_file) > 0
    assert back == [f"back to a checkpoint of {stats.reused_tokens:,} tokens"] * needs_state
    answer = chat.messages[-1].tokens
    empty(chat.headless)
    never_edited = HeadlessChat(chat.headless, SYSTEM)
    for asked in [message.text for message in chat.messages if message.role == "user"]:
        never_edited.answer(asked, GREEDY)
    assert never_edited.messages[-1].tokens == answer


def tokens_of(chat: HeadlessChat) -> list[int]:
    return list(session_of(chat.headless).runtime.cache_manager.pool.get(chat.id).tokens)
