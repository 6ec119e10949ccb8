"""Handles a request whose context is full: messages leave the cache and this is reported, or the answer ends.

Carries out what `OverflowManager` plans. Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.scheduler.message_spans import MessageSpanReporter
from kvdesk.backends.local.scheduler.overflow_manager import Fit, OverflowManager, Step
from kvdesk.backends.local.scheduler.overflow_move import carry_out, frees_enough
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.chat import EvictedMessages
from kvdesk.policies.overflow import policy_of
from kvdesk.protocol.chat import Generate, MessagesEvicted, Overflowed
from kvdesk.settings import Overflow
from kvdesk.translation import tr
from kvdesk.values import replace


class RequestOverflow:
    """Requests of one context."""

    def __init__(
        self, cache_manager: Cache, overflow_manager: OverflowManager, spans: MessageSpanReporter, emit: Emit
    ) -> None:
        self._cache_manager = cache_manager
        self._overflow_manager = overflow_manager
        self._spans = spans
        self._emit = emit

    def before(self, command: Generate, sequence: CacheSequence, fit: Fit) -> list[str]:
        """Before the request begins, evict what its prompt leaves out. Returns the reports."""
        self._remember(command, fit.evicted)
        if fit.step is not None:
            return [self._carry_out(command, sequence, fit.step)]
        moved = self._cache_manager.block == 1 and sequence.exact < len(sequence.tokens)
        if moved and policy_of(command.overflow).exact:
            self._cache_manager.truncate(
                sequence, sequence.exact, tr("what was moved is read again: exact answers were chosen")
            )
        return []

    def read_whole(self, command: Generate, fit: Fit) -> None:
        """The next prompt has the single tokens again that are evicted from its messages."""
        self._remember(command, replace(fit.evicted, cuts=()))

    def go_on(self, request: Request, n_free: int | None = None) -> str:
        """The context is full while the request runs. n_free: the cache is full instead, with this many cells that are
        free or will be once idle sequences leave.

        Returns why the answer ends, "" if it continues.
        """
        command = request.command
        n_cells = None if n_free is None else request.position + n_free
        step = self._overflow_manager.go_on(request, n_cells, request.sequence)
        why = step.plan.sentence if step.plan.stops else ""
        shared = not why and n_free is not None
        if shared and not frees_enough(self._cache_manager, request.sequence, step, command.overflow, n_free or 0):
            why = tr("{what} is full, and what could be removed is shared with them. The answer ends here.").format(
                what=step.full
            )
        if why:
            self._emit(Overflowed(command.conversation, command.answer, Overflow.STOP, why))
            return why
        request.notes.append(self._carry_out(command, request.sequence, step))
        request.whole, request.prompt, request.evicted, request.skipped = (
            step.whole,
            step.whole.tokens,
            step.evicted,
            step.skipped,
        )
        request.pauses, request.splices, request.documents = (), (), ()  # they lie elsewhere now
        request.n_put = min(request.n_put, max(0, request.position - request.reused))
        if not request.n_new:  # its prompt is still being read, and is shorter now
            request.reused, request.n_asked = min(request.reused, request.position), len(request.known)
        self._remember(command, step.evicted)
        self._spans.tell(request)
        return ""

    def _remember(self, command: Generate, evicted: EvictedMessages) -> None:
        """The next prompt leaves these out too; a change is reported."""
        if self._overflow_manager.remember(command, evicted):
            self._emit(MessagesEvicted(command.conversation, evicted))

    def _carry_out(self, command: Generate, sequence: CacheSequence, step: Step) -> str:
        """Evict messages from the cache and report it."""
        sentence = carry_out(self._cache_manager, sequence, step, command.overflow)
        self._emit(Overflowed(command.conversation, command.answer, command.overflow, sentence, step.newly_evicted))
        return sentence
