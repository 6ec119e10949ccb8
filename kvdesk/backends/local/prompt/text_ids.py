"""Token ids of a rendered conversation: those of the text as a whole, with only the template's own marks as special.

llama.cpp parses special tokens in whatever text it gets, and user-defined ones even with `parse_special=False`
(llama-vocab.cpp, `tokenizer_st_partition`). So it never gets a mark here: the template's own become ids by themselves,
and what lies between two of them, whoever wrote it, is tokenized in one piece. Where an id of a mark comes out all the
same, the text of that mark is cut in two and the pieces are tokenized one after another.

SentencePiece vocabularies put a blank before a text. It belongs to the beginning and behind a special token, as
llama.cpp has it, and nowhere else.

A generated answer keeps its ids, which the cache has. Where a template puts other white space before an earlier answer
than before the next one, it no longer stands where it was generated: its beginning grows together with that. Where it
writes an answer's end otherwise, such as with other blank lines, the ids before that stay.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile

from kvdesk.backends.local.llama.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.template_spans import ControlTexts, Span
from kvdesk.backends.local.prompt.templates import AnswerTokens, Segment, TemplateText
from kvdesk.message import MessageId
from kvdesk.values import dataclass

_LEADS = ("\n", "/", "a")
"""Beginnings to put before a text that is none; one of them does not grow together with it."""
_END_OF_WORD = re.compile(r"(?<=[^\W\d_])(?=[\W\d_])")
_WHITE = " \t\n\v\f\r"  # isspace() in llama.cpp
_BEGINNING = 16
"""Ids of an answer that may grow together with the text before it."""
_GROWS = 100
"""Characters behind an answer that may grow together with its end."""
_MOST_KNOWN = 200_000
"""Characters of all parts whose ids are remembered: a request has those of the one before it. The oldest go first."""
_PART_CHARACTERS = 100  # that a part counts beside its own


@dataclass(frozen=True, slots=True)
class _Part:
    """`length` characters of a rendering: the `ids` that they are, or a `text` without any yet."""

    length: int
    text: str = ""
    ids: Sequence[int] = ()


_Read = tuple[str, tuple[int, ...], int, bool]
"""A text or ids, its characters in the rendering, and whether other text precedes it."""


class RenderingTokenizer:
    """Token ids of renderings in one vocabulary."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._marks = ControlTexts(vocab.control_texts)
        self._order = {text: i for i, text in enumerate(sorted(vocab.controls, key=lambda t: -len(t.encode())))}
        self.forget()

    def forget(self) -> None:
        """Tokens have other texts now (`Vocab.show`): nothing that was read before counts."""
        self._known: OrderedDict[_Read, tuple[array[int], array[int]]] = OrderedDict()
        self._n_known = 0

    def tokens(
        self, segments: Sequence[Segment], answers: Mapping[MessageId, Sequence[int]]
    ) -> tuple[list[int], list[int]]:
        """Token ids, and the number of characters of the rendering that are complete after each."""
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
        """Ids of a part, and the number of its characters that are complete after each."""
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
        """Ids and texts by turns: no two texts follow each other."""
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
        """How many of an answer's first ids are others in the text as a whole, up to a boundary that both have."""
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
        """How many of an answer's ids read as `text` begins, up to a boundary that they and the text as a whole have.
        `behind`: what follows it.
        """
        vocab = self._vocab
        ends = ends_in(vocab, ids, text)
        marks = (n for n in range(1, len(ends)) if ids[n - 1] in vocab.control_ids and ends[n] >= 0)
        first = max(marks, default=0)
        rest = text[ends[first] :] + behind
        both = ends_in(vocab, plain_tokens(vocab, rest, is_behind=True), rest)
        return next(n for n in range(len(ends) - 1, first - 1, -1) if ends[n] >= 0 and ends[n] - ends[first] in both)

    def _plain_beginning(self, segments: Sequence[Segment]) -> str:
        """The text of these up to the first mark, as far as it can grow together with a text before it."""
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
        """The marks in a template's text, as llama.cpp finds them: the longest first."""
        found = sorted(self._marks.find(text), key=lambda span: (self._order[text[span.start : span.end]], span.start))
        taken = bytearray(len(text))
        own = []
        for span in found:
            if not any(taken[span.start : span.end]):
                taken[span.start : span.end] = b"\1" * (span.end - span.start)
                own.append(span)
        return sorted(own)

    def _stripped(self, text: str, before: Sequence[int]) -> str:
        """Without the white space that the mark before it swallows."""
        return text.lstrip(_WHITE) if before and self._vocab.strips_right(before[0]) else text


def _white_at_end(text: str) -> str:
    return text[len(text.rstrip(_WHITE)) :]


def plain_tokens(vocab: Vocab, text: str, *, is_behind: bool) -> list[int]:
    """Ids of a text, none of which is a mark. `is_behind`: other text precedes it."""
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
        if not new:  # the unknown token, for characters that the vocabulary does not have
            return tokens
        cuts |= new


def ends_in(vocab: Vocab, tokens: Sequence[int], text: str) -> list[int]:
    """Where each of the tokens that the text begins with ends in it, behind a 0 for its beginning; -1 inside a
    character.
    """
    utf8, at, ends = Utf8Decoder(), 0, [0]
    for token in tokens:
        piece = utf8.decode(vocab.piece(token))
        if not (0 <= token < vocab.n_tokens and text.startswith(piece, at)):
            break
        at += len(piece)
        ends.append(-1 if utf8.pending else at)
    return ends


def _cut(text: str, span: Span) -> int:
    """Where a mark is cut: behind a word, as tokenizers do it, so that the ids are those of the whole text."""
    found = _END_OF_WORD.search(text, span.start + 1, span.end)
    return found.start() if found and found.start() < span.end else span.start + 1


def _piece_tokens(vocab: Vocab, text: str, *, is_behind: bool) -> list[int]:
    """Ids of a text; where it is no beginning, without the blank that some tokenizers put before one."""
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
    """Characters complete after each token of a part of so many.

    A tokenizer that changes the text (adds a blank, say) makes them a little wrong, but never outside the part.
    """
    utf8, ends, at = Utf8Decoder(), [], 0
    for token in tokens:
        at += len(utf8.decode(vocab.piece(token) or vocab.text_of(token).encode()))
        ends.append(min(at, length))
    if ends:
        ends[-1] = length
    return ends
