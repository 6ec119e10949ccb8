"""What is asked of a back end beside the messages that are read."""

import pytest

from kvdesk.chat import Conversation, EvictedMessages
from kvdesk.conversations import requests
from kvdesk.message import Attachment, ConversationId, Message, MessageId
from kvdesk.settings import CachePolicy, Settings

CHAT = ConversationId("c")
DRAFTS = Settings(cache=CachePolicy(drafts=True))


def message(name: str, text: str, *attached: str) -> Message:
    attachments = tuple(Attachment(text, "text", text) for text in attached)
    return Message(MessageId(name), CHAT, None, "user", text, attachments=attachments)


READ = [message("old", "evicted", "a file"), message("new", "read")]
OTHERS = [READ[0], message("b1", "first branch"), READ[1], message("b2", "second branch", "a paper")]


def others(settings: Settings = DRAFTS, evicted: frozenset[str] = frozenset()) -> tuple[str, ...]:
    gone = EvictedMessages(frozenset(map(MessageId, evicted)))
    known = Conversation(CHAT, "", 0, evicted=gone)
    return requests.generate(known, MessageId("a"), READ, settings, others=OTHERS).others


def test_an_answer_may_repeat_what_is_in_other_branches_and_attached_there() -> None:
    """The newest first, and nothing that the prompt has."""
    second, first = others()
    assert first == "first branch"
    assert second.startswith("a paper:\n```\na paper\n```")
    assert second.endswith("second branch")


def test_what_was_evicted_comes_first() -> None:
    evicted, *_ = others(evicted=frozenset({"old"}))
    assert "a file" in evicted
    assert evicted.endswith("evicted")


def test_no_more_is_sent_than_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_CHARACTERS", 8)
    (only,) = others()
    assert only == "a paper:"


def test_nothing_is_sent_where_nobody_drafts() -> None:
    assert others(Settings()) == ()
