"""How many threads decode: a count that follows what the machine can give.

Two inputs: the processor time other processes take (`load`), and the ms of every decode. The load says where to look,
the measured time decides: threads of one decode wait for each other hundreds of times a token, so one that shares its
core with a stranger holds up all others, and fewer threads are faster. Nothing is tried without evidence, and what is
tried lasts a few tokens. Pure: clocks come in as numbers. Must never know the engine.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from kvdesk.policies.decode_speed import DecodeSpeed, Work
from kvdesk.translation import tr

PROMPT_BATCH = 16
"""Tokens from which a batch is a piece of a prompt, not answers that are written together: it computes more than it
reads, so that a thread on a free core always helps, also where one more writes no faster."""
LARGE_BATCH = 128
"""Tokens from which a batch is prefill: its operations are long, so threads seldom wait and more are never slower."""

_TRIAL = 4  # tokens that a new count is tried for
_RECENT = 12  # decodes remembered for each count
_GAIN = 0.93  # a count is better when it takes less than this share of the other's time
_SLOW = 1.3  # times the best known: something is wrong
_SLOW_ALONE = 1.6  # the same while others are seen to do nothing
_QUIET = 0.15  # cores taken by others, as measured: what slows the whole machine slows any count
_SLOW_UNDER_LOAD = 1.12  # the same while other processes are seen to be busy
_COLLAPSED = 2.0  # times the best known: two decodes in a row are proof enough
_STALLED = 8.0  # times the best known: one is; less may be a hiccup of the system
_CLEARLY = 0.6  # cores by which the free ones must differ from a count before another is considered
_IDLE_S = 1.0  # without a decode for this long, what was measured says nothing about now
_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0  # before a count that did not help is tried again


@dataclass(frozen=True, slots=True)
class DecodeSample:
    """One measured decode of few tokens: `n_tokens` of it over `n_kv` cells took `ms` with `n_threads`, at `at_s`."""

    at_s: float
    n_threads: int
    n_tokens: int
    n_kv: int
    ms: float


@dataclass(slots=True)
class Trial:
    """Another count is being tried, for batches of one size (`Work.size`): what it is compared with, and what it has
    taken so far.
    """

    back_to: int
    back_ms: float
    size: int
    evidence: str
    taken: list[float] = field(default_factory=list)

    @property
    def lost(self) -> bool:
        """Clearly worse before it is over."""
        return any(ms > 2 * self.back_ms for ms in self.taken) or sum(ms > self.back_ms for ms in self.taken) >= 2

    @property
    def over(self) -> bool:
        return self.lost or len(self.taken) >= _TRIAL

    @property
    def won(self) -> bool:
        return not self.lost and statistics.median(self.taken) < _GAIN * self.back_ms


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads for decode and for prefill, and why, as a sentence. `free`: cores that the load leaves; `trial`: what
    `decode` is being tried for.
    """

    decode: int
    prefill: int
    reason: str
    free: int = 1
    trial: Trial | None = None

    def of_batch(self, n_tokens: int) -> int:
        """Threads for a batch of so many tokens. Several conversations that decode together are no prefill, and a chunk
        of a prompt is not what a count is tried with.
        """
        if n_tokens >= LARGE_BATCH:
            return self.prefill
        tried_elsewhere = self.trial is not None and self.trial.size != Work(n_tokens, 0).size
        decode = self.trial.back_to if self.trial is not None and tried_elsewhere else self.decode
        return max(decode, self.free) if n_tokens >= PROMPT_BATCH else decode


@dataclass(slots=True)
class _Patience:
    """When the next attempt may be made: the wait is doubled by each one that came to nothing."""

    failures: int = 0
    next_s: float = -math.inf

    def failed(self, at_s: float) -> None:
        self.next_s = at_s + min(_WAIT_S * 2**self.failures, _LONGEST_WAIT_S)
        self.failures = min(self.failures + 1, 10)

    def hurry(self, at_s: float) -> None:
        """There is new evidence: half of the wait will do."""
        self.next_s = min(self.next_s, at_s + min(_WAIT_S * 2**self.failures, _LONGEST_WAIT_S) / 2)

    def reset(self) -> None:
        self.failures, self.next_s = 0, -math.inf


