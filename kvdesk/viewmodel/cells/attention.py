"""What tokens looked at, as it is shown: which of it is wanted, by cell, by word of the chat, and by head. No Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from math import floor, log10
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.attention_weights import How, chosen, combined, received, sinks, top
from kvdesk.cache.seq_bits import seq_has
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap
from kvdesk.protocol.attention import Attend, Attended, AttentionPreview, Queries
from kvdesk.protocol.cache import MessageSpan, MessageSpans
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, replace
from kvdesk.viewmodel.cells.links import span_at
from kvdesk.viewmodel.cells.readout import visible

N_LAST: Final = 8
"""Tokens of `Scope.LAST`: as many as the picture of one of 32 heads has rows of pixels."""
N_ROWS: Final = 12
"""Cells in the table of those that got most."""
FIRST: Final = 4
"""Tokens at the beginning that are the usual sinks (Xiao et al., arXiv 2309.17453, section 3.1)."""
DECADES: Final = 3
"""Of a scale of colours: what is a thousandth of its upper end, or less, has its first colour."""


class Scope(StrEnum):
    """Whose attention is looked at. `tr` of the value is what a person reads."""

    TOKEN = marked("This token")
    LAST = marked("Last 8 tokens")
    ANSWER = marked("Whole answer")

    @property
    def meaning(self) -> str:
        return tr(_MEANINGS[self])


_MEANINGS: Final = {
    Scope.TOKEN: marked("What this one token looked at"),
    Scope.LAST: marked("This token and the 7 before it; a row for each in the pictures of the heads"),
    Scope.ANSWER: marked("All tokens of its message together: the cells that got most are its heavy hitters"),
}


class Spot(NamedTuple):
    """The token that is looked from: its sequence and position."""

    seq_id: int
    pos: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Layer and head by their numbers, None for all of them; how several are combined."""

    layer: int | None = None
    head: int | None = None
    how: How = "mean"


@dataclass(frozen=True, slots=True)
class Looking:
    """What a person wants to know, and how far it is known.

    spot      the token; None: the last one of the shown conversation
    is_open   somebody looks at it: the words of the chat have its colours
    price     of what is wanted; None until it is known
    number    of the last `Attend`; running: it is being computed
    problem   why it could not be computed, "" if it could
    shown     the last result, with the choice applied

    Its methods give what is wanted or known after something has happened.
    """

    spot: Spot | None = None
    scope: Scope = Scope.TOKEN
    choice: Choice = Choice()
    is_open: bool = False
    price: AttentionPreview | None = None
    number: int = 0
    running: bool = False
    problem: str = ""
    shown: Shown | None = None

    def looked_from(self, spot: Spot | None) -> Looking:
        """Another token is looked from."""
        return self if spot == self.spot else replace(self, spot=spot, price=None, problem="")

    def of_scope(self, scope: Scope) -> Looking:
        """The attention of other tokens is wanted."""
        return self if scope is self.scope else replace(self, scope=scope, price=None, problem="")

    def of_choice(self, choice: Choice) -> Looking:
        """Other layers or heads are wanted. The result has all of them; what it does not have is not chosen."""
        if choice == self.choice:
            return self
        if self.shown is None:
            return replace(self, choice=choice)
        choice = _possible(choice, self.shown.attended)
        return replace(self, choice=choice, shown=Shown(self.shown.attended, choice))

    def watched(self, *, is_open: bool) -> Looking:
        """Somebody looks at it, or nobody."""
        return self if is_open == self.is_open else replace(self, is_open=is_open)

    def begun(self) -> Looking:
        """It is computed from now on, as the next number."""
        return replace(self, number=self.number + 1, running=True, problem="")

    def priced(self, price: AttentionPreview) -> Looking:
        """What it would cost."""
        return replace(self, price=price)

    def answered(self, attended: Attended) -> Looking:
        """A result; of what is not wanted any more nothing is shown."""
        if attended.number != self.number:
            return self
        choice = _possible(self.choice, attended)
        return replace(self, running=False, choice=choice, shown=Shown(attended, choice))

    def failed(self, command: Attend, sentence: str) -> Looking:
        """It could not be computed."""
        return replace(self, running=False, problem=sentence) if command.number == self.number else self

    def stopped(self) -> Looking:
        """A person stopped it; a result that still comes is not wanted."""
        return replace(self, running=False, number=self.number + 1)

    def over(self) -> Looking:
        """No work is under way any more: what had no result was cancelled."""
        return replace(self, running=False) if self.running else self

    def forgotten(self) -> Looking:
        """Another conversation is shown, or its cells are gone; a result that still comes is not wanted."""
        kept = replace(Looking(), scope=self.scope, choice=self.choice, is_open=self.is_open, number=self.number)
        return self if kept == self else replace(kept, number=self.number + 1)


def _possible(choice: Choice, attended: Attended) -> Choice:
    layer = choice.layer if any(one.layer == choice.layer for one in attended.layers) else None
    n_heads = max((one.n_heads for one in attended.layers if layer in (None, one.layer)), default=0)
    head = choice.head if choice.head is not None and choice.head < n_heads else None
    return replace(choice, layer=layer, head=head)


