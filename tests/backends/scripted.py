"""The smallest back end there can be: answers from a script, a word a step. It has no cells and speaks chat only."""

import time
from collections import deque
from collections.abc import Callable, Iterator

from kvdesk.backends.base import CLOSED, Emit
from kvdesk.message import MessageId, MessageState, TurnStats
from kvdesk.protocol import chat
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command
from kvdesk.protocol.model import ModelInfo


def echo(question: str) -> str:
    return f"You said: {question}"


class ScriptedBackend:
    """`answer` is what it says to the last message of a conversation. Several conversations are answered in turns."""

    features = frozenset({Feature.CHAT})

    def __init__(self, emit: Emit, answer: Callable[[str], str] = echo) -> None:
        self._emit, self._answer = emit, answer
        self.handled: list[Command] = []
        self._turns: deque[tuple[chat.Generate, Iterator[str], float, int]] = deque()
        self._stopped: set[MessageId] = set()

    @property
    def busy(self) -> bool:
        return bool(self._turns)

    @property
    def idle_work_due(self) -> bool:
        return False

    def handle(self, command: Command, at_s: float | None = None) -> None:
        self.handled.append(command)
        match command:
            case chat.LoadModel():
                self._emit(chat.ModelLoaded(ModelInfo(command.source, command.source.name)))
            case chat.Generate():
                words = iter(self._answer(command.messages[-1].text).split(" "))
                self._turns.append((command, words, at_s or time.perf_counter(), 0))
                self._emit(chat.TurnStarted(command.conversation, command.answer))
            case chat.CloseConversation():
                self._end_all("stopped", "", of=command)
            case chat.DropMessages():
                pass  # it holds nothing of them
            case _:
                raise AssertionError(f"{command} is no command of chat")

    def step(self) -> None:
        if not self._turns:
            return
        command, words, at_s, n = self._turns.popleft()
        word = None if command.answer in self._stopped else next(words, None)
        if word is None:
            self._end(command, n, "stopped" if command.answer in self._stopped else "complete")
            return
        text = f" {word}" if n else word
        self._emit(chat.TextDelta(command.conversation, command.answer, text, (n,)))
        self._turns.append((command, words, at_s, n + 1))

    def idle(self) -> None:
        pass

    def request_stop(self, answer: MessageId) -> None:
        self._stopped.add(answer)

    def request_cancel(self) -> None:
        pass

    def request_close(self) -> None:
        pass

    def close(self, note: str = "") -> None:
        self._end_all("interrupted", note or CLOSED)

    def give_up(self, note: str) -> tuple[Command, ...]:
        self._end_all("interrupted", note)
        return tuple(command for command in self.handled if isinstance(command, chat.LoadModel))[-1:]

    def _end_all(self, state: MessageState, note: str, of: chat.CloseConversation | None = None) -> None:
        for turn in list(self._turns):
            if of is None or turn[0].conversation == of.conversation:
                self._turns.remove(turn)
                self._end(turn[0], turn[3], state, note)

    def _end(self, command: chat.Generate, n_words: int, state: MessageState, note: str = "") -> None:
        self._stopped.discard(command.answer)
        stats = TurnStats(0, 0, 0, n_words, 0.0, 0.0, 0.0)
        self._emit(chat.TurnEnded(command.conversation, command.answer, state, stats, note))
