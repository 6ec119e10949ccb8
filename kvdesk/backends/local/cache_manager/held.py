"""What conversations had in a freed context, until the next one has it again.

Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.cache.state.blob import Blob
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import MessageSpan
from kvdesk.protocol.chat import Client
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """What a conversation had in a freed context: its tokens, and its state if that is carried over.

    exact   as in `CacheSequence`; client: the program that sent the request, None: a chat
    """

    conversation: ConversationId
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    spans: tuple[MessageSpan, ...]
    blob: Blob
    exact: int
    client: Client | None


def held_by(context: Context, sequence: CacheSequence, *, with_state: bool) -> Held:
    """What the sequence holds now. Raises RefusedCall, EngineError."""
    blob = context.states.seq_get(sequence.seq_id) if with_state else b""
    s = sequence
    return Held(s.conversation, tuple(s.tokens), s.texts, s.spans, blob, s.exact, s.client)
