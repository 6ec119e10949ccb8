"""The database of each test."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.message import Message
from kvdesk.store import Store
from kvdesk.values import replace
from tests.store.values import PAPER, conversation, message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kvdesk.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store(path)) as store:
        yield store


@pytest.fixture
def attached(store: Store) -> Message:
    """A question with a paper, and one without among its neighbours."""
    store.put_conversation(conversation(title="Reading"))
    question = replace(message("a", "What does it say?"), attachments=(PAPER,))
    for one in (question, message("b", "Something else", parent="a")):
        store.put_message(one)
    return question
