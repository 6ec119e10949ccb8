"""Work while no request waits: compact the cache where that pays, prefill what follows an answer, give back memory
that was kept for states.

Owns when something is due. The judgement is `kvdesk.policies.compaction_gain`. Runs on the engine's thread.
"""

from __future__ import annotations

from kvdesk.backends.local.operations.compacting import compact
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.backends.local.session import Session
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout, plan_compaction
from kvdesk.cache.prefix import common_prefix
from kvdesk.chat import Message, MessageId
from kvdesk.errors import KvdeskError
from kvdesk.policies.compaction_gain import Fragmented, Moment, judge_compaction
from kvdesk.protocol.operations import Compact

EXPECTED = 512
"""Tokens that are likely to be decoded before the cache changes by itself: about two long answers."""


class Idle:
    """One session's idle work. `ended` and `changed` say that there may be some."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._judged_at = -1  # operation at which compaction was judged last
        self._ahead: Request | None = None

    def ended(self, request: Request) -> None:
        """A request was answered: its conversation will probably go on."""
        self._ahead = request

    @property
    def due(self) -> bool:
        """Whether `work` may find something to do."""
        context = self._session.context
        changed = self._ahead is not None or self._judged_at != context.memory.mirror.operation
        return changed or context.states.buffers.n_bytes > 0

    def work(self) -> bool:
        """Do one thing that is due. Whether the cache has changed."""
        request, self._ahead = self._ahead, None
        changed = request is not None and self._session.own.policy.prefill_ahead and self._read_ahead(request)
        context = self._session.context
        if self._judged_at != context.memory.mirror.operation:
            changed = self._compact() or changed
            self._judged_at = context.memory.mirror.operation
        context.states.buffers.expire()
        return changed

    def _compact(self) -> bool:
        session = self._session
        context = session.context
        if not context.can("compaction"):
            return False
        plan = plan_compaction(context.memory.snapshot(), Layout.KEEP_ORDER)
        n_visible = max((len(s.tokens) for s in session.pool), default=0)
        cache = Fragmented(plan.n_kv_before, plan.n_kv_after, n_visible, context.states.size())
        moment = Moment(False, True, EXPECTED, session.own.policy.auto_compact)
        verdict = judge_compaction(session.speed_model.cost, cache, moment)
        if not verdict.compact:
            return False
        call = Compact(Layout.KEEP_ORDER).call()
        try:
            with session.operation_journal.operation("compact", None, verdict.reason, call=call):
                compact(context, session.speed_model.cost, Layout.KEEP_ORDER)
        except KvdeskError:
            return False
        return True

    def _read_ahead(self, request: Request) -> bool:
        """Decode what follows the answer in every prompt: the template's end of a message, and how the next begins."""
        session, sequence = self._session, request.sequence
        if session.prompts is None or sequence.busy or session.pool.get(sequence.conversation) is not sequence:
            return False
        who, stats = request.command.conversation, request.stats(0, 0, 0)
        text, answer = request.vocab.text(request.generated), request.command.answer
        said = Message(answer, who, None, "assistant", text, tokens=tuple(request.generated), stats=stats)
        told = [*request.command.messages, said]
        nexts = [Message(MessageId(word), who, None, "user", word) for word in ("a", "Zebra")]
        try:
            first, second = (session.prompts.tokens([*told, m]) for m in nexts)
        except KvdeskError:
            return False
        n, held = common_prefix(first, second), len(sequence.tokens)
        more = first[held:n]
        fits = held + len(more) <= session.context.n_ctx_seq and session.context.memory.has_room(
            sequence.seq_id, len(more)
        )
        if first[:held] != sequence.tokens or not more or not fits or len(more) > session.context.n_batch:
            return False
        with session.operation_journal.purpose(who, "prefilled ahead, between answers"):
            if session.context.decode(Batch.of(sequence.seq_id, held, more), "prefill").rc == 0:
                session.cache_manager.append_decoded(sequence, more)
            else:
                session.cache_manager.adopt_unfinished(sequence, more)
        return True
