"""What vLLM and SGLang print of their caches: numbers of all requests together. Their logs show no single request.

Owns these numbers, and those of /metrics of any server. Must never know causes.
"""

from typing import Final

from kvdesk.engine_log.events import Event
from kvdesk.engine_log.sentences import Kind
from kvdesk.protocol.blocks import ServerMetrics, metrics_of
from kvdesk.values import dataclass, field

FULL: Final = 95.0
"""Percent of a cache from which requests have to wait for it: one more block of each seldom fits."""
_MOST_SAMPLES: Final = 500
"""Of metrics, by name and labels: those of more engines than one server has."""


@dataclass(slots=True)
class Pool:
    """The cache of one server, or of several engines under one. -1: unknown.

    program  "vLLM", "SGLang", or whose metrics they are
    n        reports, batches and metrics
    rates    percent of prompt tokens that were in the cache lately, by engine: vLLM counts the latest 1,000 requests
    read, cached   tokens of prompts
    has_read       prompts were read at all
    usage, running, waiting   the most; waiting_at: the most percent in use while requests waited
    preempted      requests that were interrupted for room and computed again, at least; retracted: by rank, in SGLang
    external       percent that another cache had, such as LMCache, lately
    is_swapped     some of them were moved to another memory instead
    is_on, is_off  blocks of earlier prompts are reused, or not
    block          tokens of a block, where it is no usual one
    want, have     tokens of the longest prompt, and those that the cache holds, if it is too small
    samples        the latest of each metric, by name and labels
    """

    program: str = ""
    n: int = 0
    rates: dict[int, float] = field(default_factory=dict)
    read: int = 0
    cached: int = 0
    has_read: bool = False
    usage: float = -1.0
    running: int = -1
    waiting: int = -1
    waiting_at: float = -1.0
    preempted: int = 0
    retracted: dict[int, int] = field(default_factory=dict)
    external: float = -1.0
    is_swapped: bool = False
    is_on: bool = False
    is_off: bool = False
    block: int = -1
    want: int = -1
    have: int = -1
    samples: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def metrics(self) -> ServerMetrics:
        """What its /metrics say."""
        values: dict[str, list[float]] = {}
        for (name, _), value in self.samples.items():
            values.setdefault(name, []).append(value)
        return metrics_of(values)

    @property
    def hit_rate(self) -> float:
        """Percent of prompt tokens that were in the cache, of all engines; -1 unknown."""
        if (share := self.metrics.share_of_hits) is not None:
            return 100.0 * share
        if self.read + self.cached:
            return 100.0 * self.cached / (self.read + self.cached)
        return sum(self.rates.values()) / len(self.rates) if self.rates else -1.0

    @property
    def n_preempted(self) -> int:
        """Requests that lost their place in the cache. Each rank of SGLang prints the same."""
        return self.preempted + max(self.retracted.values(), default=0) + int(self.metrics.preempted or 0)

    def learn(self, event: Event) -> None:
        """Apply an event of this kind of server."""
        self.program = self.program or _program(event)
        self.n += event.kind not in (Kind.REUSE_ENABLED, Kind.BLOCK)
        match event.kind:
            case Kind.METRIC:
                self._sample(event)
            case Kind.REPORT:
                self._state(event, 1.0)
                self.has_read |= event.real("prompt") > 0
                self.preempted += event.number("preempted", 0)
                self.external = event.real("external", self.external)
                if "hit" in event.values:
                    self.rates[event.number("engine", 0)] = event.real("hit")
            case Kind.HIT_RATE:  # the engine of 2024 prints it only with prefix caching
                self.rates[0], self.is_on = event.real("hit"), True
            case Kind.PREFILL:
                self._state(event, 100.0)
                self.has_read = True
                self.read, self.cached = self.read + event.number("read", 0), self.cached + event.number("cached", 0)
            case Kind.DECODE:
                self._state(event, 100.0)
            case Kind.PREEMPTED | Kind.SWAPPED:
                self.preempted = max(self.preempted, event.number("n"))
                self.is_swapped |= event.kind is Kind.SWAPPED
            case Kind.RETRACTED:
                rank = event.number("rank", 0)
                self.retracted[rank] = self.retracted.get(rank, 0) + event.number("n", 0)
            case _:
                self._setting(event)

    def _setting(self, event: Event) -> None:
        """What is said once, when the server starts."""
        self.is_on |= event.kind is Kind.REUSE_ENABLED
        self.is_off |= event.kind in (Kind.REUSE_DISABLED, Kind.RADIX_OFF)
        if event.kind is Kind.BLOCK:
            self.block = event.number("n")
        elif event.kind is Kind.TOO_SMALL:
            self.want, self.have = event.number("want"), event.number("have")

    def _sample(self, event: Event) -> None:
        key = event.values["name"], event.values["labels"]
        if key not in self.samples and len(self.samples) >= _MOST_SAMPLES:
            return
        self.samples[key] = event.real("n")
        now = self.metrics
        self.usage = self.usage if now.usage is None else 100.0 * now.usage
        self.running, self.waiting = int(now.running or 0), int(now.waiting or 0)
        self.has_read |= bool(now.queried_tokens or now.read_tokens or now.hit_tokens)

    def _state(self, event: Event, percent: float) -> None:
        usage = event.real("usage") * (percent if "usage" in event.values else 1.0)
        self.usage = max(self.usage, usage)
        self.running = max(self.running, event.number("running"))
        self.waiting = max(self.waiting, event.number("waiting"))
        if event.number("waiting") > 0:
            self.waiting_at = max(self.waiting_at, usage)


def _program(event: Event) -> str:
    if event.kind is Kind.METRIC:
        return {"vllm": "vLLM", "sglang": "SGLang"}.get(event.values["name"].partition(":")[0], "")
    is_sglang = event.kind in (Kind.PREFILL, Kind.DECODE, Kind.RETRACTED, Kind.RADIX_OFF)
    return "SGLang" if is_sglang else "vLLM"
