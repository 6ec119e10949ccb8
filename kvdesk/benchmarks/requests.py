"""Requests of conversations that are measured."""

from __future__ import annotations

from kvdesk.chat import Message, new_conversation_id, new_message_id
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.chat import Generate
from kvdesk.settings import Sampling


def asked(text: str, sampling: Sampling) -> Generate:
    """The first turn of a new conversation."""
    conversation = new_conversation_id()
    message = Message(new_message_id(), conversation, None, "user", text)
    return Generate(conversation, new_message_id(), (message,), sampling)


def prompt_of(headless: HeadlessEngine, command: Generate) -> list[int]:
    """The tokens that are to be prefilled for a turn."""
    return session_of(headless).runtime.chats.fit(command).whole.tokens
