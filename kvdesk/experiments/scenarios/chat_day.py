"""A generated day of chats, as a history: the same one for the same seed and numbers.

Of ten turns seven continue the chat of the previous turn, one or two return to any chat of the day, one begins a new
chat, and the rest branch off an earlier turn. Now and then a chat other than the last is deleted. Lengths of prompts
and answers are log-normal around the given ones (sigma 0.5, at least 2 tokens): many short ones, few long ones. After a
turn or a deletion, 2 to 20 seconds pass without a request. Chats begin with the same system prompt. Chats of yesterday
may be loaded from saved states, one after another.

The cache is kept as kvdesk does it. A chat that begins or continues takes the longest prefix that another sequence
holds (`llama_memory_seq_cp`) and reads the rest. If cells or sequences are short, the least recently used chat is
evicted, and is read again when it continues, because its state was not saved.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import UserError
from kvdesk.experiments.scenarios.history import Copied, Event, History, Kept, Loaded, Paused, Read, Wrote
from kvdesk.translation import tr
from kvdesk.values import dataclass, field

SIGMA = 0.5
STAYS, BACK, NEW = 0.7, 0.15, 0.1  # of the turns; the others branch
PAUSE_S = 2.0, 20.0


@dataclass(frozen=True, slots=True)
class Day:
    """How much happens.

    turns           questions with their answers
    n_seq, n_cells  sequences and cells that there are
    system          tokens of the system prompt; prompt, answer: the middle lengths
    deleted_every   turns after which a chat is deleted
    """

    turns: int
    n_seq: int
    n_cells: int
    system: int
    prompt: int
    answer: int
    deleted_every: int = 10


@dataclass(slots=True, eq=False)
class _Chat:
    """Its tokens, how many there were after each turn, and its sequence: -1 while it is not in the cache."""

    tokens: list[int]
    ends: list[int] = field(default_factory=list)
    seq_id: int = -1
    used_at: int = 0


def chat_day(day: Day, draw: Callable[[int], list[int]], seed: int, yesterday: Sequence[Sequence[int]] = ()) -> History:
    """draw: returns a number of token ids; yesterday: the chats that exist in the morning, at most `n_seq`, which fit.

    Raises UserError if a turn does not fit.
    """
    return _Maker(day, draw, seed).make(yesterday)


class _Maker:
    def __init__(self, day: Day, draw: Callable[[int], list[int]], seed: int) -> None:
        self._day, self._draw = day, draw
        self._random = np.random.default_rng(seed)
        self._chats: list[_Chat] = []
        self._events: list[Event] = []
        self._cells: dict[int, list[int]] = {}  # numbers of the cells of each sequence; copies have the same
        self._n_written = self._clock = 0
        self._system = draw(day.system)

    def make(self, yesterday: Sequence[Sequence[int]]) -> History:
        for seq_id, tokens in enumerate(yesterday):
            self._chats.append(_Chat(list(tokens), [len(tokens)], seq_id))
            self._events.append(Loaded(seq_id, tuple(tokens)))
            self._write(seq_id, len(tokens))
        chat: _Chat | None = None
        for turn in range(self._day.turns):
            if turn and turn % self._day.deleted_every == 0 and len(self._chats) > 1:
                self._delete(self._any([other for other in self._chats if other is not chat]))
                self._pause()
            chat = self._next(chat)
            self._turn(chat)
            self._pause()
        return tuple(self._events)

    def _next(self, current: _Chat | None) -> _Chat:
        kind = self._random.random()
        if current is not None and kind < STAYS:
            return current
        if self._chats and kind < STAYS + BACK:
            return self._any(self._chats)
        if self._chats and kind >= STAYS + BACK + NEW:
            parent = self._any(self._chats)
            chat = _Chat(parent.tokens[: parent.ends[int(self._random.integers(len(parent.ends)))]])
        else:
            chat = _Chat(list(self._system))
        self._chats.append(chat)
        return chat

    def _turn(self, chat: _Chat) -> None:
        prompt, answer = self._draw(self._length(self._day.prompt)), self._draw(self._length(self._day.answer))
        if len(chat.tokens) + len(prompt) + len(answer) > self._day.n_cells:  # too long: it begins again
            self._leave(chat)
            chat.tokens, chat.ends = list(self._system), []
        self._clock += 1
        chat.used_at = self._clock
        chat.tokens += prompt
        if chat.seq_id < 0:
            self._enter(chat)
        rest = chat.tokens[len(self._cells.get(chat.seq_id, [])) :]
        self._make_room(len(rest) + len(answer), chat)
        self._events += [Read(chat.seq_id, tuple(rest)), Wrote(chat.seq_id, tuple(answer))]
        self._write(chat.seq_id, len(rest) + len(answer))
        chat.tokens += answer
        chat.ends.append(len(chat.tokens))

    def _enter(self, chat: _Chat) -> None:
        """A sequence for the chat, with the longest prefix that is in the cache; its last token is always read."""
        inside = [other for other in self._chats if other.seq_id >= 0]
        if len(inside) == self._day.n_seq:
            self._leave(min(inside, key=lambda other: other.used_at))
        taken = {other.seq_id for other in self._chats}
        chat.seq_id = next(s for s in range(self._day.n_seq) if s not in taken)
        found = [
            (common_prefix(other.tokens, chat.tokens[:-1]), -other.seq_id) for other in inside if other.seq_id >= 0
        ]
        n, source = max(found, default=(0, 0))
        if n:
            self._events.append(Copied(-source, chat.seq_id, n))
            self._cells[chat.seq_id] = self._cells[-source][:n]

    def _make_room(self, n: int, chat: _Chat) -> None:
        while len({cell for cells in self._cells.values() for cell in cells}) + n > self._day.n_cells:
            others = [other for other in self._chats if other.seq_id >= 0 and other is not chat]
            if not others:
                raise UserError(
                    tr("A turn of {n:,} tokens does not fit into {cells:,} cells: choose more cells.").format(
                        n=len(self._cells.get(chat.seq_id, ())) + n, cells=self._day.n_cells
                    )
                )
            self._leave(min(others, key=lambda other: other.used_at))

    def _leave(self, chat: _Chat) -> None:
        if chat.seq_id >= 0:
            self._events.append(Kept(chat.seq_id, 0))
            del self._cells[chat.seq_id]
            chat.seq_id = -1

    def _delete(self, chat: _Chat) -> None:
        self._leave(chat)
        self._chats.remove(chat)

    def _write(self, seq_id: int, n: int) -> None:
        self._cells.setdefault(seq_id, []).extend(range(self._n_written, self._n_written + n))
        self._n_written += n

    def _pause(self) -> None:
        self._events.append(Paused(round(float(self._random.uniform(*PAUSE_S)), 1)))

    def _any(self, chats: Sequence[_Chat]) -> _Chat:
        return chats[int(self._random.integers(len(chats)))]

    def _length(self, middle: int) -> int:
        return max(2, round(float(self._random.lognormal(np.log(middle), SIGMA))))
