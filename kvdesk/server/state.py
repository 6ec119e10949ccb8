"""What a server knows of its engine: the model, the context, what runs, and counters since it began.

One reducer, `apply`. Changed on the server's event loop alone.
"""

from collections import OrderedDict
from typing import Final

from kvdesk.cache.reuse.score import Score, total
from kvdesk.message import MessageId, TurnStats
from kvdesk.protocol import chat
from kvdesk.protocol.cache import ContextInfo, ContextReady, LedgerRow, MemoryLedger, SpeedSample
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.model import ModelInfo
from kvdesk.values import dataclass, field

NAME_MARK: Final = " · "
"""Between a program and the label of its key, in the name of a client."""
_MOST_SCORES: Final = 200  # clients whose requests are scored; the latest


@dataclass(slots=True)
class Slot:
    """What a sequence of the cache is doing, or did last; tokens.

    task    number of the request since the server began
    client  the program that asks; "" a chat
    """

    task: int
    answer: MessageId
    n_prompt: int
    n_cached: int
    client: str = ""
    n_read: int = 0
    n_decoded: int = 0
    is_processing: bool = True


@dataclass(slots=True)
class Counters:
    """Since the server began, over all requests and chats; tokens and seconds."""

    prompt_tokens: int = 0
    prompt_tokens_cached: int = 0
    prompt_s: float = 0.0
    predicted_tokens: int = 0
    predicted_s: float = 0.0
    requests: int = 0
    prefix_hits: int = 0  # requests of which the cache had a part
    decodes: int = 0
    busy_slots: int = 0  # summed over decodes
    longest: int = 0
    drafted: int = 0
    accepted: int = 0

    def add(self, stats: TurnStats) -> None:
        """A request has ended."""
        if not stats.prompt_tokens:
            return  # it never began
        self.requests += 1
        self.prefix_hits += stats.reused_tokens > 0
        self.prompt_tokens += stats.prefilled_tokens
        self.prompt_tokens_cached += stats.reused_tokens
        self.prompt_s += prefill_ms(stats) / 1e3
        self.predicted_tokens += stats.generated_tokens
        self.predicted_s += decode_ms(stats) / 1e3
        self.drafted += stats.drafted_tokens
        self.accepted += stats.accepted_tokens
        self.longest = max(self.longest, stats.prompt_tokens + stats.generated_tokens)


def prefill_ms(stats: TurnStats) -> float:
    """How long the prompt was read."""
    return stats.prefilled_tokens / stats.prefill_tok_s * 1e3 if stats.prefill_tok_s else 0.0


def decode_ms(stats: TurnStats) -> float:
    """How long the tokens after the first took."""
    return (stats.generated_tokens - 1) / stats.decode_tok_s * 1e3 if stats.decode_tok_s else 0.0


@dataclass(slots=True)
class ServerState:
    """Everything at this moment. `loading`: a model is being opened;
    `ledger`: memory that model and context take; `scores`: by client, the latest last; `score_of_all`: of all clients.
    """

    model: ModelInfo | None = None
    context: ContextInfo | None = None
    loading: bool = False
    dead: bool = False
    slots: dict[int, Slot] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    ledger: tuple[LedgerRow, ...] = ()
    score_of_all: Score = field(default_factory=Score)
    scores: OrderedDict[str, Score] = field(default_factory=OrderedDict)
    _n_tasks: int = 0
    _by_answer: dict[MessageId, Slot] = field(default_factory=dict)

    def apply(self, event: Event, *, repeated: bool = False) -> None:
        """Take an event over. `repeated`: it was reported before events were lost."""
        match event:
            case chat.TurnStarted():
                self._start(event)
            case chat.PrefillProgress():
                if (slot := self._by_answer.get(event.answer)) is not None:
                    slot.n_read = event.done
            case chat.TextDelta():
                if (slot := self._by_answer.get(event.answer)) is not None:
                    slot.n_decoded = len(event.tokens) + (0 if repeated else slot.n_decoded)
            case chat.TurnEnded():
                self._end(event)
            case SpeedSample() if event.kind != "flush" and event.rc == 0:
                self.counters.decodes += 1
                self.counters.busy_slots += max(1, len(self._by_answer))
            case _:
                self._apply_engine(event)

    def _apply_engine(self, event: Event) -> None:
        match event:
            case chat.ModelLoading():
                self.loading = True
            case chat.ModelLoaded():
                self.model, self.loading = event.model, False
            case ContextReady():
                self.context = event.context
                self.slots = {seq: slot for seq, slot in self.slots.items() if slot.is_processing}
            case chat.EngineRestarted() | chat.EngineDied():
                self.model = self.context = None
                self.dead = isinstance(event, chat.EngineDied)
            case MemoryLedger():
                self.ledger = event.rows
            case CommandFailed(command=chat.LoadModel()):
                self.loading = False

    @property
    def ready(self) -> bool:
        """Whether requests can be answered."""
        return self.model is not None and not self.dead

    @property
    def n_parallel(self) -> int:
        """Sequences that there are: that many requests run at once."""
        return self.context.n_seq_max if self.context is not None else 1

    @property
    def n_processing(self) -> int:
        return len(self._by_answer)

    def score(self, label: str) -> Score:
        """Of the requests with this label of a key (`Key.label`)."""
        return total(score for name, score in self.scores.items() if name.partition(NAME_MARK)[2] == label)

    def _start(self, event: chat.TurnStarted) -> None:
        if event.answer in self._by_answer:
            return
        self._n_tasks += 1
        slot = Slot(self._n_tasks, event.answer, event.prompt_tokens, event.reused_tokens, event.client)
        self._by_answer[event.answer] = slot
        if event.seq_id >= 0:
            self.slots[event.seq_id] = slot

    def _end(self, event: chat.TurnEnded) -> None:
        slot = self._by_answer.pop(event.answer, None)
        if slot is not None:
            slot.is_processing = False
            slot.n_read, slot.n_decoded = event.stats.prefilled_tokens, event.sampled.generated_tokens
            self.counters.add(event.sampled)
            if slot.client:
                self.score_of_all = self.score_of_all.with_request(event.stats)
                self.scores[slot.client] = self.scores.pop(slot.client, Score()).with_request(event.stats)
                while len(self.scores) > _MOST_SCORES:
                    self.scores.popitem(last=False)
