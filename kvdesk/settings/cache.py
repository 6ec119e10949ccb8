"""What kvdesk does with the cache automatically, and when the context of a chat is full."""

from enum import StrEnum

from pydantic import Field

from kvdesk.settings.table import Table, llama
from kvdesk.translation import marked


class Overflow(StrEnum):
    """What happens when a conversation's context is full, in the order in which it is offered.

    Each is declared in the module of `kvdesk.policies.overflow` that has its name.
    """

    STOP = "stop"
    SLIDE = "slide"
    RECOMPUTE = "recompute"
    SINKS = "sinks"
    LEAST_ATTENDED = "least_attended"
    LOW_NORM_KEYS = "low_norm_keys"


class CachePolicy(Table):
    """What kvdesk does with the cache automatically."""

    follow_load: bool = Field(
        True,
        title=marked("Adapt threads to load"),
        description=marked(
            "Fewer threads while other programs are busy. This changes the order in which numbers are added: "
            "in long conversations answers may then differ by rounding"
        ),
    )
    auto_compact: bool = Field(
        True,
        title=marked("Compact automatically"),
        description=marked("Compact the cache between answers when the speed gained is worth the time"),
    )
    save_idle_requests: bool = Field(
        True,
        title=marked("Save idle requests"),
        description=marked(
            "Before another prompt is read, idle chats and requests of other programs are saved to memory if the "
            "speed gained is worth it. Off: their cells stay as long as there is room"
        ),
    )
    drafts: bool = Field(
        False,
        title=marked("Speculative decoding"),
        description=marked(
            "Guess the next tokens of an answer from the text of the chat, and verify several in one batch, if that "
            "is expected to be faster. Texts may differ by rounding"
        ),
    )
    read_once: bool = Field(
        False,
        title=marked("Documents read once"),
        description=marked(
            "What was computed of an attached document is kept and used in other chats, at any place; only its first "
            "32 tokens are read again. Answers may differ a little, and small models give others more often. Not with "
            "exact answers, nor for models whose tokens cannot be moved in the cache. It is deleted with the last chat "
            "that has the document"
        ),
    )
    documents_q8_0: bool = Field(
        False,
        title=marked("Documents as q8_0"),
        description=marked(
            "What is kept of documents read once takes about half of the memory and of the disk space: K and V are "
            "rounded to q8_0, and converted back when they are used. Answers may differ a little more. Applies to "
            "documents that are kept from now on"
        ),
    )
    prefill_ahead: bool = Field(
        False,
        title=marked("Prefill ahead"),
        description=marked(
            "After an answer, read the next tokens of the chat template into the cache, so that your next "
            "message starts sooner"
        ),
    )
    overflow: Overflow = Field(
        Overflow.STOP, title=marked("When full"), description=marked("What new chats do when their context is full")
    )
    n_keep: int = Field(
        0,
        ge=0,
        le=1 << 20,
        title=marked("Tokens to keep"),
        json_schema_extra=llama("n_keep"),
        description=marked("Tokens at the beginning that stay when the oldest messages are removed"),
    )
    memory_mb: int = Field(
        512,
        ge=0,
        le=1 << 20,
        title=marked("Memory for saved conversations (MB)"),
        description=marked("Conversations that are removed from the cache are saved there"),
    )
    disk_mb: int = Field(
        2048,
        ge=0,
        le=1 << 24,
        title=marked("Disk space for saved conversations (MB)"),
        description=marked("Used if that memory is not enough"),
    )
