"""A history: what the sequences in a cache held, event by event, whatever cells they had. Plain values.

A sequence is its tokens from position 0 on. The same events come from a generator and from a recorded run, and can be
played with llama.cpp or put to a simulated cache.
"""

from collections.abc import Iterable, Iterator

from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Read:
    """Tokens of a prompt, computed in batches, behind those that the sequence holds."""

    seq_id: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wrote:
    """Tokens of an answer, computed one after another."""

    seq_id: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Tokens from a saved state: nothing is computed."""

    seq_id: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copied:
    """`target`, which holds a part of them or nothing, gets the first `n` tokens of `source` (llama_memory_seq_cp)."""

    source: int
    target: int
    n: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Only the first `n` tokens stay; 0: the sequence is removed (llama_memory_seq_rm)."""

    seq_id: int
    n: int


@dataclass(frozen=True, slots=True)
class Slid:
    """`n` tokens from `start` on are removed and those behind them move up (a context shift)."""

    seq_id: int
    start: int
    n: int


@dataclass(frozen=True, slots=True)
class Paused:
    """Nothing is requested for `seconds`."""

    seconds: float


Event = Read | Wrote | Loaded | Copied | Kept | Slid | Paused
History = tuple[Event, ...]


class Sequences:
    """The tokens of every sequence that holds any, after the events so far."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[int]] = {}

    def follow(self, event: Event) -> None:
        """Raises KeyError if the event is about a sequence that holds nothing."""
        match event:
            case Read(seq_id, tokens) | Wrote(seq_id, tokens) | Loaded(seq_id, tokens):
                self.tokens.setdefault(seq_id, []).extend(tokens)
            case Copied(source, target, n):
                self.tokens[target] = self.tokens[source][:n]
            case Kept(seq_id, n):
                del self.tokens[seq_id][n:]
                if not n:
                    del self.tokens[seq_id]
            case Slid(seq_id, start, n):
                del self.tokens[seq_id][start : start + n]
            case Paused():
                pass


def each_token(history: Iterable[Event]) -> Iterator[Event]:
    """The same with an event for each token of an answer."""
    for event in history:
        if isinstance(event, Wrote):
            yield from (Wrote(event.seq_id, (token,)) for token in event.tokens)
        else:
            yield event


def joined(history: Iterable[Event]) -> Iterator[Event]:
    """The same with one event for neighbours that go on in the same way."""
    last: Event | None = None
    for event in history:
        match last, event:
            case (Read(a, before), Read(b, tokens)) if a == b:
                last = Read(a, before + tokens)
            case (Wrote(a, before), Wrote(b, tokens)) if a == b:
                last = Wrote(a, before + tokens)
            case (Paused(first), Paused(second)):
                last = Paused(first + second)
            case _:
                if last is not None:
                    yield last
                last = event
    if last is not None:
        yield last
