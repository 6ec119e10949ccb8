"""Messages and conversations for tests of the store."""

from pathlib import Path

import apsw

from kvdesk.chat import Conversation, EvictedMessages, QueuedMessage
from kvdesk.message import Attachment, ConversationId, Message, MessageId, MessageState, Role, TurnStats
from kvdesk.settings import Sampling
from kvdesk.store import schema

C = ConversationId("c")
PAPER = Attachment("paper.pdf", "pdf", 'A "long" text\nof \\several pages', "3 pages", 42)
STATS = TurnStats(
    prompt_tokens=30,
    reused_tokens=20,
    prefilled_tokens=10,
    generated_tokens=5,
    ttft_ms=41.5,
    prefill_tok_s=240.0,
    decode_tok_s=120.5,
    seq_id=3,
    cells_used=35,
    high_water=40,
    n_kv=256,
)


def conversation(name: str = "c", title: str = "A title", leaf: str | None = None, updated_ms: int = 0) -> Conversation:
    identity = None if leaf is None else MessageId(leaf)
    return Conversation(
        ConversationId(name),
        title,
        colour=2,
        leaf=identity,
        created_ms=1,
        updated_ms=updated_ms,
        overflow="slide",
        evicted=EvictedMessages(
            frozenset({MessageId("x")}), (MessageId("y"), 3), "sinks", ((MessageId("z"), ((1, 3), (5, 6))),)
        ),
        draft="half a thought",
        queued=(QueuedMessage("next"), QueuedMessage("and \u2028then", (PAPER,))),
        sampling=Sampling(temperature=0.2, seed=7),
        folder="Work",
        pinned=True,
        archived=True,
        template="{% for m in messages %}{{ m.content }}\n{% endfor %}",
        draft_attachments=(PAPER, Attachment("paste", "pasted", "")),
        tools=("git", 'a "quoted" one'),
    )


def message(
    name: str,
    text: str = "Hello",
    parent: str | None = None,
    role: Role = "user",
    state: MessageState = "complete",
    of: str = "c",
    tokens: tuple[int, ...] = (),
) -> Message:
    follows = None if parent is None else MessageId(parent)
    return Message(MessageId(name), ConversationId(of), follows, role, text, state, tokens, created_ms=7, model="tiny")


def filled_before(path: Path, step: str | int, *messages: tuple[str, ...], **columns: str) -> int:
    """The database of the version before a migration, told by its number or by a word of it, with one chat that has
    these columns and messages: id and text, and perhaps role, state and note. Returns the version.
    """
    version = step if isinstance(step, int) else next(n for n, sql in enumerate(schema.MIGRATIONS) if step in sql)
    connection = apsw.Connection(str(path))
    schema.create(connection, version)
    chat = {"id": "c", "title": "Old", "colour": 2, "system_prompt": "", "created_ms": 1, "updated_ms": 2, **columns}
    sql = f"INSERT INTO conversation ({', '.join(chat)}) VALUES ({', '.join('?' * len(chat))})"
    connection.execute(sql, tuple(chat.values()))
    sql = (
        "INSERT INTO message (id, conversation, text, role, state, note, tokens, created_ms)"
        " VALUES (?, 'c', ?, ?, ?, ?, x'', 7)"
    )
    for row in messages:
        connection.execute(sql, (*row, *("user", "complete", "")[len(row) - 2 :]))
    connection.close()
    return version
