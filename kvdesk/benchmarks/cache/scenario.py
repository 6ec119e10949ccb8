"""The parts of the scenarios of `kvdesk bench cache`: fresh engines that are audited when done, and outcomes.

Owns no measurement.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kvdesk.chat import TurnStats
from kvdesk.errors import UserError
from kvdesk.experiments.threshold import Threshold
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import CloseConversation, Generate, LoadModel, LocalFile, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.settings import CachePolicy, ContextSettings, Sampling

E = TypeVar("E", bound=Event)
STEADY = CachePolicy(follow_load=False)
"""The number of threads stays: it changes the order of sums, and these scenarios compare texts token for token."""


@dataclass(slots=True)
class Bench:
    """One scenario's surroundings. `audits`: the state of every engine's map when it was done with."""

    path: Path
    settings: ContextSettings
    rounds: int
    say: Callable[[str], None]
    audits: list[str] = field(default_factory=list)

    @contextmanager
    def engine(
        self, policy: CachePolicy = STEADY, folder: Path | None = None, settings: ContextSettings | None = None
    ) -> Iterator[HeadlessEngine]:
        """A fresh engine with the model loaded; its whole cache is audited at the end, then it is closed.

        As in the window no garbage is looked for between two tokens.
        """
        headless, collects = HeadlessEngine(), gc.isenabled()
        gc.disable()
        try:
            headless.do(UsePolicy(policy, folder))
            headless.do(LoadModel(LocalFile(self.path), settings or self.settings))
            yield headless
            verification = session_of(headless).runtime.context.auditor.audit(whole=True)
            wrong = f": {verification.detail}" if verification.state != "verified" else ""
            self.audits.append(f"{verification.state}{wrong}")
        finally:
            headless.close()
            if collects:
                gc.enable()

    @property
    def audited(self) -> str:
        """ "verified" when every engine was."""
        return next((audit for audit in self.audits if audit != "verified"), "verified" if self.audits else "none")


def tokens_of(headless: HeadlessEngine, chat: HeadlessChat) -> list[int]:
    """The prompt that the chat's messages make now."""
    prompts = session_of(headless).loaded.prompts
    if prompts is None:
        raise UserError("This model cannot chat, so its cache cannot be measured with conversations.")
    return prompts.tokens(chat.messages)


def text_of_tokens(headless: HeadlessEngine, n_tokens: int) -> str:
    """About so many tokens of text that means nothing much."""
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


def same(pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Threshold:
    """The share of answers that are token for token those of a fresh prefill: all of them."""
    return Threshold(sum(a == b for a, b in pairs) / len(pairs), 1.0, at_least=True)


def of(events: list[Event], kind: type[E]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def ended(headless: HeadlessEngine, commands: list[Generate]) -> list[TurnStats]:
    """How these answers ended; their conversations are closed. Raises UserError where one was not completed."""
    over = of(headless.events, TurnEnded)
    if len(over) != len(commands) or any(e.state != "complete" for e in over):
        raise UserError("; ".join(e.note for e in over if e.note) or "An answer did not come to its end.")
    for command in commands:
        headless.do(CloseConversation(command.conversation))
    return [e.stats for e in over]
