"""Records and reports operations on the cache: one journal entry and one event each, with the reason.

Owns the journal of one context and the events about operations. An operation is one or more calls of llama.cpp that
belong together: a slide is `seq_rm` and `seq_add`. Runs on the engine's thread.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.memory.decodes import MirroredDecode
from kvdesk.cache.journal import Journal, Operation
from kvdesk.message import ConversationId
from kvdesk.protocol import calls
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import Effect
from kvdesk.values import dataclass, field

Emit = Callable[[Event], None]
MOST_CALLS = 16
"""Of one operation that are written down."""


@dataclass(slots=True, eq=False)
class RunningOperation:
    """An operation in progress. Values set here are reported with it; `OperationDone` explains them.

    call    llama.cpp's calls as text; "": the first of the collected calls, joined by "; "
    told    False: no event is sent, only an entry is written
    number  `Mirror.operation` afterwards; ms: wall time in milliseconds. Both are known at the end
    calls   llama.cpp's calls with their answers
    """

    name: str
    conversation: ConversationId | None
    reason: str
    call: str
    started: float  # time.perf_counter()
    note: str = ""
    emptied: bool = False
    effect: Effect | None = None
    undoable: bool = False
    told: bool = True
    number: int = -1
    ms: float = 0.0
    calls: list[str] = field(default_factory=list)


class _Unwritten(NamedTuple):
    """A call without an entry yet: its number, the call as text, wall time in ms."""

    number: int
    call: str
    ms: float


class OperationJournal:
    """The journal of `context` from now on. `conversation_of` returns the conversation that has a seq_id."""

    def __init__(
        self, context: Context, emit: Emit, conversation_of: Callable[[int], ConversationId | None] = lambda _: None
    ) -> None:
        self._context = context
        self._emit = emit
        self._conversation_of = conversation_of
        self._running: RunningOperation | None = None
        self._unwritten: list[_Unwritten] = []  # calls of the running operation
        self._purpose: tuple[str, str] = ("", "")  # conversation and reason for calls outside of operations
        self.journal = Journal(context.memory.mirror)
        context.memory.on_operation = self._called

    @contextmanager
    def operation(
        self,
        name: str,
        conversation: ConversationId | None = None,
        reason: str = "",
        *,
        call: str = "",
        started: float | None = None,
    ) -> Iterator[RunningOperation]:
        """Record and report the calls made in the block as one operation. `started`: time.perf_counter() of its begin,
        if earlier.

        Inside another operation of the same conversation, it becomes a part of that one: only its calls are reported.
        Without a call and without `call`, nothing is reported; nor if the block raises.
        """
        operation = RunningOperation(
            name, conversation, reason, call, time.perf_counter() if started is None else started
        )
        outer = self._running
        if outer is not None and conversation == outer.conversation:
            yield operation
            return
        self._write()
        self._running = operation
        try:
            yield operation
        finally:
            self.end(operation)
            self._running = outer
        if operation.told and (operation.call or operation.calls):
            self._emit(_event(operation))

    def end(self, operation: RunningOperation) -> None:
        """All calls were made; what follows before the report only looks at the result. May be called repeatedly."""
        if operation.number < 0:
            operation.ms = (time.perf_counter() - operation.started) * 1e3
            operation.number = self._context.memory.mirror.operation
            self._write()

    @contextmanager
    def purpose(self, conversation: ConversationId | None, reason: str) -> Iterator[None]:
        """Decodes and calls that are made meanwhile are no operation: each has an entry with this reason, and none is
        told.
        """
        self._write()
        before = self._running, self._purpose
        self._running, self._purpose = None, (conversation or "", reason)
        try:
            yield
        finally:
            self._running, self._purpose = before

    def decoded(self, decode: MirroredDecode) -> None:
        """Write down decodes that the mirror has followed; those of an answer need no reason."""
        self._write()
        record, batch, kind, ms, at_s = decode
        conversation = self._conversation_of(batch.seq_ids[0][0]) if batch.seq_ids and batch.seq_ids[0] else None
        call = f"{calls.decode(decode.n_tokens)} -> {record.rc}"
        reason = self._purpose[1] if self._running is None else self._running.reason
        reason = "" if kind == "decode" else reason
        unix = time.time() - time.monotonic()
        self.journal.record(
            [
                Operation(record.operation + i, end + unix, kind, call, took, conversation or "", reason)
                for i, (end, took) in enumerate(zip(at_s, ms, strict=True))
            ],
            record,
        )

    # --- private ------------------------------------------------------------------------------------------------------

    def _called(self, number: int, call: str, ms: float) -> None:
        """A call that is no decode was made, and the mirror has followed it."""
        if self._running is not None:
            self._running.calls.append(call)
            self._unwritten.append(_Unwritten(number, call, ms))
            return
        conversation, reason = self._purpose
        name = call.partition("(")[0].removeprefix("llama_").removeprefix("memory_")
        self.journal.record([Operation(number, time.time(), name, call, ms, conversation, reason)])

    def _write(self) -> None:
        """One entry for the calls of the running operation that have none yet."""
        operation, made, self._unwritten = self._running, self._unwritten, []
        if operation is None or not made:
            return
        text = operation.call or _joined([one.call for one in made])
        who, ms = operation.conversation or "", sum(one.ms for one in made)
        self.journal.record([Operation(made[-1].number, time.time(), operation.name, text, ms, who, operation.reason)])


def _joined(made: Sequence[str]) -> str:
    """The first calls, and how many followed: single tokens leave a full context in thousands of them."""
    more = len(made) - MOST_CALLS
    return "; ".join(made) if more <= 0 else f"{'; '.join(made[:MOST_CALLS])}; /* {more} more */"


def _event(operation: RunningOperation) -> OperationDone:
    o = operation
    call = o.call or _joined(o.calls)
    return OperationDone(
        o.number,
        time.monotonic(),
        o.name,
        call,
        o.ms,
        o.conversation,
        o.reason,
        o.effect,
        o.undoable,
        o.emptied,
        o.note,
    )
