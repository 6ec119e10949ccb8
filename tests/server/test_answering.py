"""What the end of an answer is to a client."""

from collections.abc import Iterator

import pytest

from kvdesk import paths, translation
from kvdesk.message import NO_STATS, new_conversation_id, new_message_id
from kvdesk.protocol.chat import NO_MODEL, Generate, TurnEnded
from kvdesk.server.answering import Choice
from kvdesk.server.errors import ApiError
from kvdesk.settings import Sampling
from kvdesk.translation import tr


@pytest.fixture(params=["en", "zh_CN"])
def language(request: pytest.FixtureRequest) -> Iterator[None]:
    translation.use([request.param], paths.catalogues())
    yield
    translation.install(translation.english)


@pytest.mark.usefixtures("language")
@pytest.mark.parametrize(("note", "status"), [(NO_MODEL, 503), ("The prompt has no tokens.", 400)])
def test_where_no_model_is_open_one_may_ask_again(note: str, status: int) -> None:
    """In any language: the note is a sentence for a person."""
    command = Generate(new_conversation_id(), new_message_id(), (), Sampling())
    with pytest.raises(ApiError) as raised:
        Choice(0, command).apply(TurnEnded(command.conversation, command.answer, "failed", NO_STATS, tr(note)))
    assert raised.value.status == status
