"""Search in titles and messages: turns what a person typed into a query that cannot be malformed.

Owns the quoting and the excerpt; must never know: FTS syntax typed by a person, for there is none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kvdesk.chat import ConversationId, MessageId

SHORTEST_INDEXED = 3  # the index holds trigrams; shorter words are looked for in the text itself
MOST_HITS = 200
EXCERPT_BEFORE, EXCERPT_AFTER = 40, 120

Binding = str | int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A place where every word was found. `message` is None when it is the title."""

    conversation: ConversationId
    message: MessageId | None
    title: str
    excerpt: str


def words_of(text: str) -> tuple[str, ...]:
    """The words to look for; characters no text can be searched for are dropped."""
    return tuple("".join(c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff").split())


def message_query(words: tuple[str, ...]) -> tuple[str, list[Binding]]:
    """SQL and bindings for messages that hold all the words, newest first; some of them may be in attachments. What is
    found there holds the words as they are packed (`rows.pack_attachments`), so it has to be looked at again.
    """
    conditions: list[str] = []
    bindings: list[Binding] = []
    indexed = [word for word in words if len(word) >= SHORTEST_INDEXED]
    if indexed:
        conditions.append("number IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
        bindings.append(" ".join(map(_phrase, indexed)))
    for word in words:
        if len(word) < SHORTEST_INDEXED:
            conditions.append("text LIKE ? ESCAPE '\\'")
            bindings.append(like(word))
    attached = ["attachments <> ''"]
    for word in words:
        packed = json.dumps(word, ensure_ascii=False)[1:-1]
        in_text = "text LIKE ? ESCAPE '\\'"
        if len(packed) < SHORTEST_INDEXED:
            attached.append(f"({in_text} OR attachments LIKE ? ESCAPE '\\')")
            bindings += [like(word), like(packed)]
        else:
            found = "number IN (SELECT rowid FROM attachment_index WHERE attachment_index MATCH ?)"
            attached.append(f"({in_text} OR {found})")
            bindings += [like(word), _phrase(packed)]
    sql = (
        "SELECT m.conversation, m.id, CAST(c.title AS BLOB), CAST(m.text AS BLOB), CAST(m.attachments AS BLOB) "
        "FROM message m JOIN conversation c ON c.id = m.conversation "
        "WHERE c.id NOT IN (SELECT conversation FROM adding) "
        f"AND m.state <> 'streaming' AND m.number IN (SELECT number FROM message WHERE {' AND '.join(conditions)} "
        f"UNION SELECT number FROM message WHERE {' AND '.join(attached)}) "
        f"ORDER BY m.number DESC LIMIT {MOST_HITS}"
    )
    return sql, bindings


def _phrase(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def title_query(words: tuple[str, ...]) -> tuple[str, list[Binding]]:
    """SQL and bindings for conversations whose title holds all the words, newest first."""
    conditions = " AND ".join("title LIKE ? ESCAPE '\\'" for _ in words)
    columns, shown = "id, CAST(title AS BLOB)", "id NOT IN (SELECT conversation FROM adding)"
    sql = (
        f"SELECT {columns} FROM conversation WHERE {conditions} AND {shown} ORDER BY updated_ms DESC LIMIT {MOST_HITS}"
    )
    return sql, [like(word) for word in words]


def holds_all(texts: Sequence[str], words: tuple[str, ...]) -> bool:
    """Whether every word stands in one of the texts."""
    lowered = [text.lower() for text in texts]
    return all(any(word.lower() in text for text in lowered) for word in words)


def first_with(texts: Sequence[str], words: tuple[str, ...]) -> str:
    """The first text that holds one of the words; the first of all where none does."""
    return next((text for text in texts if any(word.lower() in text.lower() for word in words)), texts[0])


def like(word: str) -> str:
    return "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


def excerpt(text: str, words: tuple[str, ...]) -> str:
    """The surroundings of the first word, on one line."""
    lowered = text.lower()
    found = [at for word in words if (at := lowered.find(word.lower())) >= 0]
    begin = max(0, min(found, default=0) - EXCERPT_BEFORE)
    end = begin + EXCERPT_BEFORE + EXCERPT_AFTER
    return ("…" if begin else "") + " ".join(text[begin:end].split()) + ("…" if end < len(text) else "")
