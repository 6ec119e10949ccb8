"""The answers that are being generated, and their text so far."""

import time
from collections.abc import Iterator

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.call_format import CallFormat
from kvdesk.message import NO_STATS, ConversationId, Message, MessageId
from kvdesk.protocol.chat import TextDelta, TokenLogprobs, TurnStarted
from kvdesk.protocol.logprobs import pack, places, unknown, unpack
from kvdesk.reasoning import ThoughtClock
from kvdesk.values import dataclass, field, replace


@dataclass(slots=True)
class RunningAnswer:
    """An answer that is being generated.

    message        as it was when it began, or was continued
    replaces       the end of the branch that was shown before, when this is another answer to a question in it, or
                   continues a copy of one
    before         the answer as it was, when it is continued; `continued`: the ids of its text
    parts, tokens  what has come since; logprobs: of these tokens, where they were asked for
    form, tools    how it calls tools, and those that it may call
    """

    message: Message
    replaces: MessageId | None = None
    before: Message | None = None
    continued: tuple[int, ...] = ()
    parts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    clock: ThoughtClock = field(default_factory=ThoughtClock)
    form: CallFormat | None = None
    tools: str = ""

    def so_far(self) -> Message:
        tokens, thought_ms = (*self.continued, *self.tokens), self.message.thought_ms or self.clock.ms
        text = self.message.text + "".join(self.parts)
        return replace(self.message, text=text, tokens=tokens, thought_ms=thought_ms)

    def final(self) -> Message:
        """As it is once no more will come: with how likely its tokens were, as far as that was asked for."""
        return replace(self.so_far(), probabilities=self._probabilities())

    def _probabilities(self) -> bytes:
        known = unpack(self.message.probabilities)
        if not (known or self.logprobs):
            return b""
        before: tuple[TokenLogprobs, ...] = ()
        text = self.message.text
        if self.before is not None:
            before = known[: common_prefix(self.before.tokens, self.continued)]
            text = text[places(before, text)[-1][1] if before else 0 :]
        again = unknown(len(self.continued) - len(before), text)
        return pack([*before, *again, *(self.logprobs or unknown(len(self.tokens), "".join(self.parts)))])


class RunningAnswers:
    """All of them, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._answers: dict[MessageId, RunningAnswer] = {}
        self._grown: set[MessageId] = set()  # since `take_grown`

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[RunningAnswer]:
        return iter(self._answers.values())

    @property
    def conversations(self) -> set[ConversationId]:
        """Those that are answered."""
        return {r.message.conversation for r in self._answers.values()}

    def of(self, conversation: ConversationId) -> list[MessageId]:
        """Those of one conversation."""
        return [r.message.id for r in self._answers.values() if r.message.conversation == conversation]

    def so_far(self, message: Message) -> Message:
        """A message with the text that has come so far, if it is an answer that is running."""
        running = self._answers.get(message.id)
        return message if running is None else running.so_far()

    def start(self, answer: Message, replaces: MessageId | None) -> None:
        self._answers[answer.id] = RunningAnswer(answer, replaces)

    def go_on(self, answer: Message, before: Message, replaces: MessageId | None) -> None:
        """An answer is continued: from now on it is `answer`, with the text of `before` so far."""
        self._answers[answer.id] = RunningAnswer(answer, replaces, before, before.tokens)

    def offer(self, answer: MessageId, tools: str) -> None:
        """The tools that an answer may call, as in `Generate`."""
        self._answers[answer].tools = tools

    def started(self, event: TurnStarted) -> None:
        """The back end has begun: which ids those of the answer are, so that they mean something after a crash too."""
        if (running := self._answers.get(event.answer)) is None:
            return
        if running.before is not None:
            running.continued = event.continued
        running.form = event.calls
        if event.vocab:
            began = replace(NO_STATS, vocab=event.vocab, marks=event.marks)
            stats = began.after(running.before.stats if running.before is not None else None)
            running.message = replace(running.message, stats=stats)

    def append(self, delta: TextDelta) -> None:
        """Nothing where the answer is not known, such as of a conversation that was deleted."""
        if (running := self._answers.get(delta.answer)) is not None:
            running.parts.append(delta.text)
            if running.before is None:  # else the reasoning may have begun long ago
                running.clock.take(delta.text, time.monotonic(), running.message.marks)
            running.tokens += delta.tokens
            running.logprobs += delta.logprobs
            self._grown.add(delta.answer)

    def begin_anew(self) -> set[ConversationId]:
        """Their texts come again from the beginning. Returns their conversations."""
        for running in self._answers.values():
            running.parts.clear()
            running.tokens.clear()
            running.logprobs.clear()
        self._grown.clear()  # what was reported of them is more than is known now
        return self.conversations

    def end(self, answer: MessageId) -> RunningAnswer | None:
        """It is no longer among them; None if it was not."""
        self._grown.discard(answer)
        return self._answers.pop(answer, None)

    def take_grown(self) -> tuple[Message, ...]:
        """Those that became longer since this was asked last."""
        grown = tuple(self._answers[answer].so_far() for answer in self._grown)
        self._grown.clear()
        return grown
