"""Token ids of a rendered conversation, tokenized as a whole, with only the template's own marks as special tokens.

llama.cpp parses special tokens in any text it gets, and user-defined ones even with `parse_special=False`
(llama-vocab.cpp, `tokenizer_st_partition`). So it never gets a mark here. The template's marks become ids directly, and
the text between two of them is tokenized in one piece, whoever wrote it. If the id of a mark still comes out, the text
of that mark is cut in two, and the pieces are tokenized separately.

SentencePiece vocabularies put a blank before a text. As in llama.cpp, it belongs to the beginning and after a special
token, and nowhere else.

A generated answer keeps its ids, which the cache has. If a template puts other white space before an earlier answer
than before the next one, the beginning of the answer is tokenized together with that. If the template changes the end
of an answer, for example its blank lines, the ids before that stay.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile

from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.rendering import AnswerTokens, Segment, TemplateText
from kvdesk.backends.local.prompt.template_spans import ControlTexts, Span
from kvdesk.message import MessageId
from kvdesk.values import dataclass

_LEADS = ("\n", "/", "a")
"""Prefixes for a text that does not begin a prompt; at least one of them does not merge with it."""
_END_OF_WORD = re.compile(r"(?<=[^\W\d_])(?=[\W\d_])")
_WHITE = " \t\n\v\f\r"  # isspace() in llama.cpp
_BEGINNING = 16
"""Ids of an answer that may merge with the text before it."""
_GROWS = 100
"""Characters after an answer that may merge with its end."""
_MOST_KNOWN = 200_000
"""Characters of all parts with remembered ids, because a request repeats the previous one. The oldest go first."""
_PART_CHARACTERS = 100  # added for each part


@dataclass(frozen=True, slots=True)
class _Part:
    """`length` characters of a rendering: their `ids`, or a `text` without any yet."""

    length: int
    text: str = ""
    ids: Sequence[int] = ()


_Read = tuple[str, tuple[int, ...], int, bool]
"""A text or ids, its number of characters in the rendering, and whether other text precedes it."""


class RenderingTokenizer:
    """Token ids of renderings in one vocabulary."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._marks = ControlTexts(vocab.control_texts)
        self._order = {text: i for i, text in enumerate(sorted(vocab.controls, key=lambda t: -len(t.encode())))}
        self.forget()

    def forget(self) -> None:
        """Forget everything, because tokens have other texts now (`Vocab.show`)."""
        self._known: OrderedDict[_Read, tuple[array[int], array[int]]] = OrderedDict()
        self._n_known = 0

    def tokens(
        self, segments: Sequence[Segment], answers: Mapping[MessageId, Sequence[int]]
    ) -> tuple[list[int], list[int]]:
        """Token ids, and how many characters of the rendering are complete after each."""
        vocab = self._vocab
        tokens: list[int] = []
        ends: list[int] = []
        at = 0
        new: Sequence[int]
        complete: Sequence[int]
        for part in self._joined(segments, answers):
            new, complete = part.ids, [part.length]
            if len(new) != 1:
                is_behind = bool(tokens) and tokens[-1] not in vocab.control_ids
                text = self._stripped(part.text, tokens[-1:])
                new, complete = self._read((text, tuple(new), part.length, is_behind))
            tokens += new
            ends += [at + n for n in complete]
            at += part.length
        return tokens, ends

    def _read(self, part: _Read) -> tuple[array[int], array[int]]:
        """Ids of a part, and how many of its characters are complete after each."""
        text, ids, length, is_behind = part
        known = self._known.pop(part, None)
        if known is None:
            new = plain_tokens(self._vocab, text, is_behind=is_behind) if text else ids
            known = array("i", new), array("i", _ends(self._vocab, new, length))
            self._n_known += length + _PART_CHARACTERS
        self._known[part] = known
        while self._n_known > _MOST_KNOWN:
            (_, _, length, _), _ = self._known.popitem(last=False)
            self._n_known -= length + _PART_CHARACTERS
        return known

    def _joined(self, segments: Sequence[Segment], answers: Mapping[MessageId, Sequence[int]]) -> Iterator[_Part]:
        """Ids and texts, where no two texts follow each other."""
        texts: list[str] = []
        for part in self._parts(segments, answers):
            if part.text:
                texts.append(part.text)
                continue
            if texts:
                text = "".join(texts)
                yield _Part(len(text), text)
                texts = []
            yield part
        if texts:
            text = "".join(texts)
            yield _Part(len(text), text)

    def _parts(self, segments: Sequence[Segment], answers: Mapping[MessageId, Sequence[int]]) -> Iterator[_Part]:
        begin = _white_at_end(segments[-1].text) if segments and isinstance(segments[-1], TemplateText) else None
        before = ""
        for i, segment in enumerate(segments):
            text = segment.text
            if isinstance(segment, AnswerTokens):
                ids = answers[segment.message_id]
                rest = ""
                if not segment.is_whole:
                    ids = ids[: self._n_unchanged(ids, text, self._plain_beginning(segments[i + 1 :]))]
                    rest = text[len(self._vocab.text(ids)) :]
                n = self._n_grown(before, ids) if before and begin not in (None, _white_at_end(before)) else 0
                lead = self._vocab.text(ids[:n])
                if lead:
                    yield _Part(len(lead), lead)
                if len(ids) > n:
                    yield _Part(len(text) - len(lead) - len(rest), ids=ids[n:])
                if rest:
                    yield _Part(len(rest), rest)
                before = ""
                continue
            at = 0
            for start, end in self._own_marks(text) if isinstance(segment, TemplateText) else ():
                if start > at:
                    yield _Part(start - at, text[at:start])
                yield _Part(end - start, ids=(self._vocab.controls[text[start:end]],))
                at = end
            before = text[at:] if isinstance(segment, TemplateText) else ""
            if at < len(text):
                yield _Part(len(text) - at, text[at:])

    def _n_grown(self, before: str, ids: Sequence[int]) -> int:
        """How many of an answer's first ids change in the text as a whole, up to a boundary that both share."""
        vocab = self._vocab
        first = list(takewhile(lambda token: token not in vocab.control_ids, ids[:_BEGINNING]))
        text = vocab.text(first)
        if "\ufffd" in text:
            return 0
        whole = plain_tokens(vocab, before + text, is_behind=True)
        rests = {0, *accumulate(len(vocab.piece(token)) for token in reversed(whole))}
        rest = len(text.encode())
        for n, token in enumerate(first):
            if rest in rests:
                return n
            rest -= len(vocab.piece(token))
        return len(first)

    def _n_unchanged(self, ids: Sequence[int], text: str, behind: str) -> int:
        """How many of an answer's ids spell the beginning of `text`, up to a boundary shared with the text as a whole.
        `behind`: the text after it.
        """
        vocab = self._vocab
        ends = ends_in(vocab, ids, text)
        marks = (n for n in range(1, len(ends)) if ids[n - 1] in vocab.control_ids and ends[n] >= 0)
        first = max(marks, default=0)
        rest = text[ends[first] :] + behind
        both = ends_in(vocab, plain_tokens(vocab, rest, is_behind=True), rest)
        return next(n for n in range(len(ends) - 1, first - 1, -1) if ends[n] >= 0 and ends[n] - ends[first] in both)

    def _plain_beginning(self, segments: Sequence[Segment]) -> str:
        """The text of these segments up to the first mark, as far as it can merge with a text before it."""
        found = ""
        for segment in segments:
            marks = self._own_marks(segment.text) if isinstance(segment, TemplateText) else []
            if isinstance(segment, AnswerTokens) or len(found) > _GROWS:
                break
            found += segment.text[: marks[0].start] if marks else segment.text
            if marks:
                break
        return found[:_GROWS]

    def _own_marks(self, text: str) -> list[Span]:
        """The marks in a template's text, found like llama.cpp does: longest first."""
        found = sorted(self._marks.find(text), key=lambda span: (self._order[text[span.start : span.end]], span.start))
        taken = bytearray(len(text))
        own = []
        for span in found:
            if not any(taken[span.start : span.end]):
                taken[span.start : span.end] = b"\1" * (span.end - span.start)
                own.append(span)
        return sorted(own)

    def _stripped(self, text: str, before: Sequence[int]) -> str:
        """Without the white space that the preceding mark swallows."""
        return text.lstrip(_WHITE) if before and self._vocab.strips_right(before[0]) else text


