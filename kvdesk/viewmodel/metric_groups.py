"""All numbers of the inspector as tables of text, each with its definition. No Qt: `numbers_panel` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvdesk.cache.metrics import SequenceMetrics, sequence_metrics
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, StreamMap
from kvdesk.chat import FEW_TOKENS
from kvdesk.protocol.cache import CacheView
from kvdesk.viewmodel.cell_metrics import CELL_METRICS, CellMetric
from kvdesk.viewmodel.measurements import CacheBytes, Measurements
from kvdesk.viewmodel.percentiles import ROLLING, Percentiles

MAX_STREAMS: Final = 3
"""Columns of the table of cells: with more streams the fullest are shown."""


class Value(NamedTuple):
    """A number as it is written, and its unit, "" where it has none. A number that is not known is a dash."""

    text: str = "–"
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric, or one sequence. `definition` is shown on hover."""

    name: str
    definition: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A table that can be folded away. `columns` () where there is only one and it needs no name."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str = ""  # what to say when there are no rows


_SEQUENCE: Final[tuple[tuple[str, str, str], ...]] = (
    ("cells", "n_cells", "Cells that hold the sequence"),
    ("scatter", "scatter", "Scatter, in runs: runs of neighbouring cells - 1, so 0 is one piece"),
    ("wasted", "wasted_span", "Wasted attention span, in cells: n_kv - cells visible at the next position"),
    ("holes", "position_holes", "Position holes, in positions: (pos_max - pos_min + 1) - distinct positions"),
    ("twice", "position_duplicates", "Position duplicates, in cells: cells - distinct positions"),
)
_LEDGER: Final = {
    "weights": "All tensors of the model; mapped from the file, so the system may drop them when memory is short",
    "K and V": "All cells of all caches, used or not",
    "recurrent state": "One state for every sequence",
    "compute buffers": "The graph of one ubatch; grows with n_ubatch",
    "output buffer": "Logits of one batch entry for every sequence",
    "saved conversations": "States of conversations outside the cache, in memory; on disk there may be more",
    "being written to disk": "States of conversations on their way from memory to disk",
    "undo": "Copies of the whole cache from before operations by hand; the oldest go first",
    "transfer buffers": "Memory kept for the next state that is saved, moved or audited; for a minute",
}
_CODES: Final[tuple[tuple[int, str, str], ...]] = (
    (0, "done", "llama_decode returned 0: every token is in the cache"),
    (1, "no room", "llama_decode returned 1: no cells for the batch, nothing was placed (K-shifts are applied)"),
    (2, "stopped", "llama_decode returned 2: stopped by the abort callback; finished ubatches stay"),
    (-1, "refused", "llama_decode returned -1: the batch is not valid, nothing happened"),
    (-2, "no memory", "llama_decode returned -2: the graph could not be allocated"),
    (-3, "failed", "llama_decode returned -3: the graph could not be computed"),
)


def metric_groups(measured: Measurements, view: CacheView | None, titles: Mapping[int, str]) -> tuple[Group, ...]:
    """Every group, in the order shown. `titles` names sequences by seq_id."""
    snapshot = view.snapshot if view else None
    return (
        _cells(snapshot),
        _sequences(snapshot, titles),
        _bytes(measured),
        _speed(measured),
        _latency(measured),
        _reuse(measured),
        _placing(measured, pending=view.pending if view else False),
        _moving(measured),
        _codes(measured),
        _ledger(measured),
    )


def _ledger(measured: Measurements) -> Group:
    """Memory of model and context: estimated before the load, measured after."""
    columns = (Column("estimated", "From the file's header and the settings, before the load"), Column("measured"))
    rows = tuple(
        Row(
            row.name,
            _LEDGER.get(row.name, "") + ("" if row.most is None else f"; {row.most / 1e6:,.0f} MB at most"),
            (_megabytes(row.estimated), Value() if row.measured is None else _megabytes(row.measured)),
        )
        for row in measured.ledger
    )
    return Group("Memory", columns, rows, empty="No model is loaded.")


def _megabytes(n_bytes: int) -> Value:
    return number(n_bytes / 1e6, "MB", 1)


def number(value: float | None, unit: str = "", digits: int | None = None) -> Value:
    """A value with three significant digits, or `digits` after the point; a dash for None."""
    if value is None:
        return Value()
    if digits is None:
        digits = 0 if isinstance(value, int) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return Value(f"{value:,.{digits}f}", unit)