class Shown:
    """A result with a choice of layers and heads. Frozen.

    weights   float32, shape (columns,): what each column got from all tokens together
    sinks     bool, shape (columns,): of all layers and heads, since one alone may have a good reason; of fewer than
              `FIRST` tokens only among the first columns
    chosen    float32, shape (columns,): by what share of tokens and of the chosen layers the indexer chose the column;
              None if they have no indexer
    caches    numbers of the caches in which the chosen layers have their K, and of that with the keys of their indexer
    """

    def __init__(self, attended: Attended, choice: Choice) -> None:
        self.attended, self.choice = attended, choice
        only = () if choice.layer is None else (choice.layer,)
        heads = () if choice.head is None else (choice.head,)
        self.weights = received(combined(attended.layers, choice.how, only=only, heads=heads))
        self.sinks = sinks(attended.layers, self.n_tokens)
        if self.n_tokens < FIRST:  # of few tokens nobody knows whether they look there whatever the text says
            self.sinks[FIRST:] = False
        self.chosen = chosen(attended.layers, self.n_tokens, only=only)
        self.caches = frozenset(layer.cache for layer in attended.layers if not only or layer.layer in only)
        if self.chosen is not None and len(attended.columns.cells) > 1:
            self.caches |= {1}  # it is behind the first one (`CacheName`), unless its keys lie in the cells of that

    @property
    def seq_id(self) -> int:
        return self.attended.queries.seq_id

    @property
    def n_tokens(self) -> int:
        """Tokens whose attention it is."""
        return len(self.attended.pos)

    @property
    def spot(self) -> int | None:
        """The position that it is looked from, if that is one token."""
        return int(self.attended.pos[-1]) if self.n_tokens == 1 or self.attended.queries.each else None

    @cached_property
    def most(self) -> float:
        """Upper end of the scale of colours, for one token: 1, 2 or 5 times a power of ten, sinks left out."""
        others = self.weights[~self.sinks]
        return _rounded_up(float(others.max(initial=0.0)) / self.n_tokens or 1.0)

    @cached_property
    def left_out(self) -> NDArray[np.bool_]:
        """The columns that the indexer never chose, none without an indexer."""
        return np.zeros(len(self.weights), np.bool_) if self.chosen is None else self.chosen == 0

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends of the scale in words."""
        return f"≤ {limit(self.most / 10**DECADES)}", limit(self.most)

    @cached_property
    def _total(self) -> float:
        """What does not go to sinks."""
        return float(self.weights[~self.sinks].sum(dtype=np.float64)) or 1.0

    def share(self, column: int) -> float:
        """Of what does not go to sinks."""
        return float(self.weights[column]) / self._total

    def steps(self, n_steps: int) -> NDArray[np.uint8]:
        """Of each column, 0 to `n_steps` - 1; sinks at the upper end."""
        found = steps_of(self.weights / np.float32(self.n_tokens), self.most, n_steps)
        found[self.sinks] = n_steps - 1
        return found

    def rows(self) -> list[int]:
        """The columns that got most, the most first."""
        return top(self.weights, N_ROWS)

    def cell(self, column: int) -> tuple[int, int]:
        """Cache and cell of a column, in the first of its caches that still has it; (0, -1) if none has."""
        for cache in sorted(self.caches):
            if (cell := int(self.attended.columns.cells[cache][column])) >= 0:
                return cache, cell
        return 0, -1

    def column_of(self, pos: int) -> int | None:
        """The column of a position."""
        found = np.flatnonzero(self.attended.columns.pos == pos)
        return int(found[0]) if found.size else None

    def cells_in(self, cache: int, stream_index: int, stream: StreamMap) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cells of a stream, and the column of each: those that still hold what was looked at."""
        columns = self.attended.columns
        if cache not in self.caches or stream_index != columns.stream:
            none = np.zeros(0, np.int64)
            return none, none
        cells = columns.cells[cache].astype(np.int64)
        at = np.flatnonzero((cells >= 0) & (cells < stream.high_water))
        held = holds(stream, cells[at], columns.pos[at], columns.token[at], self.seq_id)
        return cells[at[held]], at[held]

    def is_stale(self, snapshot: CacheSnapshot) -> bool:
        """Whether some cell that was looked at holds something else now, or nothing."""
        columns = self.attended.columns
        for cache in self.caches:
            if cache >= len(snapshot.maps) or columns.stream >= len(snapshot.maps[cache].streams):
                return True
            stream = snapshot.maps[cache].streams[columns.stream]
            if len(self.cells_in(cache, columns.stream, stream)[0]) < int((columns.cells[cache] >= 0).sum()):
                return True
        return False


def holds(
    stream: StreamMap, cells: NDArray[np.int64], pos: NDArray[np.int32], token: NDArray[np.int32], seq_id: int
) -> NDArray[np.bool_]:
    """Whether cells hold these positions and tokens of a sequence; a token of -1 is any."""
    known = (token < 0) | (stream.token[cells] == token)
    held: NDArray[np.bool_] = (stream.pos[cells] == pos) & known & seq_has(stream.seq_bits, seq_id)[cells]
    return held


