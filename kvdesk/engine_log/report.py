"""Requests explained, as text for a terminal or as JSON: one after another, then the sums. Memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvdesk.engine_log.causes import HITS, Cause, Finding
from kvdesk.engine_log.cures import Cure
from kvdesk.engine_log.record import Request, Server
from kvdesk.printable import printable
from kvdesk.translation import tr
from kvdesk.values import dataclass, field


@dataclass(slots=True)
class _Sum:
    n: int = 0
    lost: int = 0
    lost_s: float = 0.0
    cures: tuple[Cure, ...] = ()


@dataclass(slots=True)
class Totals:
    """The sums over all requests so far."""

    n: int = 0
    prompt_tokens: int = 0
    reused: int = 0
    by_cause: dict[Cause, _Sum] = field(default_factory=dict)
    more: str = ""

    def add(self, request: Request, finding: Finding) -> None:
        """Count one request."""
        self.n += 1
        if request.n_prompt >= 0 and request.reused >= 0:
            self.prompt_tokens += request.n_prompt
            self.reused += request.reused
        total = self.by_cause.setdefault(finding.cause, _Sum())
        total.n += 1
        total.lost += finding.lost
        total.lost_s += finding.lost_s
        total.cures = total.cures or finding.cures
        self.more = self.more or finding.more

    @property
    def misses(self) -> list[tuple[Cause, _Sum]]:
        """What lost tokens, the most expensive first."""
        found = [(cause, total) for cause, total in self.by_cause.items() if cause not in HITS]
        return sorted(found, key=lambda entry: (-entry[1].lost_s, -entry[1].lost))


def request_lines(request: Request, finding: Finding) -> Iterator[str]:
    """One request as lines of text."""
    r, is_miss = request, finding.cause not in HITS
    who = tr("slot {slot}").format(slot=r.slot) + (tr(", task {task}").format(task=r.task) if r.task >= 0 else "")
    numbers = []
    if r.n_prompt >= 0:
        numbers.append(tr("{n:,} tokens").format(n=r.n_prompt))
    if r.reused >= 0:
        numbers.append(tr("{n:,} reused").format(n=r.reused))
    if r.read >= 0:
        numbers.append(
            tr("{n:,} read").format(n=r.read) + (f" ({r.prompt_ms / 1000:,.2f} s)" if r.prompt_ms >= 0 else "")
        )
    verdict = tr("MISS") if is_miss else tr("ok")
    at = tr("line {line:,}").format(line=r.line) + (f" {printable(r.clock)}" if r.clock else "")
    yield f"{verdict:5} {at} · {who} · {' · '.join(numbers) or '–'} · {finding.cause}"
    if not is_miss:
        yield from (f"        {printable(note)}" for note in finding.notes)
        return
    if finding.lost:
        about = tr("up to ") if finding.cause is Cause.DIVERGED else "~" if r.is_rounded else ""
        seconds = f", {finding.lost_s:,.2f} s" if finding.lost_s else ""
        yield "        " + tr("Read again: {about}{n:,} tokens").format(about=about, n=finding.lost) + seconds
    yield f"        {printable(finding.sentence)}"
    yield from (f"        {printable(note)}" for note in finding.notes)
    yield from (f"        → {cure.sentence()}" for cure in finding.cures)


def summary_lines(totals: Totals, server: Server) -> Iterator[str]:
    """The sums as lines of text."""
    yield ""
    yield _server_line(server)
    share = totals.reused / totals.prompt_tokens if totals.prompt_tokens else 0.0
    n_misses = sum(total.n for _, total in totals.misses)
    lost = sum(total.lost for _, total in totals.misses)
    seconds = sum(total.lost_s for _, total in totals.misses)
    requests = tr("1 request") if totals.n == 1 else tr("%n requests", totals.n)
    misses = tr("1 miss") if n_misses == 1 else tr("%n misses", n_misses)
    if totals.prompt_tokens:
        counts = tr("{tokens:,} tokens in prompts, {share:.0%} reused")
        requests = f"{requests}, {counts.format(tokens=totals.prompt_tokens, share=share)}"
    if lost:
        misses = f"{misses}: {tr('{n:,} tokens read again').format(n=lost)}"
        misses += f", {seconds:,.1f} s" if seconds else ""
    yield f"{requests}. {misses}."
    for cause, total in totals.misses:
        names = "; ".join(cure.name for cure in total.cures)
        cost = f"{total.lost_s:9,.1f} s" if total.lost_s else " " * 11
        yield f"  {cause:26} {total.n:6,} × {total.lost:10,} " + tr("tokens") + f" {cost}  {names}"
    if server.n_dropped:
        yield tr("{n:,} prompts saved in memory were dropped ({mib:,.0f} MiB).").format(
            n=server.n_dropped, mib=server.dropped_mib
        )
    if totals.more:
        yield tr("To log more: {how}").format(how=totals.more)
    if server.level >= 5:
        yield tr("This log contains prompts.")


def _server_line(s: Server) -> str:
    parts = [s.name]
    if s.model:
        parts.append(printable(s.model))
    if s.slots > 0:
        slots = tr("1 slot") if s.slots == 1 else tr("%n slots", s.slots)
        parts.append(f"{slots} × {s.ctx:,}" if s.ctx > 0 else slots)
    memory = {"window": tr("sliding window"), "recurrent": tr("recurrent state")}.get(s.memory)
    parts += [memory] if memory else []
    if s.ram_mib >= 0:
        parts.append(f"--cache-ram {s.ram_mib}")
    if s.checkpoints >= 0:
        parts.append(f"--ctx-checkpoints {s.checkpoints}")
    if s.level:
        parts.append(tr("log level {level}").format(level=s.level))
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


def summary_json(totals: Totals, server: Server) -> dict[str, Any]:
    """The sums."""
    return {
        "type": "summary",
        "program": server.name,
        "model": server.model,
        "memory": server.memory,
        "log_level": server.level,
        "lines": server.n_lines,
        "requests": totals.n,
        "prompt_tokens": totals.prompt_tokens,
        "reused_tokens": totals.reused,
        "saved_prompts_dropped": server.n_dropped,
        "misses": {
            cause.value: {
                "n": total.n,
                "lost_tokens": total.lost,
                "lost_s": round(total.lost_s, 3),
                "cures": [cure.name for cure in total.cures],
            }
            for cause, total in totals.misses
        },
        "more": totals.more,
    }