def _cells(snapshot: CacheSnapshot | None) -> Group:
    found = [
        (cells.used, _stream_name(cache, i), cells)
        for cache in (snapshot.maps if snapshot else ())
        for i, cells in enumerate(cache.streams)
    ]
    title = "Cells"
    if len(found) > MAX_STREAMS:
        title = f"Cells: the {MAX_STREAMS} fullest of {len(found)} streams"
        found = sorted(found, key=lambda entry: -entry[0])[:MAX_STREAMS]
    columns = tuple(Column(name) for _, name, _ in found) if len(found) > 1 else ()
    rows = tuple(
        Row(metric.name, metric.definition, tuple(_cell_value(metric, cells) for _, _, cells in found) or (Value(),))
        for metric in CELL_METRICS
    )
    return Group(title, columns, rows)


def _cell_value(metric: CellMetric, cells: StreamMap) -> Value:
    return number(metric.read(cells), metric.unit, 1 if metric.unit == "%" else None)


def _stream_name(cache: CacheMap, i: int) -> str:
    if len(cache.streams) == 1:
        return cache.name
    return f"stream {i}" if cache.name == "kv" else f"{cache.name} {i}"


def _sequences(snapshot: CacheSnapshot | None, titles: Mapping[int, str]) -> Group:
    rows = []
    maps = snapshot.maps if snapshot else ()
    for span in snapshot.sequences if snapshot else ():
        title = titles.get(span.seq_id, "no conversation")
        for cache in maps:
            cells = cache.streams[span.seq_id if len(cache.streams) > 1 else 0]
            window = cache.n_swa > 0 and cache.name == "window"
            found = sequence_metrics(cells, span.seq_id, cache.n_swa, "standard" if window else "none")
            part = f" · {cache.name}" if len(maps) > 1 else ""
            rows.append(Row(f"{title}{part}", f"{title}: sequence {span.seq_id}{part}", tuple(_sequence_values(found))))
    columns = tuple(Column(name, definition) for name, _, definition in _SEQUENCE)
    return Group("Sequences", columns, tuple(rows), "No sequence holds a cell yet.")


def _sequence_values(found: SequenceMetrics) -> Sequence[Value]:
    return [number(getattr(found, field)) for _, field, _ in _SEQUENCE]


def _bytes(measured: Measurements) -> Group:
    parts = (measured.k_bytes, measured.v_bytes)

    def row(name: str, field: str, definition: str) -> Row:
        def value(part: CacheBytes) -> Value:
            return number(getattr(part, field) / 1e6, "MB") if part.allocated else Value()

        return Row(name, definition, tuple(value(part) for part in parts))

    return Group(
        "Bytes",
        (Column("K", "Keys of all layers"), Column("V", "Values of all layers")),
        (
            row("allocated", "allocated", "N x streams x the row of one cell in all layers"),
            row("occupied", "occupied", "Used cells x the row of one cell in all layers"),
            row("up to n_kv", "live", "n_kv x the row of one cell in all layers: what attention reads for a token"),
        ),
    )


def _speed(measured: Measurements) -> Group:
    turn = measured.turn
    rows = (
        Row(
            "prefill, last request",
            "(prompt tokens - reused tokens) / wall time of prefill, K-shift included; "
            f"a dash where fewer than {FEW_TOKENS} tokens were read",
            (number(turn.reading_tok_s if turn else None, "tok/s"),),
        ),
        Row(
            "decode, last request",
            "(generated tokens - 1) / (time of the last token - time of the first)",
            (number(turn.decode_tok_s or None if turn else None, "tok/s"),),
        ),
        Row(
            "decode, now", "Tokens / time of llama_decode, over 0.25 s", (number(measured.decode.series.last, "tok/s"),)
        ),
        Row(
            "time to first token",
            "TTFT: from sending to the first token sampled; queue, restore and K-shift included",
            (number(turn.ttft_ms or None if turn else None, "ms"),),
        ),
    )
    return Group("Speed", (), rows)


def _latency(measured: Measurements) -> Group:
    def values(found: Percentiles | None) -> tuple[Value, ...]:
        return tuple(number(value, "ms") for value in found) if found else (Value(),) * 3

    n = measured.gaps.n
    return Group(
        "Inter-token latency",
        tuple(Column(f"P{p}", f"{p} of 100 gaps are at most so long, by nearest rank") for p in (50, 95, 99)),
        (
            Row(
                f"last {ROLLING} gaps",
                "Gaps between tokens of one answer, the latest; with several answers at once, from batch to batch",
                values(measured.rolling()),
            ),
            Row("whole session", f"Of all {n:,} gaps since the model was opened", values(measured.gaps.session())),
        ),
    )


