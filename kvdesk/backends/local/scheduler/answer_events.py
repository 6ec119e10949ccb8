"""Reports running answers: the progress of prompts, the text of answers, the texts of new tokens.

Owns when text is sent. Runs on the engine's thread.
"""

import time
from collections.abc import Iterable, Sequence

from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.backends.local.scheduler.stops import Stops
from kvdesk.message import NO_STATS, MessageState
from kvdesk.protocol.cache import TokenTexts
from kvdesk.protocol.chat import Generate, PrefillProgress, TextDelta, TurnEnded

TELL_S = 1 / 16
"""Text is sent this often if tokens are faster, each time at the nearest token, together with the view of the cache.
Right after a decode the processor's caches hold only weights, so work done then takes five times as long as the second
in a row."""


class AnswerEvents:
    """Events about requests, to `emit`."""

    def __init__(self, emit: Emit, stops: Stops) -> None:
        self._emit = emit
        self._stops = stops
        self._known_tokens: set[int] = set()

    def forget_texts(self) -> None:
        """Another model is open, whose tokens have other texts."""
        self._known_tokens.clear()

    def tell_texts(self, tokens: Iterable[int], vocab: Vocab) -> None:
        """Send the texts of new token ids, because the inspector shows the token of every cell."""
        new = set(tokens) - self._known_tokens
        if new:
            self._known_tokens |= new
            self._emit(TokenTexts({token: vocab.label(token) for token in new}))

    def never_began(self, command: Generate, state: MessageState, note: str) -> None:
        """Report that the request ended before it began."""
        self._stops.end(command.answer)
        self._emit(TurnEnded(command.conversation, command.answer, state, NO_STATS, note))

    def tell_progress(self, request: Request, seconds: float) -> None:
        """Report that a batch with tokens of its prompt took `seconds`."""
        request.prefill_s += seconds
        elsewhere = request.reused + request.n_put
        done = request.position - elsewhere
        total = request.n_asked - elsewhere - sum(splice.n_tokens for splice in request.splices)
        command = request.command
        self._emit(PrefillProgress(command.conversation, command.answer, done, total, done / request.prefill_s))

    def tell(self, request: Request, *, over: bool = False, end: bool = False) -> None:
        """Send the text of tokens sampled since the last time. `over`, `end`: as for `Request.take_text`."""
        request.tell_at = max(request.tell_at + TELL_S, request.last_at + TELL_S / 2)
        self.tell_texts(request.untold, request.vocab)
        text, tokens = request.take_text(over=over, end=end)
        if text or tokens:
            of, logprobs = request.command, request.sampler.take_logprobs(len(tokens))
            self._emit(TextDelta(of.conversation, of.answer, text, tokens, logprobs))

    def tell_all(self, requests: Sequence[Request], step_s: float) -> bool:
        """When the text of one request is due, send that of all. It is due if the time is nearer now than after another
        step, which takes `step_s`. Returns whether it was.
        """
        now = time.perf_counter() + step_s / 2
        for request in requests:
            if request.untold and now >= request.tell_at:
                break
        else:
            return False
        for request in requests:
            if request.untold:
                self.tell(request)
        return True