def _white_at_end(text: str) -> str:
    return text[len(text.rstrip(_WHITE)) :]


def plain_tokens(vocab: Vocab, text: str, *, is_behind: bool) -> list[int]:
    """Ids of a text, none of them a mark. `is_behind`: other text precedes it."""
    cuts: set[int] = set()
    while True:
        tokens: list[int] = []
        places = [0, *sorted(cuts), len(text)]
        for start, end in pairwise(places):
            tokens += _piece_tokens(vocab, text[start:end], is_behind=is_behind or start > 0)
        found = vocab.control_ids.intersection(tokens)
        if not found:
            return tokens
        wrong = ControlTexts(frozenset(mark for mark, token in vocab.controls.items() if token in found))
        new = {_cut(text, span) for span in wrong.find(text) if len(range(*span)) > 1} - cuts
        if not new:  # the unknown token, for characters missing from the vocabulary
            return tokens
        cuts |= new


def ends_in(vocab: Vocab, tokens: Sequence[int], text: str) -> list[int]:
    """Where each of the tokens at the beginning of the text ends, after a leading 0; -1 inside a character."""
    utf8, at, ends = Utf8Decoder(), 0, [0]
    for token in tokens:
        piece = utf8.decode(vocab.piece(token))
        if not (0 <= token < vocab.n_tokens and text.startswith(piece, at)):
            break
        at += len(piece)
        ends.append(-1 if utf8.pending else at)
    return ends


