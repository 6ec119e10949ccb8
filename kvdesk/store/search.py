"""Search in titles and messages: turns what a person typed into a query that cannot be malformed.

Owns the quoting and the excerpt; must never know: FTS syntax typed by a person, for there is none.
"""

from __future__ import annotations

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
    """SQL and bindings for messages that hold all the words, newest first."""
    conditions = ["m.state <> 'streaming'"]
    bindings: list[Binding] = []
    indexed = [word for word in words if len(word) >= SHORTEST_INDEXED]
    if indexed:
        conditions.append("m.number IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
        bindings.append(" ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    for word in words:
        if len(word) < SHORTEST_INDEXED:
            conditions.append("m.text LIKE ? ESCAPE '\\'")
            bindings.append(like(word))
    sql = (
        "SELECT m.conversation, m.id, CAST(c.title AS BLOB), CAST(m.text AS BLOB) "
        "FROM message m JOIN conversation c ON c.id = m.conversation "
        f"WHERE {' AND '.join(conditions)} ORDER BY m.number DESC LIMIT {MOST_HITS}"
    )
    return sql, bindings


def title_query(words: tuple[str, ...]) -> tuple[str, list[Binding]]:
    """SQL and bindings for conversations whose title holds all the words, newest first."""
    conditions = " AND ".join("title LIKE ? ESCAPE '\\'" for _ in words)
    columns = "id, CAST(title AS BLOB)"
    sql = f"SELECT {columns} FROM conversation WHERE {conditions} ORDER BY updated_ms DESC LIMIT {MOST_HITS}"
    return sql, [like(word) for word in words]


def like(word: str) -> str:
    return "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


def excerpt(text: str, words: tuple[str, ...]) -> str:
    """The surroundings of the first word, on one line."""
    lowered = text.lower()
    found = [at for word in words if (at := lowered.find(word.lower())) >= 0]
    begin = max(0, min(found, default=0) - EXCERPT_BEFORE)
    end = begin + EXCERPT_BEFORE + EXCERPT_AFTER
    return ("…" if begin else "") + " ".join(text[begin:end].split()) + ("…" if end < len(text) else "")
