"""The parts of the scenarios of `kvdesk bench cache`: conversations, fresh starts, and how answers ended.

Owns no measurement.
"""

from collections.abc import Sequence
from typing import TypeVar

from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import TurnStats
from kvdesk.protocol.chat import CloseConversation, Generate, TurnEnded
from kvdesk.protocol.experiment import Figure
from kvdesk.protocol.messages import Event
from kvdesk.settings import Sampling

E = TypeVar("E", bound=Event)


def tokens_of(headless: HeadlessEngine, chat: HeadlessChat) -> list[int]:
    """The prompt that the chat's messages make now."""
    prompts = session_of(headless).loaded.prompts
    if prompts is None:
        raise UserError("This model cannot chat, so its cache cannot be measured with conversations.")
    return prompts.tokens(chat.messages)


def text_of_tokens(headless: HeadlessEngine, n_tokens: int) -> str:
    """About `n` tokens of meaningless text."""
    words = "The keeper wrote down what the sea brought: a rope, a bottle, a plank, a shoe, and once a clock. "
    vocab = session_of(headless).loaded.model.vocab
    each = len(vocab.tokenize(words * 8, add_special=False, parse_special=False)) / 8
    return words * max(1, round(n_tokens / each))


def branch_of(headless: HeadlessEngine, chat: HeadlessChat, n_messages: int) -> HeadlessChat:
    """Another conversation that has the first messages of this one."""
    other = HeadlessChat(headless)
    other.messages = chat.messages[:n_messages]
    return other


def fresh(headless: HeadlessEngine, chat: HeadlessChat, sampling: Sampling) -> tuple[TurnEnded, tuple[int, ...]]:
    """The chat's last answer once more with nothing in the cache: how the turn ended, and its tokens."""
    for sequence in session_of(headless).runtime.cache_manager.pool:
        headless.do(CloseConversation(sequence.conversation))
    other = branch_of(headless, chat, len(chat.messages) - 2)
    ended = other.answer(chat.messages[-2].text, sampling)
    if ended.stats.reused_tokens:
        raise UserError("The cache was not empty: this is not a fresh prefill.")
    headless.do(CloseConversation(other.id))
    return ended, other.messages[-1].tokens


def same(name: str, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Figure:
    """The share of answers that are token for token those of a fresh prefill, which is to be all."""
    return all_of(name, [a == b for a, b in pairs])


def all_of(name: str, good: Sequence[bool]) -> Figure:
    """The share that is good, which is to be all."""
    return Figure(name, sum(good) / len(good)).at_least(1.0)


def of(events: list[Event], kind: type[E]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def ended(headless: HeadlessEngine, commands: list[Generate]) -> list[TurnStats]:
    """How these answers ended; their conversations are closed. Raises UserError if one was not completed."""
    over = of(headless.events, TurnEnded)
    if len(over) != len(commands) or any(e.state != "complete" for e in over):
        raise UserError("; ".join(e.note for e in over if e.note) or "An answer did not come to its end.")
    for command in commands:
        headless.do(CloseConversation(command.conversation))
    return [e.stats for e in over]
