"""Numbers and sentences made from a cache view: totals, the content of a cell, quantities with units. No Qt."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.metrics import shared_cells
from kvdesk.cache.seq_bits import seq_has, seq_members
from kvdesk.cache.snapshot import CacheSnapshot, StreamMap, Verification
from kvdesk.graphemes import cut
from kvdesk.message import ConversationId, TurnStats
from kvdesk.protocol.cache import CacheView, ContextInfo
from kvdesk.quantities import rate_text, seconds_text, tokens_text
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """Metrics of the whole cache, summed over streams; high water is the highest of them."""

    capacity: int
    used: int
    high_water: int
    n_kv: int
    shared: int
    hole_ratio: float  # (H - U) / H over all streams, 0 when nothing was ever written


def totals(snapshot: CacheSnapshot) -> Totals:
    """Metrics of the first map of a snapshot (the base cache of a sliding-window model)."""
    streams = snapshot.maps[0].streams if snapshot.maps else ()
    used = sum(stream.used for stream in streams)
    high = sum(stream.high_water for stream in streams)
    return Totals(
        capacity=sum(stream.size for stream in streams),
        used=used,
        high_water=max((stream.high_water for stream in streams), default=0),
        n_kv=snapshot.n_kv,
        shared=sum(shared_cells(stream) for stream in streams),
        hole_ratio=(high - used) / high if high else 0.0,
    )


def cells_of_owners(view: CacheView) -> dict[ConversationId, int]:
    """Cells that each conversation holds, in the branch it goes on with and in those that are kept beside it, a cell
    that several of them share counted once. Without conversations that hold none.
    """
    spans = {int(span.seq_id): span.n_cells for span in view.snapshot.sequences}
    held: dict[ConversationId, list[int]] = {}
    for lease in view.leases:
        if spans.get(int(lease.seq_id)):
            held.setdefault(lease.conversation, []).append(int(lease.seq_id))
    streams = view.snapshot.maps[0].streams if view.snapshot.maps else ()
    unified = streams[0] if len(streams) == 1 else None

    def count(seq_ids: list[int]) -> int:
        if len(seq_ids) == 1 or unified is None:
            return sum(spans[seq_id] for seq_id in seq_ids)
        return int(np.count_nonzero(np.logical_or.reduce([seq_has(unified.seq_bits, seq_id) for seq_id in seq_ids])))

    return {name: count(seq_ids) for name, seq_ids in held.items()}


def sequences_of(stream: StreamMap, cell: int) -> tuple[int, ...]:
    """The seq_ids that hold a cell, rising."""
    if cell >= stream.high_water:
        return ()
    return seq_members(stream.seq_bits[cell])


def positions_of(snapshot: CacheSnapshot, seq_id: int) -> NDArray[np.int32]:
    """All positions a sequence holds in the first map, in cell order."""
    if not snapshot.maps:
        return np.zeros(0, np.int32)
    streams = snapshot.maps[0].streams
    found = [s.pos[seq_has(s.seq_bits, seq_id)] for s in streams]
    return np.concatenate(found) if found else np.zeros(0, np.int32)


def describe_cell(
    stream: StreamMap,
    cell: int,
    where: str,
    titles: Mapping[int, str],
    texts: Mapping[int, str],
    more: Sequence[str] = (),
) -> tuple[str, str]:
    """Two short lines about a cell: what it is; its text, what else is known (`more`), and its owners, which are cut
    first if there is no room.
    """
    first = tr("cell {cell}").format(cell=f"{cell:,}") + (f"  ·  {where}" if where else "")
    seqs = sequences_of(stream, cell)
    if not seqs:
        return first, tr("free")
    first += "  ·  " + tr("position {pos}").format(pos=f"{int(stream.pos[cell]):,}")
    names = ", ".join(owner(titles, seq) for seq in seqs)
    names = "  ·  ".join((*more, names))
    token = int(stream.token[cell])
    if token < 0:
        return first + "  ·  " + tr("token unknown"), names
    text = texts.get(token)
    first += "  ·  " + tr("token {token}").format(token=f"{token:,}")
    return first, names if text is None else f"{visible(text)}  ·  {names}"


def owner(titles: Mapping[int, str], seq_id: int) -> str:
    """The name of a sequence: that of what leases it, else its number."""
    return titles.get(seq_id) or tr("sequence {seq_id}").format(seq_id=seq_id)


def visible(text: str, limit: int = 24) -> str:
    """A token's text in quotes with its blanks to be seen."""
    shown = text.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")
    shown = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in shown)
    return f"“{cut(shown, limit)}”"


def stats_parts(stats: TurnStats) -> tuple[str, ...]:
    """The cost of an answer: tokens reused, of documents read elsewhere, and prefilled; then time to the first token
    and speed, where measured.
    """
    parts = [
        tr("reused {reused_tokens}").format(reused_tokens=f"{stats.reused_tokens:,}"),
        tr("prefilled {prefilled_tokens}").format(prefilled_tokens=f"{stats.prefilled_tokens:,}"),
    ]
    if stats.put_tokens:
        parts.insert(1, tr("of documents {put_tokens}").format(put_tokens=f"{stats.put_tokens:,}"))
    if stats.ttft_ms:
        parts.append(tr("first token {seconds}").format(seconds=seconds_text(stats.ttft_ms / 1e3)))
    if stats.decode_tok_s:
        parts.append(tr("{decode_tok_s} tok/s").format(decode_tok_s=rate_text(stats.decode_tok_s)))
    return tuple(parts)


