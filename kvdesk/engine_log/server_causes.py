"""What the log says of a server as a whole: a cache that is off, full or too small, or that reuses nothing.

Pure. A request that the log shows has its own cause (`causes`).
"""

from collections.abc import Iterator

from kvdesk.engine_log import cures
from kvdesk.engine_log.cures import Cure, cures_of
from kvdesk.engine_log.findings import Cause, Finding
from kvdesk.engine_log.pools import FULL, Pool
from kvdesk.engine_log.record import Server
from kvdesk.translation import tr


def has_facts(server: Server) -> bool:
    """Whether the log says anything of the server as a whole."""
    return server.pool.n > 0 or server.no_room + server.n_cut > 0 or server.no_memory or bool(server.never_reused)


def explain_server(server: Server) -> list[Finding]:
    """What would help this server, the worst first; nothing for one that reuses its cache and has room."""
    found = [*_room(server), *_pool(server.pool)]
    return [Finding(cause, sentence, cures=cures_of(server.name, helps)) for cause, sentence, helps in found]


def _room(s: Server) -> Iterator[tuple[Cause, str, tuple[Cure, ...]]]:
    if s.no_memory:
        said = tr("The memory did not suffice for the cache of this context, so the server did not start.")
        yield Cause.TOO_SMALL, said, (cures.SMALLER_CONTEXT, cures.CACHE_TYPES)
    if s.n_cut:
        said = tr("Prompts longer than the context, whose beginning was cut off silently: {n:,}.")
        said = said.format(n=s.n_cut)
        if s.cut_from > 0:
            said += " " + tr("The longest had {n:,} tokens.").format(n=s.cut_from)
        yield Cause.TRUNCATED, said, (cures.CONTEXT,)
    if s.never_reused:
        said = tr("--cache-reuse has no effect: llama-server does not support it with this model ({what}).")
        yield Cause.CHUNKS_OFF, said.format(what=s.never_reused), (cures.NO_MEDIA,)
    if s.no_room:
        said = tr("Batches without room in the cache: {n:,}. The requests together need more cells than -c makes.")
        yield Cause.NO_ROOM, said.format(n=s.no_room), (cures.CONTEXT, cures.FEWER_SLOTS)


def _pool(p: Pool) -> Iterator[tuple[Cause, str, tuple[Cure, ...]]]:
    room = (cures.POOL_MEMORY, cures.POOL_REQUESTS, cures.POOL_CONTEXT)
    if p.want > 0:
        said = tr("The cache is too small for one prompt of {want:,} tokens, so the server did not start.")
        said = said.format(want=p.want)
        if p.have > 0:
            said += " " + tr("It has room for {have:,}.").format(have=p.have)
        yield Cause.TOO_SMALL, said, (cures.POOL_CONTEXT, cures.POOL_MEMORY)
    if p.n_preempted:
        said = (
            tr("The cache was full. Requests interrupted, and moved to another memory and back: {n:,} or more.")
            if p.is_swapped
            else tr("The cache was full. Requests interrupted, and computed again: {n:,} or more.")
        )
        yield Cause.PREEMPTED, said.format(n=p.n_preempted), (*room, cures.POOL_CAREFUL)
    elif p.waiting_at >= FULL:
        said = tr("The cache was full ({usage:.1f} %) while requests waited.")
        yield Cause.POOL_FULL, said.format(usage=p.waiting_at), room
    if p.is_off:
        said = tr("Prefix caching is off: each prompt is read from its beginning.")
        yield Cause.REUSE_OFF, said, (cures.POOL_REUSE,)
    elif p.has_read and p.hit_rate == 0 >= p.external:
        is_known = p.is_on or p.block > 0
        yield Cause.NOTHING, _nothing(p), (cures.COMPARE,) if is_known else (cures.POOL_REUSE, cures.COMPARE)


def _nothing(p: Pool) -> str:
    said = tr("No token of a prompt came from the cache.")
    if p.block > 0:
        whole = tr(
            "This model has recurrent states: only whole blocks of {n:,} tokens are reused, and only if the state at "
            "their end was kept."
        )
        return f"{said} {whole.format(n=p.block)}"
    may = tr(
        "They were the first, or differ near their beginning, or the model has recurrent states and kept none of them."
    )
    if not p.is_on:
        may += " " + tr("Or prefix caching is off.")
    return f"{said} {may}"
