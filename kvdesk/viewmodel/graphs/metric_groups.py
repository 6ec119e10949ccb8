"""All numbers of the inspector as tables of text, each with its definition. No Qt: `numbers_panel` shows them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kvdesk.cache.metrics import SequenceMetrics, sequence_metrics
from kvdesk.cache.snapshot import CacheMap, CacheSnapshot, StreamMap
from kvdesk.message import FEW_TOKENS
from kvdesk.protocol.cache import CacheView
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.graphs.cell_metrics import CELL_METRICS, HIGH_WATER, READ, CellMetric
from kvdesk.viewmodel.graphs.measurements import CacheBytes, Measurements
from kvdesk.viewmodel.graphs.percentiles import ROLLING, Percentiles

MAX_STREAMS: Final = 3
"""Columns of the table of cells: with more streams the fullest are shown."""


class Value(NamedTuple):
    """A number as it is written, and its unit, "" if it has none. A number that is not known is a dash."""

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
    """A table that can be folded away. `columns` () if there is only one and it needs no name."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str = ""  # what to say when there are no rows


_SEQUENCE: Final[tuple[tuple[str, str, str], ...]] = (
    (marked("cells"), "n_cells", marked("Cells of the sequence")),
    (marked("scatter"), "scatter", marked("Scatter, in runs: runs of neighbouring cells - 1, so 0 is one piece")),
    (
        marked("wasted"),
        "wasted_span",
        marked("Wasted attention span, in cells: n_kv - cells visible at the next position"),
    ),
    (
        marked("holes"),
        "position_holes",
        marked("Position holes, in positions: (pos_max - pos_min + 1) - distinct positions"),
    ),
    (marked("twice"), "position_duplicates", marked("Position duplicates, in cells: cells - distinct positions")),
)
_LEDGER: Final = {
    marked("weights"): marked(
        "All tensors of the model; mapped from the file, so the system may drop them when memory is short"
    ),
    marked("K and V"): marked("All cells of all caches, used or not"),
    marked("recurrent state"): marked("One state for every sequence"),
    marked("compute buffers"): marked("The graph of one ubatch; grows with n_ubatch"),
    marked("output buffer"): marked("Logits of one batch entry for every sequence"),
    marked("saved conversations"): marked(
        "States of conversations outside the cache, in memory; on disk there may be more"
    ),
    marked("being written to disk"): marked("States of conversations on their way from memory to disk"),
    marked("undo"): marked("Copies of the whole cache from before operations by hand; the oldest go first"),
    marked("recording"): marked("Operations on the cache, for the time line; the oldest go first"),
}
_CODES: Final[tuple[tuple[int, str, str], ...]] = (
    (0, marked("done"), marked("llama_decode returned 0: every token is in the cache")),
    (
        1,
        marked("no room"),
        marked("llama_decode returned 1: no cells for the batch, nothing was placed (K-shifts are applied)"),
    ),
    (2, marked("stopped"), marked("llama_decode returned 2: stopped by the abort callback; finished ubatches stay")),
    (-1, marked("refused"), marked("llama_decode returned -1: the batch is not valid, nothing happened")),
    (-2, marked("no memory"), marked("llama_decode returned -2: the graph could not be allocated")),
    (-3, marked("failed"), marked("llama_decode returned -3: the graph could not be computed")),
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
    columns = (
        Column(tr("estimated"), tr("From the file's header and the settings, before the load")),
        Column(tr("measured")),
    )
    rows = tuple(
        Row(
            tr(row.name),
            tr(_LEDGER.get(row.name, ""))
            + ("" if row.most is None else tr("; {most} MB at most").format(most=f"{row.most / 1e6:,.0f}")),
            (_megabytes(row.estimated), Value() if row.measured is None else _megabytes(row.measured)),
        )
        for row in measured.ledger
    )
    return Group(tr("Memory"), columns, rows, empty=tr("No model is loaded."))


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
    title = tr("Cells")
    if len(found) > MAX_STREAMS:
        title = tr("Cells: the {max_streams} fullest of {n} streams").format(max_streams=MAX_STREAMS, n=len(found))
        found = sorted(found, key=lambda entry: -entry[0])[:MAX_STREAMS]
    columns = tuple(Column(name) for _, name, _ in found) if len(found) > 1 else ()
    rows = tuple(
        Row(
            tr(metric.name),
            tr(metric.definition),
            tuple(_cell_value(metric, cells) for _, _, cells in found) or (Value(),),
        )
        for metric in CELL_METRICS
    )
    return Group(title, columns, rows)


def _cell_value(metric: CellMetric, cells: StreamMap) -> Value:
    return number(metric.read(cells), tr(metric.unit), 1 if metric.unit == "%" else None)


def _stream_name(cache: CacheMap, i: int) -> str:
    if len(cache.streams) == 1:
        return cache.name
    return tr("stream {i}").format(i=i) if cache.name == "kv" else f"{cache.name} {i}"


def _sequences(snapshot: CacheSnapshot | None, titles: Mapping[int, str]) -> Group:
    rows = []
    maps = snapshot.maps if snapshot else ()
    for span in snapshot.sequences if snapshot else ():
        title = titles.get(span.seq_id, tr("no conversation"))
        for cache in maps:
            cells = cache.streams[span.seq_id if len(cache.streams) > 1 else 0]
            window = cache.n_swa > 0 and cache.name == "window"
            found = sequence_metrics(cells, span.seq_id, cache.n_swa, "standard" if window else "none")
            part = f" · {cache.name}" if len(maps) > 1 else ""
            rows.append(
                Row(
                    f"{title}{part}",
                    tr("{title}: sequence {seq_id}{part}").format(title=title, seq_id=span.seq_id, part=part),
                    tuple(_sequence_values(found)),
                )
            )
    columns = tuple(Column(tr(name), tr(definition)) for name, _, definition in _SEQUENCE)
    return Group(tr("Sequences"), columns, tuple(rows), tr("No sequence has a cell yet."))


def _sequence_values(found: SequenceMetrics) -> Sequence[Value]:
    return [number(getattr(found, field)) for _, field, _ in _SEQUENCE]


def _bytes(measured: Measurements) -> Group:
    parts = (measured.k_bytes, measured.v_bytes)

    def row(name: str, field: str, definition: str) -> Row:
        def value(part: CacheBytes) -> Value:
            return number(getattr(part, field) / 1e6, "MB") if part.allocated else Value()

        return Row(name, definition, tuple(value(part) for part in parts))

    return Group(
        tr("Bytes"),
        (Column("K", tr("Keys of all layers")), Column("V", tr("Values of all layers"))),
        (
            row(tr("allocated"), "allocated", tr("N x streams x the row of one cell in all layers")),
            row(tr("occupied"), "occupied", tr("Used cells x the row of one cell in all layers")),
            row(
                tr("up to n_kv"),
                "live",
                tr("n_kv x the row of one cell in all layers: what attention reads for a token"),
            ),
        ),
    )


def _speed(measured: Measurements) -> Group:
    turn = measured.turn
    rows = (
        Row(
            tr("prefill, last request"),
            tr(
                "(prompt tokens - reused tokens) / wall time of prefill, K-shift included; a dash if fewer than "
                "{few_tokens} tokens were read"
            ).format(few_tokens=FEW_TOKENS),
            (number(turn.reading_tok_s if turn else None, tr("tok/s")),),
        ),
        Row(
            tr("decode, last request"),
            tr("(generated tokens - 1) / (time of the last token - time of the first)"),
            (number(turn.decode_tok_s or None if turn else None, tr("tok/s")),),
        ),
        Row(
            tr("decode, now"),
            tr("Tokens / time of llama_decode, over 0.25 s"),
            (number(measured.decode.series.last, tr("tok/s")),),
        ),
        Row(
            tr("time to first token"),
            tr("TTFT: from sending to the first token sampled; queue, restore and K-shift included"),
            (number(turn.ttft_ms or None if turn else None, "ms"),),
        ),
    )
    return Group(tr("Speed"), (), rows)


def _latency(measured: Measurements) -> Group:
    def values(found: Percentiles | None) -> tuple[Value, ...]:
        return tuple(number(value, "ms") for value in found) if found else (Value(),) * 3

    n = measured.gaps.n
    return Group(
        tr("Inter-token latency"),
        tuple(
            Column(f"P{p}", tr("{p} of 100 gaps are at most this long, by nearest rank").format(p=p))
            for p in (50, 95, 99)
        ),
        (
            Row(
                tr("last {rolling} gaps").format(rolling=ROLLING),
                tr("Gaps between tokens of one answer, the latest; with several answers at once, from batch to batch"),
                values(measured.rolling()),
            ),
            Row(
                tr("whole session"),
                tr("Of all {n} gaps since the model was opened").format(n=f"{n:,}"),
                values(measured.gaps.session()),
            ),
        ),
    )


def _reuse(measured: Measurements) -> Group:
    turn = measured.turn
    last = 100 * turn.reused_tokens / turn.prompt_tokens if turn else None
    ratio = measured.hit_ratio
    rows = (
        Row(
            tr("prefix hits, last request"), tr("Reused tokens / prompt tokens of one request"), (number(last, "%", 1),)
        ),
        Row(
            tr("prefix hits, cumulative"),
            tr("Reused tokens / prompt tokens of all requests since the model was opened"),
            (number(None if ratio is None else 100 * ratio, "%", 1),),
        ),
        Row(tr("requests"), tr("Answers that began, since the model was opened"), (number(measured.n_turns),)),
        Row(tr("prompt tokens"), tr("Of all requests"), (number(measured.prompt_tokens, tr("tokens")),)),
        Row(
            tr("reused tokens"),
            tr("Prompt tokens that were in the cache already"),
            (number(measured.reused_tokens, tr("tokens")),),
        ),
    )
    return Group(tr("Reuse"), (), rows)


def _placing(measured: Measurements, *, pending: bool) -> Group:
    last = measured.last_decode
    flushes = measured.n_flushes
    rows = (
        Row(
            tr("slot search, last batch"),
            tr("Cells that find_slot tested for the last batch, wrap included"),
            (number(last.n_tested if last else None, tr("cells")),),
        ),
        Row(
            tr("batch splits, last batch"),
            tr("Ubatches the last batch was cut into"),
            (number(last.n_ubatches if last else None, tr("ubatches")),),
        ),
        Row(
            tr("batches that were split"),
            tr("Batches cut into more than one ubatch, of {n_decodes}").format(n_decodes=f"{measured.n_decodes:,}"),
            (number(measured.n_split, tr("batches")),),
        ),
        Row(
            tr("K-shift pending"),
            tr("Positions have moved whose K is rotated before the next decode"),
            (Value(tr("yes") if pending else tr("no")),),
        ),
        Row(
            tr("K-shift flushes"),
            tr("Decodes that rotated K first; each rotates the whole capacity"),
            (number(flushes, tr("times")),),
        ),
        Row(
            tr("moved cells rotated"),
            tr("Cells whose position had moved, of all flushes"),
            (number(measured.flushed_cells, tr("cells")),),
        ),
        Row(
            tr("time of flushes"),
            tr("Wall time of the llama_decode calls that rotated K, their tokens included"),
            (number(measured.flushed_ms if flushes else None, "ms"),),
        ),
    )
    return Group(tr("Placing and K-shift"), (), rows)


def _moving(measured: Measurements) -> Group:
    moved = measured.moved
    effect = moved.operation.effect if moved else None
    if moved is None or effect is None:
        return Group(tr("Compaction"), (), (), tr("No compaction yet: nothing has moved K and V."))
    streams = effect.comparison.streams
    high = [max((getattr(s, side).high_water for s in streams), default=0) for side in ("before", "after")]
    comparison = effect.comparison
    name = moved.operation.name
    return Group(
        tr("Compaction: {name}").format(name=name) if name != "compact" else tr("Compaction"),
        (Column(tr("before")), Column(tr("after"))),
        (
            Row(
                tr(HIGH_WATER),
                tr("H, the highest of all streams"),
                (number(high[0], tr("cells")), number(high[1], tr("cells"))),
            ),
            Row(
                tr(READ),
                tr("n_kv: the cells that attention reads"),
                (number(comparison.n_kv_before, tr("cells")), number(comparison.n_kv_after, tr("cells"))),
            ),
            Row(
                tr("time per token"),
                tr("P50 of the last {rolling} gaps before; of up to 64 gaps since").format(rolling=ROLLING),
                (number(moved.before, "ms"), number(moved.after, "ms")),
            ),
            Row(
                tr("bytes moved"),
                tr("2 x the tensor bytes of the state"),
                (Value(""), number(effect.bytes_moved / 1e6, "MB")),
            ),
            Row(tr("time"), tr("Wall time of get and set"), (Value(""), number(moved.operation.ms, "ms"))),
            Row(tr("throughput"), tr("Bytes / (get + set)"), (Value(""), number(moved.gb_s, "GB/s"))),
        ),
    )


def _codes(measured: Measurements) -> Group:
    rows = [
        Row(f"{tr(word)} ({code})", tr(definition), (number(measured.codes[code], tr("times")),))
        for code, word, definition in _CODES
    ]
    other = sum(n for code, n in measured.codes.items() if code not in {entry[0] for entry in _CODES})
    if other:
        rows.append(Row(tr("other"), tr("llama_decode returned another code"), (number(other, tr("times")),)))
    rows.append(
        Row(
            tr("refused by kvdesk"),
            tr("Calls that kvdesk did not make, because llama.cpp would have aborted or damaged the cache"),
            (number(measured.n_refused, tr("times")),),
        )
    )
    return Group(tr("Return codes"), (), tuple(rows))