def steps_of(weights: NDArray[np.float32], most: float, n_steps: int) -> NDArray[np.uint8]:
    """0 to `n_steps` - 1 on a logarithmic scale that ends at `most` and begins `DECADES` below it."""
    least = most * 10.0**-DECADES
    found = np.log10(np.maximum(weights, np.float32(least)) * np.float32(1 / least))
    found *= np.float32(n_steps / DECADES)
    return np.minimum(found, n_steps - 1).astype(np.uint8)


def queries_of(spot: Spot, scope: Scope, spans: MessageSpans | None, pos_max: int) -> Queries:
    """What is asked for. `spans`: the messages of the sequence; `pos_max`: its last position."""
    pos = min(spot.pos, pos_max)
    if scope is Scope.LAST:
        return Queries(spot.seq_id, max(pos - N_LAST + 1, 0), pos + 1, each=True)
    found = span_at(spans, pos) if spans is not None and scope is Scope.ANSWER else None
    if found is not None:
        return Queries(spot.seq_id, found[1].p0, min(found[1].p1, pos_max + 1))
    return Queries(spot.seq_id, pos, pos + 1)


def percent(share: float) -> str:
    """With two digits that count: "0.03 %", "4.1 %", "37 %"."""
    value = 100 * share
    if value >= 9.95:
        return f"{value:.0f} %"
    digits = 1 if value >= 0.995 else min(1 - floor(log10(value)), 6) if value > 0 else 0
    return f"{value:.{digits}f} %"


def limit(share: float) -> str:
    """A limit of a scale: "0.02 %"."""
    return f"{100 * share:g} %"


def token_words(token: int, texts: Mapping[int, str]) -> str:
    """The text of a token with its blanks to be seen, else its number."""
    text = texts.get(token)
    return visible(text) if text is not None else tr("token {token}").format(token=f"{token:,}")


def indexer_words(shown: Shown, column: int) -> tuple[str, ...]:
    """Whether the indexer chose a column, in some words; () without an indexer."""
    if shown.chosen is None:
        return ()
    share = float(shown.chosen[column])
    if share in (0, 1):
        return (tr("chosen by the indexer") if share else tr("left out by the indexer"),)
    return (tr("chosen by the indexer in {percent} of the cases").format(percent=percent(share)),)


def column_words(shown: Shown, column: int, texts: Mapping[int, str]) -> str:
    """What a column got, in a sentence."""
    columns = shown.attended.columns
    word = token_words(int(columns.token[column]), texts)
    if shown.sinks[column]:
        said = tr("{word}: {percent} of the attention; a sink, which gets it whatever the text says")
    else:
        said = tr("{word}: {percent} of the attention")
    said = said.format(word=word, percent=percent(float(shown.weights[column]) / shown.n_tokens))
    return tr("; ").join((said, *indexer_words(shown, column)))


def attention_at(shown: Shown, cache: int, stream_index: int, stream: StreamMap, cell: int) -> tuple[str, ...]:
    """What a cell got, in some words; () where it was not looked at."""
    cells, columns = shown.cells_in(cache, stream_index, stream)
    found = columns[cells == cell]
    if not found.size:
        return ()
    column = int(found[0])
    share = percent(float(shown.weights[column]) / shown.n_tokens)
    words = tr("{percent} of the attention, a sink") if shown.sinks[column] else tr("{percent} of the attention")
    return words.format(percent=share), *indexer_words(shown, column)


@dataclass(frozen=True, slots=True)
class Word:
    """Characters `[first, last)` of a message, the column that they are, and the step of their colour."""

    first: int
    last: int
    column: int
    step: int


def words_of(shown: Shown, span: MessageSpan, n_steps: int) -> tuple[Word, ...]:
    """The words of a message that have a colour: step 0 has none. The steps rise with the root of what a word got, so
    that a few of them stand out.
    """
    roots = np.sqrt(shown.weights / np.float32(shown.n_tokens * shown.most)) * n_steps
    steps = np.where(shown.sinks, n_steps - 1, np.minimum(roots, n_steps - 1)).astype(np.int64)
    pos = shown.attended.columns.pos
    first, end = np.searchsorted(pos, (span.text_p0, span.text_p0 + len(span.char_ends)))
    found = []
    for column in range(int(first), int(end)):
        begin, last = characters(span, int(pos[column]))
        if steps[column] and begin < last:
            found.append(Word(begin, last, column, int(steps[column])))
    return tuple(found)


def characters(span: MessageSpan, pos: int) -> tuple[int, int]:
    """Characters of a message that the token at a position completes."""
    i = pos - span.text_p0
    return (span.char_ends[i - 1] if i else 0), span.char_ends[i]


def position_at(span: MessageSpan, character: int) -> int | None:
    """The position of the token that completes a character of a message; None if that is not known."""
    i = bisect_right(span.char_ends, character)
    return span.text_p0 + i if i < len(span.char_ends) else None


def _rounded_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(value))
    return next((step * power for step in (1, 2, 5) if step * power >= value * 0.999999), 10 * power)
