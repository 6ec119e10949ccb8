"""Requests of conversations that are measured."""

from collections.abc import Iterable

from kvdesk.chat import typed
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import Message, TurnStats, new_conversation_id, new_message_id
from kvdesk.protocol.chat import CloseConversation, Generate
from kvdesk.settings import Sampling

QUESTION = "Explain to a curious child, in many sentences, how a lighthouse keeper spends a stormy night. "
REQUEST = "Count slowly from one to fifty in words and say something kind after every number, please. " * 6


def asked(text: str, sampling: Sampling) -> Generate:
    """The first turn of a new conversation."""
    conversation = new_conversation_id()
    message = Message(new_message_id(), conversation, None, "user", typed(text).text)
    return Generate(conversation, new_message_id(), (message,), sampling)


def prompt_of(headless: HeadlessEngine, command: Generate) -> list[int]:
    """The tokens that are to be prefilled for a turn."""
    return session_of(headless).runtime.chats.fit(command).whole.tokens


def answered(headless: HeadlessEngine, text: str, sampling: Sampling) -> TurnStats:
    """The turn of a conversation that is closed then. Raises UserError."""
    chat = HeadlessChat(headless)
    stats = chat.answer(text, sampling).stats
    headless.do(CloseConversation(chat.id))
    return stats


def turns(chat: HeadlessChat, numbers: Iterable[int], sampling: Sampling) -> TurnStats:
    """Turns of one conversation, at least one; the statistics of the last."""
    for i in numbers:
        stats = chat.answer(f"Question {i}: name one thing that is {i} metres long.", sampling).stats
    return stats
