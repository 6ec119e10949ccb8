"""Begins a request: renders its prompt, leases a sequence, reuses the cache, makes room, makes its sampler.

Runs on the engine's thread. Knows nothing of batches.
"""

from collections.abc import Sequence

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.client_share import keep_to_share
from kvdesk.backends.local.cache_manager.documents import Documents
from kvdesk.backends.local.cache_manager.sequences import Acquired, CacheSequence
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.samplers.budget_sampler import with_budget
from kvdesk.backends.local.llama.samplers.grammar_sampler import sampler_of
from kvdesk.backends.local.llama.samplers.logprob_sampler import with_logprobs
from kvdesk.backends.local.llama.samplers.sampler import Sampler, SamplingPlan, plan_sampling
from kvdesk.backends.local.scheduler.call_plan import with_calls
from kvdesk.backends.local.scheduler.document_runs import all_read, document_runs
from kvdesk.backends.local.scheduler.first_token import FirstTokenClocks
from kvdesk.backends.local.scheduler.idle_requests import IdleRequests
from kvdesk.backends.local.scheduler.overflow_manager import Fit, OverflowManager
from kvdesk.backends.local.scheduler.request import Request, Waiting
from kvdesk.backends.local.scheduler.request_overflow import RequestOverflow
from kvdesk.backends.local.scheduler.reuse_reason import reuse_reason
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import PromptError
from kvdesk.policies.overflow import policy_of
from kvdesk.policies.tuned import MIN_REUSE_TOKENS
from kvdesk.protocol.chat import Generate
from kvdesk.translation import tr


