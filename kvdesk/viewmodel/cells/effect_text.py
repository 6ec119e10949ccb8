"""The effect of an operation in words and numbers, before against after. No Qt."""

from collections.abc import Callable, Mapping

from kvdesk.cache.compare import Comparison, LogitsComparison, SequenceChange, Verdict
from kvdesk.protocol.cache import OperationDone
from kvdesk.quantities import seconds_text
from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.cells.readout import visible
from kvdesk.viewmodel.graphs.cell_metrics import GAPS, HIGH_WATER, READ, SHARED, USED

Titles = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number on both sides, with its definition."""

    name: str
    before: str
    after: str
    tip: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def figures(comparison: Comparison) -> tuple[Figure, ...]:
    """The headline metrics: used and high water over all streams of the first cache, n_kv, holes."""
    first = comparison.streams[0].cache if comparison.streams else ""
    streams = [stream for stream in comparison.streams if stream.cache == first]
    sides = []
    for metrics in ([s.before for s in streams], [s.after for s in streams]):
        used, high = sum(m.used for m in metrics), sum(m.high_water for m in metrics)
        holes = f"{(high - used) / high:.1%}" if high else "0.0%"
        highest = max((m.high_water for m in metrics), default=0)
        sides.append((f"{used:,}", f"{highest:,}", holes, f"{sum(m.n_shared for m in metrics):,}"))
    (used_b, high_b, holes_b, shared_b), (used_a, high_a, holes_a, shared_a) = sides
    return (
        Figure(USED, used_b, used_a, tr("Cells that belong to at least one sequence")),
        Figure(HIGH_WATER, high_b, high_a, tr("H, the high-water mark: index of the last non-empty cell + 1")),
        Figure(
            READ,
            f"{comparison.n_kv_before:,}",
            f"{comparison.n_kv_after:,}",
            tr("n_kv: the cells that attention reads for the next token"),
        ),
        Figure(GAPS, holes_b, holes_a, tr("Share of free cells below H, which attention still reads")),
        Figure(SHARED, shared_b, shared_a, tr("Cells that belong to more than one sequence")),
    )


def _cells(change: SequenceChange) -> str:
    """The changes of the cells of one sequence."""
    counts = (
        (change.freed, tr("{n} freed")),
        (change.placed, tr("{n} placed")),
        (change.moved, tr("{n} moved")),
        (change.shifted, tr("{n} shifted to other positions")),
        (change.shared, tr("{n} shared now")),
        (change.unshared, tr("{n} no longer shared")),
        (change.stayed, tr("{n} stayed")),
    )
    return tr(", ").join(words.format(n=f"{n:,}") for n, words in counts if n)


@dataclass(frozen=True, slots=True)
class EffectRow:
    """What became of one conversation, or branch. token: the likeliest next one; kl: nats; tip: the same as a sentence.
    All but the title may be empty.
    """

    title: str
    cells: str
    token: str = ""
    kl: str = ""
    tip: str = ""


def effect_rows(done: OperationDone, titles: Titles, texts: Mapping[int, str]) -> tuple[EffectRow, ...]:
    """A row for each sequence whose cells or next token are known to have changed, or to be the same."""
    if done.effect is None:
        return ()
    comparison = done.effect.comparison
    changes: dict[int, list[str]] = {}
    for change in comparison.sequences:
        told = changes.setdefault(int(change.seq_id), [])
        if (said := _cells(change)) not in told:
            told.append(said)
    rows = []
    for seq_id in sorted({*changes, *comparison.logits}):
        logits, title = comparison.logits.get(seq_id), titles(seq_id)
        cells = tr("; ").join(changes.get(seq_id, ())) or tr("unchanged")
        if logits is None:
            rows.append(EffectRow(title, cells))
            continue
        tip = logits_sentence(logits, title, texts)
        rows.append(EffectRow(title, cells, _next_token(logits, texts), f"{logits.kl_max:.2g}", tip))
    return tuple(rows)


def _next_token(logits: LogitsComparison, texts: Mapping[int, str]) -> str:
    if logits.verdict.same or logits.first_row < 0:
        return _verdict(logits.verdict)
    was, now = (_token(token, texts) for token in (logits.token_before, logits.token_after))
    return tr("{verdict}: {was} → {now}").format(verdict=_verdict(logits.verdict), was=was, now=now)


def _token(token: int, texts: Mapping[int, str]) -> str:
    return visible(texts[token]) if token in texts else tr("token {token}").format(token=token)


def logits_sentence(logits: LogitsComparison, title: str, texts: Mapping[int, str]) -> str:
    """The change of the probabilities of the next token."""
    if logits.verdict is Verdict.EXACT:
        return tr("“{title}”: the probabilities of the next token are exactly the same.").format(title=title)
    numbers = tr("KL {kl_max} nats, logits differ by at most {max_difference}").format(
        kl_max=f"{logits.kl_max:.2g}", max_difference=f"{logits.max_difference:.2g}"
    )
    what = tr("“{title}”: the probabilities of the next token are {verdict} ({numbers})").format(
        title=title, verdict=_verdict(logits.verdict), numbers=numbers
    )
    was, now = (
        texts.get(token, tr("token {token}").format(token=token)).strip()
        for token in (logits.token_before, logits.token_after)
    )
    if logits.verdict.same:
        return (
            f"{what}."
            if logits.first_row < 0
            else tr("{what}: “{was}” and “{now}” are equally likely.").format(what=what, was=was, now=now)
        )
    likeliest = tr("is the same") if logits.first_row < 0 else tr("was “{was}” and is “{now}”").format(was=was, now=now)
    return tr("{what}; the likeliest {likeliest}.").format(what=what, likeliest=likeliest)


def _verdict(verdict: Verdict) -> str:
    return {
        Verdict.EXACT: tr("exact"),
        Verdict.ROUNDING: tr("the same up to rounding"),
        Verdict.CHANGED: tr("changed"),
        Verdict.STRONGLY_CHANGED: tr("changed strongly"),
    }[verdict]


def remarks(done: OperationDone) -> tuple[str, ...]:
    """What is said of an operation's effect beside the figures and the rows."""
    effect = done.effect
    if effect is None:
        return ()
    found = [done.note] if done.note else []
    if not effect.comparison.sequences:
        found.append(tr("No cell changed."))
    if effect.comparison.logits and done.name == "undo":
        found.append(tr("Next tokens are compared with the state that was undone."))
    if effect.bytes_moved:
        speed = tr(" at {speed} GB/s").format(speed=f"{effect.bytes_moved / done.ms / 1e6:.1f}") if done.ms else ""
        found.append(
            tr("{size} MB of K and V moved{speed}.").format(size=f"{effect.bytes_moved / 1e6:,.1f}", speed=speed)
        )
    if effect.audited:
        found.append(tr("Compared with the engine's own state afterwards: the map agrees."))
    return tuple(found)


def took(ms: float) -> str:
    """A time as text, "" for 0: it is unknown."""
    if not ms:
        return ""
    return f"{ms:,.1f} ms" if ms < 100 else seconds_text(ms / 1e3)
