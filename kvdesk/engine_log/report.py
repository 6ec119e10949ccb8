"""Requests explained, as text for a terminal or as JSON: one after another, then the sums. Memory stays bounded."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kvdesk.cache.reuse.score import Misses, Score, total
from kvdesk.engine_log.cures import Cure
from kvdesk.engine_log.findings import HITS, Cause, Finding
from kvdesk.engine_log.pools import Pool
from kvdesk.engine_log.record import Request, Server
from kvdesk.engine_log.server_causes import explain_server, has_facts
from kvdesk.printable import printable
from kvdesk.quantities import tokens_text
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass, field, replace

_MOST_NAMED: Final = 4
"""Servers that are alike and named."""


@dataclass(slots=True)
class Totals:
    """The sums over all requests so far. n_known: requests whose numbers the log has; only their tokens are in the
    score; cures: of each cause; more: how to log more.
    """

    score: Score = Score()
    n_known: int = 0
    cures: dict[str, tuple[Cure, ...]] = field(default_factory=dict)
    more: str = ""

    def add(self, request: Request, finding: Finding) -> None:
        """Count one request."""
        one = Score(1, request.asked, request.reused) if request.has_numbers else Score(1)
        self.n_known += request.has_numbers
        self.score = total((self.score, one))
        self._count(finding)

    def correct(self, before: Finding, now: Finding) -> None:
        """A request that was counted has another cause."""
        self._count(before, -1)
        self._count(now)

    def _count(self, finding: Finding, n: int = 1) -> None:
        if finding.cause not in HITS:
            missed = Misses(n, n * finding.lost, n * finding.lost_s)
            self.score = total((self.score, Score(misses={finding.cause.value: missed})))
            self.cures[finding.cause] = self.cures.get(finding.cause) or finding.cures
        self.more = self.more or finding.more

    @property
    def misses(self) -> list[tuple[str, Misses]]:
        """What lost tokens, the most expensive first."""
        found = [(cause, missed) for cause, missed in self.score.misses.items() if missed.n]
        return sorted(found, key=lambda entry: (-entry[1].seconds, -entry[1].tokens))


def request_lines(request: Request, finding: Finding) -> Iterator[str]:
    """One request as lines of text."""
    r, is_miss = request, finding.cause not in HITS
    who = f"{printable(r.server.source)} · " if r.server.source else ""
    who += tr("slot {slot}").format(slot=r.slot) + (tr(", task {task}").format(task=r.task) if r.task >= 0 else "")
    numbers = []
    if r.n_prompt >= 0:
        numbers.append(tokens_text(r.n_prompt))
    if r.reused >= 0:
        numbers.append(tr("{n:,} reused").format(n=r.reused))
    if r.read >= 0:
        numbers.append(
            tr("{n:,} read").format(n=r.read) + (f" ({r.prompt_ms / 1000:,.2f} s)" if r.prompt_ms >= 0 else "")
        )
    verdict = tr("MISS") if is_miss else "?" if finding.cause is Cause.UNKNOWN else tr("ok")
    at = tr("line {line:,}").format(line=r.line) + (f" {printable(r.clock)}" if r.clock else "")
    yield f"{verdict:5} {at} · {who} · {' · '.join(numbers) or '–'} · {finding.cause}"
    if not is_miss:
        yield from (f"        {printable(note)}" for note in finding.notes)
        return
    yield from _miss_lines(r, finding)


def late_lines(request: Request, finding: Finding) -> Iterator[str]:
    """Why a request missed that was said to have been new."""
    who = tr("slot {slot}, task {task}").format(slot=request.slot, task=request.task)
    verdict = tr("MISS")
    yield f"{verdict:5} {who} · {finding.cause}"
    yield from _miss_lines(request, replace(finding, notes=()))


def _miss_lines(r: Request, finding: Finding) -> Iterator[str]:
    if finding.lost:
        about = tr("up to ") if finding.cause is Cause.DIVERGED else "~" if r.is_rounded or r.follows else ""
        seconds = f", {finding.lost_s:,.2f} s" if finding.lost_s else ""
        yield "        " + tr("Read again: {about}{n:,} tokens").format(about=about, n=finding.lost) + seconds
    yield f"        {printable(finding.sentence)}"
    yield from (f"        {printable(note)}" for note in finding.notes)
    yield from (f"        → {cure.sentence()}" for cure in finding.cures)


def summary_lines(totals: Totals, servers: Sequence[Server]) -> Iterator[str]:
    """The sums as lines of text, over all servers of the log."""
    yield ""
    yield from _server_lines(servers)
    if not totals.score.requests and any(map(has_facts, servers)):
        return
    score, missed = totals.score, totals.score.misses.values()
    n_misses, lost = sum(found.n for found in missed), sum(found.tokens for found in missed)
    seconds = sum(found.seconds for found in missed)
    requests = plural("1 request", "%n requests", score.requests)
    misses = plural("1 miss", "%n misses", n_misses)
    if score.prompt_tokens:
        counts = tr("{tokens:,} tokens in prompts, {share} % reused")
        requests = f"{requests}, {counts.format(tokens=score.prompt_tokens, share=score.share)}"
        if totals.n_known < score.requests:
            requests += " " + tr("in the {n:,} whose numbers the log contains").format(n=totals.n_known)
    if lost:
        misses += ": " + plural("1 token read again", "%n tokens read again", lost)
        misses += f", {seconds:,.1f} s" if seconds else ""
    yield f"{requests}. {misses}."
    for cause, found in totals.misses:
        names = "; ".join(cure.name for cure in totals.cures[cause])
        cost = f"{found.seconds:9,.1f} s" if found.seconds else " " * 11
        yield f"  {cause:26} {found.n:6,} × {found.tokens:10,} " + tr("tokens") + f" {cost}  {names}"
    if n_dropped := sum(server.n_dropped for server in servers):
        yield tr("{n:,} prompts saved in memory were dropped ({mib:,.0f} MiB).").format(
            n=n_dropped, mib=sum(server.dropped_mib for server in servers)
        )
    if totals.more:
        yield tr("To log more: {how}").format(how=totals.more)
    if any(server.level >= 5 for server in servers):
        yield tr("This log contains prompts.")


def _server_lines(servers: Sequence[Server]) -> Iterator[str]:
    """Servers that are alike in one line, such as one that was started again; and what would help each."""
    alike: dict[str, list[str]] = {}
    for server in servers:
        text = "\n".join((_server_line(server), *_finding_lines(server)))
        alike.setdefault(text, []).append(printable(server.source))
    for line, sources in alike.items():
        named = ", ".join(sources[:_MOST_NAMED]) + (" …" if len(sources) > _MOST_NAMED else "")
        yield f"{named}: {line}" if len(alike) > 1 and any(sources) else line


def _finding_lines(server: Server) -> Iterator[str]:
    for finding in explain_server(server):
        yield f"  {finding.cause}: {finding.sentence}"
        yield from (f"        → {cure.sentence()}" for cure in finding.cures)


def _pool_parts(p: Pool) -> Iterator[str]:
    if p.read + p.cached:
        yield tr("{n:,} tokens in prompts").format(n=p.read + p.cached)
    if p.hit_rate >= 0:
        yield tr("prefix cache hit rate {share:.1f} %").format(share=p.hit_rate)
    if p.external >= 0:
        yield tr("external cache {share:.1f} %").format(share=p.external)
    if p.usage > 0:
        yield tr("up to {share:.1f} % of the cache in use").format(share=p.usage)
    if p.running > 0:
        yield tr("up to {n:,} running").format(n=p.running)
    if p.waiting > 0:
        waited = tr("up to {n:,} waiting").format(n=p.waiting)
        at = tr("while {share:.1f} % of the cache or less was in use").format(share=p.waiting_at)
        yield f"{waited} ({at})" if p.waiting_at >= 0 else waited


def _server_line(s: Server) -> str:
    parts = [s.name]
    if s.model:
        parts.append(printable(s.model))
    if s.slots > 0:
        slots = plural("1 slot", "%n slots", s.slots)
        parts.append(f"{slots} × {s.ctx:,}" if s.ctx > 0 else slots)
    memory = {"window": tr("sliding window"), "recurrent": tr("recurrent state")}.get(s.memory)
    parts += [memory] if memory else []
    if s.ram_mib >= 0:
        parts.append(f"--cache-ram {s.ram_mib}")
    if s.checkpoints >= 0:
        parts.append(f"--ctx-checkpoints {s.checkpoints}")
    if s.level:
        parts.append(tr("log level {level}").format(level=s.level))
    parts += _pool_parts(s.pool)
    return " · ".join(parts)


def request_json(request: Request, finding: Finding) -> dict[str, Any]:
    """One request; numbers that the log does not say are null."""
    r = request
    numbers = {
        "prompt_tokens": r.n_prompt,
        "reused_tokens": r.reused,
        "read_tokens": r.read,
        "held_tokens": r.held,
        "same_tokens": r.same,
        "generated_tokens": r.generated,
        "prompt_ms": r.prompt_ms,
        "task": r.task,
        "status": r.status,
    }
    return {
        "type": "request",
        "line": r.line,
        "clock": r.clock,
        "source": r.server.source,
        "slot": r.slot,
        "path": r.path,
        **{name: None if value < 0 else value for name, value in numbers.items()},
        "is_rounded": r.is_rounded,
        "cause": finding.cause.value,
        "is_miss": finding.cause not in HITS,
        "lost_tokens": finding.lost,
        "lost_s": round(finding.lost_s, 3),
        "sentence": finding.sentence,
        "cures": [cure.name for cure in finding.cures],
        "notes": list(finding.notes),
        "more": finding.more,
    }


def summary_json(totals: Totals, servers: Sequence[Server]) -> dict[str, Any]:
    """The sums. The keys of a server are those of the one that was met last; `servers`: all, if there are several."""
    described = [
        {
            "program": server.name,
            "model": server.model,
            "memory": server.memory,
            "log_level": server.level,
            "source": server.source,
            **_pool_json(server.pool),
        }
        for server in servers
    ]
    return {
        "type": "summary",
        **(described[-1] if described else {}),
        **({"servers": described} if len(described) > 1 else {}),
        "lines": max((server.n_lines for server in servers), default=0),
        "requests": totals.score.requests,
        "requests_with_numbers": totals.n_known,
        "prompt_tokens": totals.score.prompt_tokens,
        "reused_tokens": totals.score.reused_tokens,
        "saved_prompts_dropped": sum(server.n_dropped for server in servers),
        "misses": {
            cause: {
                "n": found.n,
                "lost_tokens": found.tokens,
                "lost_s": round(found.seconds, 3),
                "cures": [cure.name for cure in totals.cures[cause]],
            }
            for cause, found in totals.misses
        },
        "findings": [
            {"cause": one.cause.value, "sentence": one.sentence, "cures": [cure.name for cure in one.cures]}
            for server in servers
            for one in explain_server(server)
        ],
        "more": totals.more,
    }


def _pool_json(p: Pool) -> dict[str, Any]:
    """The numbers of all requests together, for a server whose log has no others; unknown ones are null."""
    if not p.n:
        return {}
    numbers = {
        "prefix_cache_hit_percent": p.hit_rate,
        "most_cache_percent": p.usage,
        "most_running": p.running,
        "most_waiting": p.waiting,
    }
    known = {name: None if value < 0 else round(value, 3) for name, value in numbers.items()}
    return {**known, "preempted": p.n_preempted}