class Admission:
    """Begins requests on one context."""

    def __init__(
        self,
        context: Context,
        cache_manager: Cache,
        overflow_manager: OverflowManager,
        overflow: RequestOverflow,
        idle_requests: IdleRequests,
        documents: Documents,
    ) -> None:
        self._context = context
        self._cache_manager = cache_manager
        self._overflow_manager = overflow_manager
        self._overflow = overflow
        self._idle_requests = idle_requests
        self._documents = documents

    def admit(
        self,
        waiting: Waiting,
        clocks: FirstTokenClocks,
        running: Sequence[Request],
        *,
        waits: bool,
        again: bool = False,
    ) -> Request | None:
        """The request as it begins; its sequence is busy from then on and loses only its divergent tail.

        None: no sequence or no room is free while others run (`waits`), or one of them is just reading much of the same
        prompt. Try again when one has ended. `again`: what single tokens were evicted from was not in the cache any
        more, so they are in the prompt now. Raises KvdeskError.
        """
        command, cache_manager = waiting.command, self._cache_manager
        plan = plan_sampling(command.sampling, self._context.model.vocab)
        fit = self._overflow_manager.fit(command)
        clocks.rendered()
        cache_manager.take_over(command.conversation, command.client, fit.tokens)
        if waits and not cache_manager.can_lease:
            return None
        if self._is_being_read(running, command, fit.tokens):
            return None
        sampler = self._sampler(plan, command, fit)  # what fails, fails before anything is evicted for it
        request = None
        try:
            request = self._begin(waiting, clocks, running, fit, sampler, waits=waits, again=again)
        finally:
            if request is None or request.sampler is not sampler:
                sampler.close()
        return request

    def _begin(
        self,
        waiting: Waiting,
        clocks: FirstTokenClocks,
        running: Sequence[Request],
        fit: Fit,
        sampler: Sampler,
        *,
        waits: bool,
        again: bool,
    ) -> Request | None:
        """`admit` for a prompt that fits. Changes the cache."""
        command, vocab, cache_manager = waiting.command, self._context.model.vocab, self._cache_manager
        prompt, there = fit.tokens, cache_manager.pool.get(command.conversation)
        inactive = there is not None and there.busy
        sequence = cache_manager.lease(command.conversation, inactive=inactive, client=command.client)
        waiting.notes += self._overflow.before(command, sequence, fit)
        held = list(sequence.tokens)
        moved = not policy_of(command.overflow).exact
        self._idle_requests.save(sequence, prompt, moved=moved, lenders=False)
        acquired = self._acquire(command, sequence, prompt, moved=moved)
        if not again and self._overflow_manager.has_gaps(fit, acquired.n_tokens):
            self._overflow.read_whole(command, fit)
            cache_manager.release_unused(sequence)
            return self.admit(waiting, clocks, running, waits=waits, again=True)
        n_new = len(prompt) - acquired.n_tokens
        documents = document_runs(fit.whole.places, command.documents)
        why_not = self._documents.why_not or ("" if moved else tr("its overflow policy keeps answers exact"))
        splices = () if why_not else self._documents.planned(prompt, documents, acquired.n_tokens)
        n_put = sum(splice.n_tokens for splice in splices)
        clocks.acquired(
            saved=acquired.saved,
            usual_tok_s=cache_manager.costs.usual_tok_s(n_new - n_put, acquired.n_tokens, self._context.n_batch),
        )
        self._idle_requests.save(sequence, prompt, moved=moved, lenders=True)
        keep_to_share(self._context, cache_manager, sequence, n_new)
        if not cache_manager.make_room(sequence, n_new + self._n_promised(running)):
            cache_manager.release_unused(sequence)
            if waits:
                return None
            raise PromptError(tr("The cache has no room for this conversation."))
        why = reuse_reason(
            self._context.model, cache_manager, sequence, acquired, held, prompt, fit.whole.places, command, n_put
        )
        request = Request(
            command, sequence, fit.whole, acquired.n_tokens, sampler, why, vocab, clocks, fit.evicted,
            skipped=fit.skipped, n_continued=len(fit.generated), generated=list(fit.generated),
            notes=waiting.notes, documents=documents, splices=splices,
            said=all_read(documents, acquired.n_tokens, why_not),
        )  # fmt: skip
        request.pauses = cache_manager.pauses(sequence, prompt, [place.first for place in fit.whole.places[-1:]])
        cache_manager.mark_busy(sequence)
        return request

    def _sampler(self, plan: SamplingPlan, command: Generate, fit: Fit) -> Sampler:
        """Raises UserError."""
        vocab = self._context.model.vocab
        sampler = sampler_of(with_calls(plan, command, fit.whole), vocab, fit.tokens, fit.generated)
        sampler = with_budget(sampler, vocab, fit.whole.marks, command.reasoning_budget, fit.generated)
        return with_logprobs(sampler, vocab, command.n_probs, sampled=command.sampled_probs)

    def _acquire(self, command: Generate, sequence: CacheSequence, prompt: list[int], *, moved: bool) -> Acquired:
        """What the cache has of the prompt; nothing if the client wants all of it read."""
        if command.client is not None and not command.client.reuse:
            return Acquired(0)
        return self._cache_manager.acquire_prefix(sequence, prompt, moved=moved)

    def _n_promised(self, running: Sequence[Request]) -> int:
        """Cells that the prompts which are being read still need."""
        if not self._cache_manager.one_buffer or not self._context.traits.geometry.has_attention:
            return 0
        return sum(request.n_to_read for request in running)

    def _is_being_read(self, running: Sequence[Request], command: Generate, prompt: list[int]) -> bool:
        """Whether another request is just reading much of the same prompt, which this one can have afterwards."""
        client, shares = command.client, self._cache_manager.shares_beginnings
        if not shares or (client is not None and not client.reuse):
            return False
        sharing = client.sharing if client is not None else ""
        own = self._cache_manager.pool.get(command.conversation)
        held = common_prefix(own.tokens, prompt) if own is not None else 0
        wanted = max(held, MIN_REUSE_TOKENS)
        return any(
            r.prefilling and r.sequence.sharing == sharing and common_prefix(r.prompt, prompt) - r.position > wanted
            for r in running
        )
