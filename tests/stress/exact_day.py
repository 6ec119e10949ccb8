"""A day with *Exact answers*: chats that are continued, forked, edited and full, operations by hand, states that leave
and come back, a restart, four requests at once. Each answer is asked for again in an empty cache of a second engine.
"""

import contextlib
from pathlib import Path
from random import Random

from kvdesk.cache.compaction import Layout
from kvdesk.errors import UserError
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.message import Message, MessageId, new_conversation_id, new_message_id
from kvdesk.protocol import operations as ops
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import Generate, LoadModel, TextDelta
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings, Overflow, Sampling

SETTINGS = ContextSettings(n_ctx=512, n_seq_max=4, n_batch=128, n_ubatch=64, n_threads=2, n_threads_batch=2, exact=True)
"""Soon full: chats are evicted, and one of them has more messages than fit."""
GREEDY = Sampling(temperature=0.0, max_tokens=12)
WORDS = ("puffin", "gull", "lamp", "rain", "glass", "whale", "harbour", "winter", "über", "海")
CHATS, AT_ONCE = 5, 4


class Day:
    """The chats, on an engine that is started again between them."""

    def __init__(self, model: Path, folder: Path) -> None:
        self._model, self._folder, self._random = model, folder, Random(0)
        self._headless, self._empty = self._started(folder / "day"), self._started(folder / "empty")
        policies = [Overflow.RECOMPUTE, *[Overflow.STOP] * (CHATS - 1)]
        self._chats = [HeadlessChat(self._headless, f"You are number {i}.", p) for i, p in enumerate(policies)]
        self.pairs: list[tuple[str, str]] = []

    def live(self, n: int) -> None:
        """One of everything, and `n` more. `pairs` are the answers, and those of an empty cache."""
        acts = [self._answer, self._fork, self._edit, self._by_hand, self._swap, self._four, self._restart]
        for act in [*acts, *self._random.choices(acts, (8, 1, 2, 3, 3, 1, 1), k=n)]:
            act()
            self._headless.engine.idle()
        self._headless.close()
        self._empty.close()

    # --- private ------------------------------------------------------------------------------------------------------

    def _started(self, folder: Path) -> HeadlessEngine:
        headless = HeadlessEngine()
        headless.do(UsePolicy(CachePolicy(follow_load=False), folder))
        headless.do(LoadModel(LocalFile(self._model), SETTINGS))
        return headless

    def _any(self) -> HeadlessChat:
        return self._random.choice(self._chats)

    def _question(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 30)))

    def _answer(self, chat: HeadlessChat | None = None) -> None:
        chat = chat or self._any()
        before, question = chat.messages, self._question()
        try:
            chat.answer(question, GREEDY)
        except UserError:  # it is full
            chat.messages = chat.messages[:3]
        else:
            self.pairs.append((chat.messages[-1].text, self._alone(before, question)))

    def _alone(self, before: list[Message], question: str) -> str:
        self._empty.do(ops.Operate(ops.ClearCache(), measured=False))
        chat = HeadlessChat(self._empty, overflow=Overflow.RECOMPUTE)
        chat.messages = before
        chat.answer(question, GREEDY)
        return chat.messages[-1].text

    def _fork(self) -> None:
        source = self._any()
        n = self._random.randrange(1, CHATS)
        self._chats[n] = HeadlessChat(self._headless)
        self._chats[n].messages = source.messages
        self._answer(self._chats[n])

    def _edit(self) -> None:
        chat = self._any()
        chat.messages = chat.messages[: max(1, len(chat.messages) - 2)]
        self._answer(chat)

    def _by_hand(self) -> None:
        seq_id, p0 = self._random.randrange(SETTINGS.n_seq_max), self._random.randrange(60)
        shift = self._random.choice((-3, 5))
        self._operate(
            self._random.choice(
                (
                    ops.RemoveRange(seq_id, p0, p0 + 20),
                    ops.ShiftPositions(seq_id, p0, -1, shift),
                    ops.Compact(Layout.KEEP_ORDER),
                    ops.ClearCache(),
                )
            )
        )
        self._answer()

    def _swap(self) -> None:
        self._operate(ops.SwapOut(self._any().id))
        self._operate(ops.SwapIn(self._any().id))
        self._answer()

    def _operate(self, operation: ops.HandOperation) -> None:
        """One that is refused changes nothing."""
        with contextlib.suppress(UserError):
            self._headless.do(ops.Operate(operation, measured=False))

    def _four(self) -> None:
        """New chats, which nobody goes on with."""
        told: dict[MessageId, str] = {}
        questions = [self._question() for _ in range(AT_ONCE)]
        for question in questions:
            conversation, answer = new_conversation_id(), new_message_id()
            asked = Message(new_message_id(), conversation, None, "user", question)
            told[answer] = ""
            self._headless.host.submit(Generate(conversation, answer, (asked,), GREEDY))
        self._headless.events = []
        self._headless.host.run_until_idle()
        for event in self._headless.events:
            if isinstance(event, TextDelta):
                told[event.answer] += event.text
        self.pairs += [
            (text, self._alone([], question)) for text, question in zip(told.values(), questions, strict=True)
        ]

    def _restart(self) -> None:
        self._headless.close()
        self._headless = self._started(self._folder / "day")
        for chat in self._chats:
            chat.headless = self._headless
        self._answer()
