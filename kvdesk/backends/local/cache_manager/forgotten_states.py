"""Saved states of what was deleted leave their folder while nobody has it open: no model is, or kvdesk starts."""

import sys
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from pathlib import Path

from kvdesk.backends.local.cache_manager.saved_state import INDEX, MOST_INDEX
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.message import ConversationId, MessageId
from kvdesk.paths import read_regular
from kvdesk.policies.swap import Limits, StateKind


def forget_saved(folder: Path, conversation: ConversationId, messages: Collection[MessageId] | None = None) -> None:
    """A conversation is deleted, or these messages of it, while nobody has its saved states in `folder` open: remove
    them there.
    """
    with suppress(OSError):
        if conversation.encode() not in read_regular(folder / INDEX, MOST_INDEX):
            return  # as most: all rows would have to be read
    with closing(_opened_by_nobody(folder)) as saved:
        saved.drop_of(conversation, messages)
        saved.leave(conversation)


def forget_unknown(folder: Path, is_known: Callable[[ConversationId, Collection[MessageId]], bool]) -> None:
    """Nobody has the saved states in `folder` open: remove those of chats that are unknown, or of which one of the
    messages is. They were deleted, and kvdesk was ended before the states were.
    """
    with closing(_opened_by_nobody(folder)) as saved:
        for conversation, messages in saved.named().items():
            if not is_known(conversation, messages):
                saved.drop_of(conversation)
                saved.leave(conversation)


def _opened_by_nobody(folder: Path) -> SavedStateStore:
    nobody = StateKind("", "", "", "", flash_attn=True, rope=(0.0, 0.0))
    return SavedStateStore(folder, nobody, Limits(0, sys.maxsize))
