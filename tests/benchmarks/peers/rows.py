"""The rows of the table: what a person waits for, each measured on one peer at a time by the same requests.

A row asks chats of its own, whose texts no chat before had, so that nothing of them is in any cache.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tests.benchmarks.peers.peer import Answer, Peer, PeerFailed, Reading, answer

TURNS, TURN_TOKENS = 10, 24
STORY_TOKENS = 128
PROMPTS = (512, 2048)
MIDDLE = 1500
LONG = 2000
IN_TURN = 4
BESIDE_TOKENS, BESIDE_PIECES = 256, 16
"""The answer beside which a prompt is read: its greatest length, and how much of it has come before."""
STORY_S = 120.0
"""Seconds after which that answer is cut off: longer than the prompt takes on a busy laptop."""
OTHERS, OTHER_TOKENS = 8, 250
BRIEF = 4
QUESTION_TOKENS = 60
"""What a short question takes with its template, at most."""
STORY = "Explain to a curious child, in many sentences, how a lighthouse keeper spends a stormy night."
QUESTIONS = (
    "Which animals live near a lighthouse?",
    "What does its keeper eat in winter?",
    "How is the lamp kept clean?",
    "Why do ships need it at night?",
    "What happens in thick fog?",
    "Who brings the oil and the mail?",
    "How high do the waves get there?",
    "What can be heard inside the tower?",
    "Where does the keeper sleep?",
    "How did all that end?",
)
WORDS = "The keeper wrote down what the sea brought: a rope, a bottle, a plank, a shoe, and once a clock. "


class Measured(NamedTuple):
    """One value of a row. unit: "s", where less is better, or "tok/s". n_read: tokens of prompts that were computed for
    it, where the peer tells; how: what is known of how it came about, in words that follow the peer's name.
    """

    name: str
    value: float
    unit: str
    n_read: int | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a row. word_tokens: tokens of `WORDS`; number: another one for every row and round."""

    word_tokens: float
    number: int

    def chat(self, which: int = 0) -> str:
        """The name of a chat."""
        return f"{self.number}-{which}"

    def opening(self, which: int, question: str) -> str:
        """A first question that begins as no other one does."""
        return f"{self.number}.{which}: {question}"

    def long(self, which: int, n_tokens: int) -> str:
        """A first prompt of about so many tokens."""
        n_words = round((n_tokens - QUESTION_TOKENS / 2) / self.word_tokens * len(WORDS.split()))
        words = WORDS.split() * (n_words // len(WORDS.split()) + 1)
        return self.opening(which, " ".join(words[:n_words]))


@dataclass(frozen=True, slots=True)
class Row:
    """measure: what is asked of a peer; names: of its values, in their order."""

    id: str
    title: str
    names: tuple[str, ...]
    measure: Callable[[Peer, Texts], list[Measured]]


def _turns(peer: Peer, texts: Texts) -> list[Measured]:
    measured = []
    for turn in range(TURNS):
        text = QUESTIONS[turn] if turn else texts.opening(0, QUESTIONS[0])
        measured.append(_first(TURN_NAMES[turn], answer(peer, texts.chat(), text, TURN_TOKENS)))
    peer.forget(texts.chat())
    return measured


def _decode(peer: Peer, texts: Texts) -> list[Measured]:
    done = answer(peer, texts.chat(), texts.opening(0, STORY), STORY_TOKENS)
    peer.forget(texts.chat())
    if done.n_tokens < STORY_TOKENS // 4 and not done.cut:
        raise PeerFailed(f"{peer.name} ended its story after {done.n_tokens} tokens, too few to measure its speed.")
    return [Measured("one token after another", done.tok_s, "tok/s", how=done.how)]


def _prefill(sizes: Sequence[int], peer: Peer, texts: Texts) -> list[Measured]:
    measured = []
    for which, n in enumerate(sizes):
        measured.append(_first(_prompt_name(n), answer(peer, texts.chat(which), texts.long(which, n), 1)))
        peer.forget(texts.chat(which))
    return measured


def _prompt_name(n_tokens: int) -> str:
    return f"first token after {n_tokens:,} tokens"


def _in_turn(peer: Peer, texts: Texts) -> list[Measured]:
    later: list[Answer] = []
    for turn in range(IN_TURN):
        for which in (0, 1):
            text = QUESTIONS[2 * turn + which] if turn else texts.opening(which, QUESTIONS[which])
            done = answer(peer, texts.chat(which), text, TURN_TOKENS)
            if turn:
                later.append(done)
    for which in (0, 1):
        peer.forget(texts.chat(which))
    n_read = [done.n_read for done in later if done.n_read is not None]
    median = statistics.median(done.first_s for done in later)
    how = min(later, key=lambda done: abs(done.first_s - median)).how
    return [Measured(IN_TURN_NAME, median, "s", round(statistics.median(n_read)) if n_read else None, how)]


def _beside(peer: Peer, texts: Texts) -> list[Measured]:
    """A peer that answers one after the other lets the prompt wait: that is what is measured then."""
    with Reading(peer, texts.chat(0), texts.opening(0, STORY), BESIDE_TOKENS, STORY_S) as story:
        story.wait_for(BESIDE_PIECES)
        if story.over():
            raise PeerFailed(f"{peer.name} ended its story too early to read something beside it.")
        asked = time.perf_counter()
        done = answer(peer, texts.chat(1), texts.long(1, LONG), 1)
        first = done.times[0]
        over, problem, times = story.over(), story.answer.problem, list(story.answer.times)
        cut = story.answer.cut
        gap = story.answer.longest_gap_s(asked, min(first, times[-1]) if over else first)
        n_written = story.answer.n_between(asked, first)
    for which in (0, 1):
        peer.forget(texts.chat(which))
    if problem is not None:
        raise problem
    speed = max(1, n_written) / (first - asked)  # the one under way counts
    told_first = over and times[-1] <= first
    meanwhile = f"wrote {speed:.2g} tok/s of the answer meanwhile"
    prompt = f"brought the prompt's first token after {first - asked:.1f} s"
    if told_first:
        meanwhile = f"needed over {STORY_S:.0f} s for the answer before" if cut else "ended the answer before"
        prompt += f", when the answer had {'been cut off' if cut else 'ended'}"
    read, wrote, waited = BESIDE_NAMES
    return [
        _first(read, done, meanwhile),
        Measured(wrote, speed, "tok/s", how=prompt),
        Measured(waited, gap, "s", how=prompt),
    ]


def _back(peer: Peer, texts: Texts) -> list[Measured]:
    answer(peer, texts.chat(), texts.long(0, LONG), BRIEF)
    for which in range(1, OTHERS + 1):
        answer(peer, texts.chat(which), texts.long(which, OTHER_TOKENS), BRIEF)
    done = answer(peer, texts.chat(), QUESTIONS[1], BRIEF)
    for which in range(OTHERS + 1):
        peer.forget(texts.chat(which))
    return [_first(BACK_NAME, done)]


def _restarted(peer: Peer, texts: Texts) -> list[Measured]:
    if peer.no_restart:
        raise PeerFailed(f"{peer.no_restart[0].upper()}{peer.no_restart[1:]}.")
    answer(peer, texts.chat(), texts.long(0, LONG), BRIEF)
    peer.settle()
    peer.restart()
    done = answer(peer, texts.chat(), QUESTIONS[1], BRIEF)
    peer.forget(texts.chat())
    return [_first(RESTART_NAME, done)]


def _first(name: str, done: Answer, how: str = "") -> Measured:
    """how: what the row knows beside what the peer tells."""
    return Measured(name, done.first_s, "s", done.n_read, ", ".join(filter(None, (how, done.how))))


def _prompts(identity: str, title: str, sizes: Sequence[int]) -> Row:
    return Row(identity, title, tuple(map(_prompt_name, sizes)), partial(_prefill, sizes))


TURN_NAMES = tuple(f"first token of turn {turn + 1}" for turn in range(TURNS))
IN_TURN_NAME = "first token, two chats in turn"
BESIDE_NAMES = (f"first token after {LONG:,} tokens beside an answer", "that answer meanwhile", "its longest gap")
BACK_NAME = f"first token back in a chat of {LONG:,} tokens after {OTHERS} others"
RESTART_NAME = f"first token back in a chat of {LONG:,} tokens after a restart"

ROWS = (
    Row("turns", "ten turns of a chat", TURN_NAMES, _turns),
    Row("decode", "a long answer", ("one token after another",), _decode),
    _prompts("prefill", "long prompts", PROMPTS),
    _prompts("middle", "a prompt of middle length", (MIDDLE,)),
    Row("in-turn", "two chats in turn", (IN_TURN_NAME,), _in_turn),
    Row("beside", "a prompt beside an answer", BESIDE_NAMES, _beside),
    Row("return", "back after others", (BACK_NAME,), _back),
    Row("restart", "back after a restart", (RESTART_NAME,), _restarted),
)
