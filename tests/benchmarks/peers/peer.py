"""What is compared: a program that answers chats piece by piece, and the times of an answer as its reader sees them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kvdesk.errors import UserError

ENOUGH_S = 10.0
"""Seconds after its first piece when an answer is cut off: with two threads beside a busy process some peers write one
token in three seconds. Its first token and its speed are known by then.
"""


class PeerFailed(UserError):
    """A peer did not do what it was asked. gone: it will not do anything else either."""

    def __init__(self, sentence: str, detail: str = "", *, gone: bool = False) -> None:
        super().__init__(sentence, detail)
        self.gone = gone


class Piece(NamedTuple):
    """What came at once: text, and the tokens it was made of.

    Told with the last piece, where they are known: n_read, the tokens of the prompt that were computed; how, what else
    is known of how the answer was made, in words that follow the peer's name.
    """

    text: str
    n_tokens: int = 1
    n_read: int | None = None
    how: str = ""


class Peer(Protocol):
    """A program with a model. Several chats may be answered at once, each asked from a thread of its own.

    name        of the column
    about       what it is, a few words: version, model
    no_restart  why it cannot be started again, "" if it can
    """

    name: str
    about: str
    no_restart: str

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        """The next answer of a chat, at most `n_tokens` long, always the likeliest token. To close it is to stop the
        answer; what has come of it belongs to the chat. Raises PeerFailed.
        """

    def forget(self, chat: str) -> None:
        """Nothing will be asked in this chat any more."""

    def settle(self) -> None:
        """Wait until nothing computes that was left for a quiet moment."""

    def restart(self) -> None:
        """End it and start it anew, ready to answer. Raises PeerFailed."""

    def close(self) -> None: ...


def wrote_with(n_threads: int) -> str:
    """For `Piece.how`."""
    return f"wrote with {n_threads} thread{'s' if n_threads != 1 else ''}"


@dataclass(slots=True)
class Answer:
    """An answer as its reader saw it. Times are those of time.perf_counter().

    times    of every piece with text; n_told: the tokens it was made of
    n_read   tokens of the prompt that were computed; None if the peer does not tell
    how      see `Piece`
    cut      whether it was stopped before its end
    problem  why it failed
    """

    asked_s: float
    times: list[float] = field(default_factory=list)
    n_told: list[int] = field(default_factory=list)
    n_tokens: int = 0
    text: str = ""
    n_read: int | None = None
    how: str = ""
    cut: bool = False
    problem: PeerFailed | None = None

    @property
    def first_s(self) -> float:
        """Seconds until something could be read."""
        return self.times[0] - self.asked_s

    @property
    def tok_s(self) -> float:
        """Tokens per second from the first piece to the last."""
        return (self.n_tokens - 1) / (self.times[-1] - self.times[0])

    def n_between(self, start: float, end: float) -> int:
        """Tokens that came after `start` and until `end`."""
        return sum(n for at, n in zip(self.times, self.n_told, strict=False) if start < at <= end)

    def longest_gap_s(self, start: float, end: float) -> float:
        """Between two pieces that came from `start` to `end`, and these two."""
        times = [start, *(at for at in self.times if start < at < end), end]
        return max(b - a for a, b in itertools.pairwise(times))


def answer(
    peer: Peer,
    chat: str,
    text: str,
    n_tokens: int,
    stop: threading.Event | None = None,
    on_piece: Callable[[Answer], None] = lambda _answer: None,
    most_s: float = ENOUGH_S,
) -> Answer:
    """Ask and read to the end, until `stop` is set, or for `most_s` seconds after the first piece. Raises PeerFailed,
    also where not a word comes.
    """
    done = Answer(time.perf_counter())
    with closing(peer.ask(chat, text, n_tokens)) as pieces:
        for piece in pieces:
            if piece.text:
                done.times.append(time.perf_counter())
                done.n_told.append(piece.n_tokens)
                done.text += piece.text
            done.n_tokens += piece.n_tokens
            done.n_read = piece.n_read if piece.n_read is not None else done.n_read
            done.how = piece.how or done.how
            done.cut = bool(done.times and time.perf_counter() - done.times[0] > most_s)
            on_piece(done)
            if done.cut or (stop is not None and stop.is_set()):
                break
    if not done.times:
        raise PeerFailed(f"{peer.name} answered without a word.")
    return done


class Reading:
    """An answer that is read in a thread of its own, for `most_s` seconds at most. Use it as a context manager: it is
    stopped and over at the end.
    """

    def __init__(self, peer: Peer, chat: str, text: str, n_tokens: int, most_s: float = ENOUGH_S) -> None:
        self._stop, self._grown = threading.Event(), threading.Condition()
        self.answer = Answer(time.perf_counter())
        self._most_s = most_s
        self._over = False
        self._thread = threading.Thread(target=self._read, args=(peer, chat, text, n_tokens), daemon=True)
        self._thread.start()

    def wait_for(self, n_pieces: int) -> None:
        """Until so many pieces have come, or its end. Raises PeerFailed."""
        with self._grown:
            self._grown.wait_for(lambda: self._over or len(self.answer.times) >= n_pieces)
        if self.answer.problem is not None:
            raise self.answer.problem

    def over(self) -> bool:
        """Whether it has come to its end."""
        return self._over

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self, peer: Peer, chat: str, text: str, n_tokens: int) -> None:
        problem = None
        try:
            answer(peer, chat, text, n_tokens, self._stop, self._tell, self._most_s)
        except PeerFailed as error:
            problem = error
        with self._grown:
            self.answer.problem, self._over = problem, True
            self._grown.notify_all()

    def _tell(self, so_far: Answer) -> None:
        with self._grown:
            self.answer = so_far
            self._grown.notify_all()
