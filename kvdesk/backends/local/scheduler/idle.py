"""Work while no request waits: compact the cache if that pays off, read ahead after an answer, and free memory that was
reserved for states.

Owns when something is due. `kvdesk.policies.compaction_gain` judges the gain. Runs on the engine's thread.
"""

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.prompt.prompt import PromptBuilder
from kvdesk.backends.local.scheduler.jobs import Job, read_once
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.cache.compaction import Layout
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import KvdeskError
from kvdesk.message import Message, MessageId
from kvdesk.policies.compaction_gain import Fragmented, judge_compaction
from kvdesk.settings import CachePolicy
from kvdesk.translation import tr


class Idle:
    """Idle work on one context. `prompts`: None without a tokenizer."""

    def __init__(self, context: Context, cache_manager: Cache, prompts: PromptBuilder | None) -> None:
        self._context = context
        self._cache_manager = cache_manager
        self._prompts = prompts
        self._judged_at = -1  # the operation at which compaction was last judged
        self._ahead: Request | None = None

    def ended(self, request: Request) -> None:
        """A request was answered, and its conversation will probably continue; for other programs that is unknown."""
        if request.command.client is None:
            self._ahead = request

    @property
    def due(self) -> bool:
        """Whether `read_ahead` or `compact` may find something to do."""
        return self._ahead is not None or self._judged_at != self._cache_manager.operation

    def read_ahead(self, policy: CachePolicy) -> Job | None:
        """A job that reads what follows the last answer in every prompt, if the policy allows it."""
        request, self._ahead = self._ahead, None
        return self._read_ahead(request) if request is not None and policy.prefill_ahead else None

    def compact(self, policy: CachePolicy) -> bool:
        """Compact if the policy allows it and it pays off. Returns whether the cache has changed."""
        changed = self._judged_at != self._cache_manager.operation and self._compact(policy)
        self._judged_at = self._cache_manager.operation
        return changed

    def _compact(self, policy: CachePolicy) -> bool:
        context = self._context
        if not policy.auto_compact or not context.can("compaction"):
            return False
        plan = self._cache_manager.planned(Layout.KEEP_ORDER)
        n_visible = max((len(s.tokens) for s in self._cache_manager.pool), default=0)
        cache = Fragmented(plan.n_kv_before, plan.n_kv_after, n_visible, context.states.size())
        verdict = judge_compaction(self._cache_manager.costs, cache)
        if not verdict.pays:
            return False
        return self._cache_manager.close_holes(verdict.reason)

    def _read_ahead(self, request: Request) -> Job | None:
        """Read what follows the answer in every prompt: the end of its message and the beginning of the next."""
        context, pool, sequence = self._context, self._cache_manager.pool, request.sequence
        if self._prompts is None or sequence.busy or pool.get(sequence.conversation) is not sequence:
            return None
        who, stats = request.command.conversation, request.stats(0, 0, 0)
        text, answer = request.vocab.text(request.generated), request.command.answer
        said = Message(answer, who, None, "assistant", text, tokens=tuple(request.generated), stats=stats)
        told = [*request.command.messages, said]
        nexts = [Message(MessageId(word), who, None, "user", word) for word in ("a", "Zebra")]
        try:
            asked = request.command
            first, second = (
                self._prompts.prompt([*told, m], asked.template, asked.tools, asked.variables).tokens for m in nexts
            )
        except KvdeskError:
            return None
        n, held = common_prefix(first, second), len(sequence.tokens)
        if held < len(request.known):
            return None  # some of it was removed, and is not restored
        fits = n <= context.n_ctx_seq and self._cache_manager.has_room(sequence, n - held)
        if first[:held] != sequence.tokens or n <= held or not fits:
            return None
        reason, readings = tr("prefilled ahead, between answers"), read_once(sequence, first[:n])
        return Job(request.command, reason, self._cache_manager, readings)
