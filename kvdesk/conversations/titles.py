"""A title proposed for a conversation from its first message, without a model: what is asked, on one short line.

Left out are programs, addresses, marks of Markdown and greetings. Of the rest a heading counts most, then a question
among the first sentences, then the first sentence. Knows nothing but the text.
"""

import re
import unicodedata
from typing import Final

from kvdesk.graphemes import boundary, cut

TITLE_COLUMNS: Final = 48
"""The widest title; a Chinese character takes two columns."""
_READ: Final = 2000  # characters of the message that are looked at
_SENTENCES: Final = 3  # among that many a question is looked for
_SHORTEST_QUESTION: Final = 8  # columns; "Ok?" says nothing

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^)\n]{0,500}\)")
_URL = re.compile(r"<?(?:https?://|ftp://|file://|www\.)[^\s<>()\[\]\"'，。、）】]+>?", re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_LINE_MARK = re.compile(r"^\s*(?:#{1,6}\s+|>+\s*|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)")
_INLINE_MARK = re.compile(r"\*\*|__|~~|`+|\$\$")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”’)]*\s+|(?<=[。！？])")
_GREETING = re.compile(
    r"(?:(?:hi|hello|hey|hiya|greetings|good (?:morning|afternoon|evening|day)|dear)(?:[ ,]+(?:there|all|everyone|"
    r"everybody|team|assistant|ai|bot|chatgpt|claude|llama|gemini|friend|sir|madam))*"
    r"|hallo(?: zusammen)?|guten (?:morgen|tag|abend)|servus|moin|bonjour|salut|hola|buen[oa]s (?:días|tardes|noches)"
    r"|ciao|buongiorno|olá|你好|您好|大家好|嗨|哈喽|早上好|下午好|晚上好|こんにちは|안녕하세요)"
    r"(?=$|[\s,.!?;:，。！？、—–-])[\s,.!?;:，。！？、—–-]*",
    re.IGNORECASE,
)
_PLEASE = re.compile(r"(?:please|bitte|请|請)[\s,，]*", re.IGNORECASE)
_EDGE: Final = " \t,;:.-–—*|…，。、；："


def propose_title(message: str) -> str:
    """A title of at most `TITLE_COLUMNS`; empty for an empty message."""
    text = cut(message, _READ, "")
    without_code = _FENCE.sub("\n\n", text)
    words = _LINK.sub(r"\1", without_code)
    prose = _URL.sub(" ", words)
    for source in (prose, words, _FENCE.sub(r"\2", text), text):
        if title := _title_in(source):
            return _shortened(title)
    return _shortened(" ".join(text.split()))


def _title_in(text: str) -> str:
    if heading := _HEADING.search(text):
        first = _bare(heading[1])
        if text[: heading.start()].strip() == "" and _has_word(first):
            return first
    sentences = _sentences(text)
    said = [without for sentence in sentences if (without := _without_greeting(sentence))] or sentences
    for sentence in said[:_SENTENCES]:
        if sentence.endswith(("?", "？")) and _columns(sentence) >= _SHORTEST_QUESTION:
            return _capital(sentence)
    return _capital(said[0].strip(_EDGE)) if said else ""


def _sentences(text: str) -> list[str]:
    """Those of the first paragraphs, each on one line. A sentence goes on over line breaks, not over empty lines."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = (_bare(_LINE_MARK.sub("", line)) for line in paragraph.splitlines())
        joined = " ".join(line for line in lines if line)
        found += [part for sentence in _SENTENCE_END.split(joined) if _has_word(part := sentence.strip())]
    return found


def _without_greeting(sentence: str) -> str:
    """What is left of it; empty if it only greets."""
    rest = sentence
    while (greeting := _GREETING.match(rest)) is not None and greeting.end():
        rest = rest[greeting.end() :]
    asked = _PLEASE.match(rest)
    rest = rest[asked.end() :] if asked is not None else rest
    return rest if _has_word(rest) else ""


def _bare(line: str) -> str:
    return " ".join(_INLINE_MARK.sub("", line).split())


def _has_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _capital(title: str) -> str:
    """A first word in small letters begins with a capital; one such as "iPhone" stays."""
    first = title.split(" ", 1)[0]
    return title[:1].upper() + title[1:] if first.islower() and first.isalpha() else title


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _shortened(title: str) -> str:
    """Cut at a word where it is too long, in a script without spaces at a sign."""
    if _columns(title) <= TITLE_COLUMNS:
        return title
    room, kept = TITLE_COLUMNS - 1, 0
    for character in title:
        room -= _columns(character)
        if room < 0:
            break
        kept += 1
    kept = boundary(title, kept) or kept
    at_word = title[:kept] if title[kept : kept + 1] == " " else title[:kept].rsplit(" ", 1)[0]
    beginning = at_word if _columns(at_word) > TITLE_COLUMNS // 2 else title[:kept]
    return beginning.rstrip(_EDGE) + "…"