def stats_rows(stats: TurnStats) -> tuple[tuple[str, str], ...]:
    """The same as names and values, to be compared with those of another answer; "–" if nothing was measured."""
    return (
        (tr("Reused tokens"), f"{stats.reused_tokens:,}"),
        (tr("Prefilled tokens"), f"{stats.prefilled_tokens:,}"),
        (tr("Tokens of the answer"), f"{stats.generated_tokens:,}"),
        (tr("First token after"), seconds_text(stats.ttft_ms / 1e3) if stats.ttft_ms else "–"),
        (tr("Tokens per second"), rate_text(stats.decode_tok_s) if stats.decode_tok_s else "–"),
    )


def stats_tip(stats: TurnStats) -> str:
    """The same, in full."""
    read = (
        ""
        if stats.reading_tok_s is None
        else tr(" ({reading_tok_s} tok/s)").format(reading_tok_s=rate_text(stats.reading_tok_s))
    )
    decoded = (
        tr(" ({decode_tok_s} tok/s)").format(decode_tok_s=rate_text(stats.decode_tok_s)) if stats.decode_tok_s else ""
    )
    continued = ""
    if stats.put_tokens:
        put = tr("{put} tokens of documents were read elsewhere and put there: not exact")
        continued = put.format(put=f"{stats.put_tokens:,}") + "\n"
    if stats.earlier_generated:
        all_of_it = tr("The answer was continued; in all {generated} tokens of it, and {computed} computed for prompts")
        numbers = {"generated": f"{stats.all_generated:,}", "computed": f"{stats.all_prefilled:,}"}
        continued += all_of_it.format(**numbers) + "\n"
    if stats.drafted_tokens:
        guessed = tr("{accepted} of {drafted} guessed tokens were right")
        numbers = {"accepted": f"{stats.accepted_tokens:,}", "drafted": f"{stats.drafted_tokens:,}"}
        continued += guessed.format(**numbers) + "\n"
    seed = "" if stats.seed < 0 else "\n" + tr("seed {seed}").format(seed=stats.seed)
    said = tr(
        "prompt {prompt} tokens: {reused} were in the cache, {prefilled} were computed{read}\n"
        "answer {generated}{decoded}\n"
        "{continued}from sending to the first token {ttft}\n"
        "sequence {seq_id}; cells used {used}, high water {high_water}, n_kv {n_kv}{seed}"
    )
    return said.format(
        prompt=f"{stats.prompt_tokens:,}",
        reused=f"{stats.reused_tokens:,}",
        prefilled=f"{stats.prefilled_tokens:,}",
        read=read,
        generated=tokens_text(stats.generated_tokens),
        decoded=decoded,
        continued=continued,
        ttft=seconds_text(stats.ttft_ms / 1e3),
        seq_id=stats.seq_id,
        used=f"{stats.cells_used:,}",
        high_water=f"{stats.high_water:,}",
        n_kv=f"{stats.n_kv:,}",
        seed=seed,
    )


def reasons(stats: TurnStats) -> str:
    """A line each: why the first token came when it did, why so much of the prompt was reused, what drafts gave."""
    return "\n".join(part for part in (stats.time_why, stats.why, stats.draft_why) if part)


def duration(seconds: float) -> str:
    """Roughly: in seconds, minutes or hours."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return tr("{seconds} min").format(seconds=minutes) if minutes < 100 else f"{minutes / 60:.1f} h"


def megabytes(n_bytes: float) -> str:
    """In MB, without the unit; a few cells are not 0.0."""
    value = n_bytes / 1e6
    if 0 < value < 0.1:
        return f"{value:.3f}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def kv_used_bytes(context: ContextInfo, used: int, capacity: int) -> float:
    """Bytes of K and V of the cells in use."""
    return (context.k_bytes + context.v_bytes) * used / capacity if capacity else 0.0


def verification_line(verification: Verification) -> tuple[str, str]:
    """Sentence and tone of how far the map can be trusted."""
    line, tone = _verification_line(verification)
    if not verification.by:
        return line, tone
    return tr("{server} says: {line}").format(server=verification.by, line=line), tone


def _verification_line(verification: Verification) -> tuple[str, str]:
    match verification.state:
        case "verified":
            rebuilt = (
                tr(" (rebuilt at {rebuilt_at})").format(rebuilt_at=f"{verification.rebuilt_at:,}")
                if verification.rebuilt_at
                else ""
            )
            return tr("map verified at operation {operation}{rebuilt}").format(
                operation=f"{verification.operation:,}", rebuilt=rebuilt
            ), "good"
        case "mirrored":
            doubt = f": {verification.detail}" if verification.detail else ""
            return tr("map mirrored since operation {operation}{doubt}").format(
                operation=f"{verification.operation:,}", doubt=doubt
            ), "secondary"
        case "mismatch":
            return tr("map not verified: {detail}").format(
                detail=verification.detail or tr("the engine reports other numbers")
            ), "warning"