class ThreadPolicy:
    """Call `load` with every reading of the load and `decoded` after every decode of few tokens; set what `choice`
    says before the next one. `n_cores`: physical cores of the machine; `n_most`: threads the person allows.
    """

    def __init__(self, n_cores: int, n_most: int | None = None) -> None:
        self._n_cores = max(1, n_cores)
        self._n_most = max(1, n_most or n_cores)
        self._fit = self._n = self._n_most
        self._others: float | None = None  # nobody has told
        self._reason = tr("{n} of {n_cores} cores, nothing else was measured yet.").format(
            n=self._n, n_cores=self._n_cores
        )
        self._speed = DecodeSpeed()
        self._recent: dict[int, deque[float]] = {}
        self._work: Work | None = None
        self._by_load = False  # the count in use follows the load alone: nothing was measured for it
        self._last_s = -math.inf
        self._raised_s = -math.inf
        self._trial: Trial | None = None
        self._fewer = _Patience()
        self._more = _Patience()

    @property
    def trying(self) -> bool:
        """Whether another count is being tried: the sooner its times are told, the less it costs."""
        return self._trial is not None

    @property
    def choice(self) -> Threads:
        return Threads(self._n, self._n_most, self._reason, self._fit, self._trial)

    def load(self, at_s: float, others: float) -> Threads:
        """Other processes take `others` cores' worth of processor time. Returns the choice from now on."""
        self._others = others
        free = max(1.0, min(float(self._n_most), self._n_cores - others))
        if abs(free - self._fit) > _CLEARLY:
            fit = max(1, min(self._n_most, math.floor(free + 0.5)))
            rises = fit > self._fit
            self._fit = fit
            self._forget_others()
            self._fewer.reset()
            if rises and at_s - self._raised_s > 2 * _IDLE_S:
                self._more.reset()
            elif rises:
                self._more.hurry(at_s)
            if rises and self._by_load and self._trial is None:
                self._use(fit, tr("{seen}: {threads} again.").format(seen=self._seen(), threads=_threads(fit)))
        if at_s - self._last_s > _IDLE_S and self._n != self._fit:
            self._end_trial(at_s)
            self._recent.clear()
            self._use(
                self._fit, tr("{seen}: starting with {threads}.").format(seen=self._seen(), threads=_threads(self._fit))
            )
            self._by_load = True
        return self.choice

    def decoded(self, sample: DecodeSample) -> Threads:
        """A decode was measured. Returns the choice for the next one."""
        work, ms = Work(sample.n_tokens, sample.n_kv), sample.ms / sample.n_tokens
        if sample.at_s - self._last_s > _IDLE_S + sample.ms / 1e3 or self._work is None or not work.like(self._work):
            self._end_trial(sample.at_s)
            self._recent.clear()
        self._last_s, self._work = sample.at_s, work
        if sample.n_threads == self._n:
            self._recent.setdefault(self._n, deque(maxlen=_RECENT)).append(ms)
            if self._trial is not None:
                self._trial.taken.append(ms)
                if self._trial.over:
                    self._judge(self._trial, work, sample.at_s)
            else:
                self._look(work, sample.at_s)
            self._speed.learn(sample.n_threads, work, ms)
        return self.choice

    # --- private ------------------------------------------------------------------------------------------------------

    def _look(self, work: Work, at_s: float) -> None:
        """Is there evidence that another count would be better?"""
        taken = self._recent[self._n]
        lately = list(taken)[-3:]
        if self._n > 1 and at_s >= self._fewer.next_s and (evidence := self._too_slow(lately, work)):
            target = self._fit if self._fit < self._n else self._n // 2
            self._try(target, statistics.median(lately), work, evidence)
        elif len(taken) >= _RECENT // 2 and (better := self._better_known(_usual(taken))) is not None:
            self._use(
                better,
                tr("{threads} took {ms:.1f} ms a token, {threads2} take more.").format(
                    threads=_threads(better), ms=self._ms(better), threads2=_threads(self._n)
                ),
            )
            self._more.failed(at_s)
        elif self._n < self._fit and at_s >= self._more.next_s and len(taken) >= 2:
            target = self._n + 1 if self._more.failures else self._fit
            self._try(target, statistics.median(taken), work, self._seen())

    def _too_slow(self, lately: list[float], work: Work) -> str:
        """What says that the current count is too slow, "" when nothing does."""
        best = self._speed.best_ms(self._n, work)
        loaded = self._fit < self._n
        if best is None:
            return self._seen() if loaded and len(lately) >= 2 else ""
        if lately[-1] > _STALLED * best or (len(lately) > 1 and min(lately[-2:]) > _COLLAPSED * best):
            return tr("a token took {lately:.0f} ms, at best {best:.1f}").format(lately=lately[-1], best=best)
        limit = _SLOW_UNDER_LOAD if loaded else _SLOW_ALONE if self._is_quiet else _SLOW
        if len(lately) == 3 and min(lately) > limit * best:
            return tr("tokens take {median:.1f} ms, at best {best:.1f}").format(
                median=statistics.median(lately), best=best
            )
        return ""

    def _better_known(self, usual_ms: float) -> int | None:
        """Another count that was measured under this load and takes clearly less."""
        known = {n: self._ms(n) for n in self._recent if n < self._n}
        n = min(known, key=lambda n: known[n], default=None)
        return n if n is not None and known[n] < _GAIN * usual_ms else None

    def _try(self, n: int, now_ms: float, work: Work, evidence: str) -> None:
        self._trial = Trial(self._n, now_ms, work.size, evidence)
        self._recent.pop(n, None)
        self._use(n, tr("Trying {threads}: {evidence}.").format(threads=_threads(n), evidence=evidence))

    def _judge(self, trial: Trial, work: Work, at_s: float) -> None:
        """The trial is over: keep the count that took less."""
        self._trial, self._by_load = None, False
        tried, fewer = self._n, self._n < trial.back_to
        ms = statistics.median(trial.taken)
        if trial.won:
            self._use(
                tried,
                tr("{threads}: {ms:.1f} ms a token instead of {back_ms:.1f} with {back_to} ({evidence}).").format(
                    threads=_threads(tried),
                    ms=ms,
                    back_ms=trial.back_ms,
                    back_to=trial.back_to,
                    evidence=trial.evidence,
                ),
            )
            if fewer:
                self._stepped_down(work, ms, at_s)
            else:
                self._raised_s = at_s
                self._more.next_s = at_s
            return
        self._use(
            trial.back_to,
            tr("{threads}: {back_ms:.1f} ms a token, {ms:.1f} with {tried} ({evidence}).").format(
                threads=_threads(trial.back_to), back_ms=trial.back_ms, ms=ms, tried=tried, evidence=trial.evidence
            ),
        )
        if fewer:
            self._fewer.failed(at_s)
            self._speed.relax(trial.back_to, work, trial.back_ms)
        else:
            self._more.failed(at_s)

    def _stepped_down(self, work: Work, ms: float, at_s: float) -> None:
        """Fewer threads helped. Not at once back to more; and where the load does not say how many, try fewer still."""
        if at_s - self._raised_s > 2 * _IDLE_S:
            self._more.reset()
        self._more.failed(at_s)
        best = self._speed.best_ms(self._n, work)
        if 1 < self._n <= self._fit and best is not None and ms > _SLOW * best:
            self._try(self._n // 2, ms, work, tr("it is still slow"))

    def _end_trial(self, at_s: float) -> None:
        """What is decoded has changed under the trial: what it took cannot be compared any more. Fewer threads are not
        tried again at once: short answers would all have their trial, and none would come to its end.
        """
        if self._trial is not None:
            if self._n < self._trial.back_to:
                self._fewer.failed(at_s)
            self._use(self._trial.back_to, tr("{threads}, as before.").format(threads=_threads(self._trial.back_to)))
            self._trial = None

    def _forget_others(self) -> None:
        """The load has changed: what other counts took before says nothing now."""
        self._recent = {n: taken for n, taken in self._recent.items() if n == self._n}

    def _ms(self, n: int) -> float:
        return statistics.fmean(self._recent[n])

    def _use(self, n: int, reason: str) -> None:
        self._n, self._reason = n, reason

    @property
    def _is_quiet(self) -> bool:
        return self._others is not None and self._others < _QUIET

    def _seen(self) -> str:
        return tr("other processes take {others:.1f} of {n_cores} cores").format(
            others=self._others or 0.0, n_cores=self._n_cores
        )


def _usual(taken: Collection[float]) -> float:
    """The mean without the longest: one hiccup of the system says nothing about a count, stalls that come back do."""
    return (sum(taken) - max(taken)) / (len(taken) - 1)


def _threads(n: int) -> str:
    return tr("1 thread") if n == 1 else tr("{n} threads").format(n=n)
