"""Search in titles and messages: turns what a user typed into a query that cannot be malformed.

Owns the quoting and the excerpt; must never know: FTS syntax typed by a user, for there is none.
"""

from collections.abc import Sequence
from typing import Any, Final

import apsw

from kvdesk.folding import fold, fold_words, holds_all, places
from kvdesk.graphemes import boundary
from kvdesk.message import ConversationId, MessageId
from kvdesk.store import rows
from kvdesk.values import dataclass

SHORTEST_INDEXED = 3  # the index holds trigrams; shorter words are looked for in the text itself
MOST_HITS = 200
EXCERPT_BEFORE, EXCERPT_AFTER = 40, 120

Binding = str | int
_HOLDS: Final = "holds_words(?, CAST(text AS BLOB), CAST(attachments AS BLOB))"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A place where every word was found. `message` is None when it is the title."""

    conversation: ConversationId
    message: MessageId | None
    title: str
    excerpt: str


def words_of(text: str) -> tuple[str, ...]:
    """The words to look for; characters no text can be searched for are dropped, and words of invisible ones."""
    words = "".join(c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff").split()
    return tuple(word for word in words if fold_words([word]))


def message_query(words: Sequence[str]) -> tuple[str, list[Binding]]:
    """SQL and bindings for messages that hold all the words in their text or attachments, newest first."""
    wanted = fold_words(words)
    phrases = " ".join(_phrase(word) for word in wanted if len(word) >= SHORTEST_INDEXED)
    short = [word for word in wanted if len(word) < SHORTEST_INDEXED]
    conditions: list[str] = []
    bindings: list[Binding] = []
    if phrases:
        conditions.append("number IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
        bindings.append(phrases)
    if short:
        conditions.append(_HOLDS)
        bindings.append("\n".join(short))
    found = f"SELECT number FROM message WHERE {' AND '.join(conditions)}"
    if phrases:  # those that the index does not have yet
        found += f" UNION SELECT number FROM message WHERE number IN (SELECT number FROM unindexed) AND {_HOLDS}"
        bindings.append("\n".join(wanted))
    sql = (
        "SELECT m.conversation, m.id, CAST(c.title AS BLOB), CAST(m.text AS BLOB), CAST(m.attachments AS BLOB) "
        "FROM message m JOIN conversation c ON c.id = m.conversation "
        "WHERE c.id NOT IN (SELECT conversation FROM adding) "
        f"AND m.state <> 'streaming' AND m.number IN ({found}) "
        f"ORDER BY m.number DESC LIMIT {MOST_HITS}"
    )
    return sql, bindings


def _phrase(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def title_query(words: Sequence[str]) -> tuple[str, list[Binding]]:
    """SQL and bindings for conversations whose title holds all the words, newest first."""
    columns, shown = "id, CAST(title AS BLOB)", "id NOT IN (SELECT conversation FROM adding)"
    sql = (
        f"SELECT {columns} FROM conversation WHERE holds_words(?, CAST(title AS BLOB), CAST('' AS BLOB)) AND {shown} "
        f"ORDER BY updated_ms DESC LIMIT {MOST_HITS}"
    )
    return sql, ["\n".join(fold_words(words))]


def teach(connection: apsw.Connection) -> None:
    """Give a connection the functions that the schema and the queries call."""
    connection.create_scalar_function("searchable", _searchable, 2, deterministic=True)
    connection.create_scalar_function("holds_words", _holds_words, 3, deterministic=True)


def _searchable(*columns: Any) -> str:
    """What the index holds of a message, whose text and attachments come as bytes."""
    text, packed = columns
    return fold("\n".join((rows.text_of(text or b""), *(rows.attached_texts(packed) if packed else ()))))


def _holds_words(*columns: Any) -> bool:
    """Whether a message holds every one of the words, folded, a line each: words, text, attachments."""
    words, *message = columns
    found = _searchable(*message)
    return all(word in found for word in words.split("\n"))


def first_with(texts: Sequence[str], words: Sequence[str]) -> str:
    """The first text that holds one of the words; the first of all if none does."""
    return next((text for text in texts if any(holds_all([text], [word]) for word in words)), texts[0])


def excerpt(text: str, words: Sequence[str]) -> str:
    """The surroundings of the first word, on one line."""
    found = places(text, words)
    begin = boundary(text, max(0, (found[0][0] if found else 0) - EXCERPT_BEFORE))
    end = boundary(text, begin + EXCERPT_BEFORE + EXCERPT_AFTER)
    return ("…" if begin else "") + " ".join(text[begin:end].split()) + ("…" if end < len(text) else "")