def _reuse(measured: Measurements) -> Group:
    turn = measured.turn
    last = 100 * turn.reused_tokens / turn.prompt_tokens if turn else None
    ratio = measured.hit_ratio
    rows = (
        Row("prefix hits, last request", "Reused tokens / prompt tokens of one request", (number(last, "%", 1),)),
        Row(
            "prefix hits, cumulative",
            "Reused tokens / prompt tokens of all requests since the model was opened",
            (number(None if ratio is None else 100 * ratio, "%", 1),),
        ),
        Row("requests", "Answers that began, since the model was opened", (number(measured.n_turns),)),
        Row("prompt tokens", "Of all requests", (number(measured.prompt_tokens, "tokens"),)),
        Row(
            "reused tokens", "Prompt tokens that were in the cache already", (number(measured.reused_tokens, "tokens"),)
        ),
    )
    return Group("Reuse", (), rows)


def _placing(measured: Measurements, *, pending: bool) -> Group:
    last = measured.last_decode
    flushes = measured.n_flushes
    rows = (
        Row(
            "slot search, last batch",
            "Cells that find_slot tested for the last batch, wrap included",
            (number(last.n_tested if last else None, "cells"),),
        ),
        Row(
            "batch splits, last batch",
            "Ubatches the last batch was cut into",
            (number(last.n_ubatches if last else None, "ubatches"),),
        ),
        Row(
            "batches that were split",
            f"Batches cut into more than one ubatch, of {measured.n_decodes:,}",
            (number(measured.n_split, "batches"),),
        ),
        Row(
            "K-shift pending",
            "Positions have moved whose K is rotated before the next decode",
            (Value("yes" if pending else "no"),),
        ),
        Row(
            "K-shift flushes",
            "Decodes that rotated K first; each rotates the whole capacity",
            (number(flushes, "times"),),
        ),
        Row(
            "moved cells rotated",
            "Cells whose position had moved, of all flushes",
            (number(measured.flushed_cells, "cells"),),
        ),
        Row(
            "time of flushes",
            "Wall time of the llama_decode calls that rotated K, their tokens included",
            (number(measured.flushed_ms if flushes else None, "ms"),),
        ),
    )
    return Group("Placing and K-shift", (), rows)


def _moving(measured: Measurements) -> Group:
    moved = measured.moved
    effect = moved.operation.effect if moved else None
    if moved is None or effect is None:
        return Group("Compaction", (), (), "No compaction yet: nothing has moved K and V.")
    streams = effect.comparison.streams
    high = [max((getattr(s, side).high_water for s in streams), default=0) for side in ("before", "after")]
    comparison = effect.comparison
    name = moved.operation.name
    return Group(
        f"Compaction: {name}" if name != "compact" else "Compaction",
        (Column("before"), Column("after")),
        (
            Row("high water", "H, the highest of all streams", (number(high[0], "cells"), number(high[1], "cells"))),
            Row(
                "n_kv",
                "The cells that attention reads",
                (number(comparison.n_kv_before, "cells"), number(comparison.n_kv_after, "cells")),
            ),
            Row(
                "time per token",
                f"P50 of the last {ROLLING} gaps before; of up to 64 gaps since",
                (number(moved.before, "ms"), number(moved.after, "ms")),
            ),
            Row(
                "bytes moved", "2 x the tensor bytes of the state", (Value(""), number(effect.bytes_moved / 1e6, "MB"))
            ),
            Row("time", "Wall time of get and set", (Value(""), number(moved.operation.ms, "ms"))),
            Row("throughput", "Bytes / (get + set)", (Value(""), number(moved.gb_s, "GB/s"))),
        ),
    )


def _codes(measured: Measurements) -> Group:
    rows = [
        Row(f"{word} ({code})", definition, (number(measured.codes[code], "times"),))
        for code, word, definition in _CODES
    ]
    other = sum(n for code, n in measured.codes.items() if code not in {entry[0] for entry in _CODES})
    if other:
        rows.append(Row("other", "llama_decode returned another code", (number(other, "times"),)))
    rows.append(
        Row(
            "refused by kvdesk",
            "Calls that kvdesk did not make, because llama.cpp would have aborted or damaged the cache",
            (number(measured.n_refused, "times"),),
        )
    )
    return Group("Return codes", (), tuple(rows))