def _cut(text: str, span: Span) -> int:
    """Where a mark is cut: after a word, as tokenizers do it, so that the ids equal those of the whole text."""
    found = _END_OF_WORD.search(text, span.start + 1, span.end)
    return found.start() if found and found.start() < span.end else span.start + 1


def _piece_tokens(vocab: Vocab, text: str, *, is_behind: bool) -> list[int]:
    """Ids of a text; unless it is a beginning, without the blank that some tokenizers add."""
    tokens = vocab.tokenize(text, add_special=False, parse_special=False)
    if not is_behind or _reads_as(vocab, tokens, text):
        return tokens
    for lead_text in _LEADS:
        lead = vocab.tokenize(lead_text, add_special=False, parse_special=False)
        whole = vocab.tokenize(lead_text + text, add_special=False, parse_special=False)
        if whole[: len(lead)] == lead and _reads_as(vocab, whole[len(lead) :], text):
            return whole[len(lead) :]
    return tokens


def _reads_as(vocab: Vocab, tokens: Sequence[int], text: str) -> bool:
    return vocab.text(tokens).replace("\u2581", " ") == text.replace("\u2581", " ")  # SentencePiece's sign for a blank


def _ends(vocab: Vocab, tokens: Sequence[int], length: int) -> list[int]:
    """Characters complete after each token of a part with `length` characters.

    A tokenizer that changes the text (for example adds a blank) makes them slightly wrong, but never outside the part.
    """
    utf8, ends, at = Utf8Decoder(), [], 0
    for token in tokens:
        at += len(utf8.decode(vocab.piece(token) or vocab.text_of(token).encode()))
        ends.append(min(at, length))
    if ends:
        ends[-1] = length
    return ends
