"""How batches should be cut and mixed: several chats at once, prompts in an order, and a prompt among answers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from typing import NamedTuple

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.errors import ContextError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext, taken
from kvdesk.experiments.statistics import figure, jain, median, percentiles, ratios
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Result,
    Sample,
    Table,
    Values,
    Verdict,
    number_text,
    series_title,
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

UNIFIED, STREAMS = marked("unified"), marked("streams")
TOGETHER, IN_TURN = marked("together"), marked("in turn")
COUNTS = (1, 2, 4, 8)
WRITERS = 4
"""Answers that are being written when a prompt comes."""
REFUSED = marked("refused")
MUCH = 1.15
"""Ratio of times from which one way counts as better than another."""
SLIGHTLY_MORE, MORE = 1.03, 1.3
"""Ratios of tokens a second from which several chats in one batch count as writing slightly more, and more. On one
thread 1.1 to 1.16 were measured with the embedded model, far from both, so the verdict is stable.
"""

CAME, SHORTEST = marked("as they came"), marked("shortest first")
LONGEST, EACH = marked("longest first"), marked("a piece of each")
ORDERS = (CAME, SHORTEST, LONGEST, EACH)
SHARES = (1.0, 0.125, 0.5, 0.25, 1.0, 0.125, 0.5, 0.25)
"""Lengths of the eight prompts in the order they come, as shares of the longest."""

AT_ONCE, ALONE = marked("the whole prompt"), marked("pieces alone")
MIXED, SMALL = marked("pieces among them"), marked("small pieces among them")
PROMPT, GAP = marked("prompt"), marked("gap")
WAYS = (AT_ONCE, ALONE, MIXED, SMALL)
PIECES = {ALONE: 4, MIXED: 4, SMALL: 16}
"""Into how many pieces the prompt is cut."""

ENOUGH = 100
"""Fewest values for P95 and P99; with fewer, P99 lies between the two longest."""
NOT_TOLD = "–"

PARAMETERS = (
    Parameter("text", marked("Text"), 128, 16, 2048, 64, marked("Tokens of the longest chat that goes on")),
    Parameter("tokens", marked("Tokens"), 16, 2, 128, 8, marked("Written for each chat in each round")),
    Parameter("longest", marked("Longest prompt"), 128, 16, 1024, 64, marked("Of eight that come at once")),
    Parameter("cut", marked("Batch"), 128, 16, 512, 64, marked("Tokens into which these prompts are cut")),
    Parameter("prompt", marked("Prompt"), 512, 32, 2048, 256, marked("Tokens read while four answers go on")),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 3, marked("How often everything is repeated")),
)  # fmt: skip


def _settings(values: Values) -> ContextSettings:
    """Room also in a memory from which nothing can be removed until it is cleared."""
    written = values["text"] + max(2 * len(COUNTS) * values["tokens"], len(WAYS) * (max(PIECES.values()) + 1))
    cells = pad(int(max(written, values["longest"], values["prompt"])), CTX_PAD)
    n_seq = max(COUNTS) + 1
    return ContextSettings(n_ctx=n_seq * cells, n_seq_max=n_seq, n_batch=2048, n_ubatch=512)


class Chat(NamedTuple):
    """A sequence and the position of its next token."""

    seq_id: int
    pos: int


def _decoded(context: RawContext, tokens: Sequence[int], entries: Sequence[Chat], n_logits: int = 1) -> float:
    """Seconds of one batch. Raises ContextError."""
    answer = context.decode(tokens, [e.pos for e in entries], [e.seq_id for e in entries], n_logits)
    return taken(answer, len(tokens)).seconds


class _Chats:
    """Eight chats of different lengths in a context: they go on, and are set back where the memory can."""

    def __init__(self, context: RawContext, text: Sequence[int]) -> None:
        self._context, self._text = context, text
        self._lengths = [max(1, int(share * len(text))) for share in SHARES]
        self.refill()

    def refill(self) -> None:
        """The chats as they began, in an empty cache."""
        self._context.clear()
        for seq_id, n in enumerate(self._lengths):
            self._context.read(self._text[:n], 0, seq_id)
        self._next = list(self._lengths)

    def step(self, seq_ids: Sequence[int]) -> float:
        """One token for each of these, in one batch; seconds."""
        return self.step_beside(seq_ids, ())

    def step_beside(self, seq_ids: Sequence[int], prompt: Sequence[Chat]) -> float:
        """The same with tokens of a prompt in front of them."""
        entries = [*prompt, *(Chat(seq_id, self._next[seq_id]) for seq_id in seq_ids)]
        tokens = [self._text[i % len(self._text)] for i in range(len(entries))]
        seconds = _decoded(self._context, tokens, entries, max(1, len(seq_ids)))
        for seq_id in seq_ids:
            self._next[seq_id] += 1
        return seconds

    def set_back(self) -> None:
        for seq_id, n in enumerate(self._lengths):
            if self._next[seq_id] > n and self._context.seq_rm(seq_id, n, -1):
                self._next[seq_id] = n


def _measure(bench: Bench) -> Measuring:
    text = bench.tokens(max(bench.whole("text"), bench.whole("longest")))
    with ExitStack() as stack:
        contexts = {UNIFIED: stack.enter_context(bench.context())}
        try:
            contexts[STREAMS] = stack.enter_context(bench.context(kv_unified=False))
        except ContextError as error:
            yield Sample(REFUSED, 0, 1, note=str(error))
        for number in bench.rounds(bench.whole("rounds")):
            yield bench.progress(number, 0, 3, tr("answers at once, round {n}").format(n=number + 1))
            yield from _answers(bench, contexts, text[: bench.whole("text")], number)
            yield bench.progress(number, 1, 3, tr("prompts in an order, round {n}").format(n=number + 1))
            for kind, context in contexts.items():
                for order in ORDERS if number % 2 == 0 else reversed(ORDERS):
                    yield from _prompts(bench, context, kind, order, text, number)
            yield bench.progress(number, 2, 3, tr("a prompt among answers, round {n}").format(n=number + 1))
            for kind, context in contexts.items():
                chats = _Chats(context, text[: bench.whole("text")])
                for way in WAYS if number % 2 == 0 else reversed(WAYS):
                    yield from _prompt_among(bench, context, chats, kind, way, number)


def _answers(bench: Bench, contexts: Mapping[str, RawContext], text: Sequence[int], number: int) -> Iterator[Sample]:
    """A token for each of some chats, again and again: in one batch, in the one cache and in streams, and in turn."""
    chats = {kind: _Chats(context, text) for kind, context in contexts.items()}
    for n in COUNTS:
        seq_ids = range(n)
        for _ in range(bench.whole("tokens")):
            for kind, held in chats.items():
                yield Sample(f"{kind}, {TOGETHER}", n, held.step(seq_ids), number, unit="s")
            alone = sum(chats[UNIFIED].step((seq_id,)) for seq_id in seq_ids)
            yield Sample(f"{UNIFIED}, {IN_TURN}", n, alone, number, unit="s")
        for held in chats.values():
            held.set_back()


def _prompts(
    bench: Bench, context: RawContext, kind: str, order: str, text: Sequence[int], number: int
) -> Iterator[Sample]:
    """Eight prompts that came at once, read in batches: how long each waits until it is read."""
    lengths = prompt_lengths(bench.whole("longest"))
    batches = cut_prompts(lengths, order, bench.whole("cut"))
    context.clear()
    reached, waited = [0] * len(lengths), 0.0
    for batch in batches:
        entries = []
        for seq_id, n in batch:
            entries += [Chat(seq_id, reached[seq_id] + i) for i in range(n)]
            reached[seq_id] += n
        tokens = [text[e.pos] for e in entries]
        waited += _decoded(context, tokens, entries)
        for seq_id, _ in batch:
            if reached[seq_id] == lengths[seq_id]:
                yield Sample(f"{kind}, {order}", seq_id, waited, number, unit="s")


def prompt_lengths(longest: int) -> list[int]:
    """Tokens of the prompts in the order they come."""
    return [max(1, int(share * longest)) for share in SHARES]


def cut_prompts(lengths: Sequence[int], order: str, size: int) -> list[list[tuple[int, int]]]:
    """Batches of at most `size` tokens: which prompts are in each, and how many tokens of each."""
    left = list(lengths)
    sequence = list(range(len(lengths)))
    if order in (SHORTEST, LONGEST):
        sequence.sort(key=lambda i: lengths[i], reverse=order == LONGEST)
    batches = []
    while any(left):
        waiting = [i for i in sequence if left[i]]
        share = max(1, size // len(waiting)) if order == EACH else size
        room, batch = size, []
        for i in waiting:
            if n := min(left[i], share, room):
                batch.append((i, n))
                left[i] -= n
                room -= n
        batches.append(batch)
    return batches


def _prompt_among(
    bench: Bench, context: RawContext, chats: _Chats, kind: str, way: str, number: int
) -> Iterator[Sample]:
    """A prompt is read while four answers go on: the time until it is read, and gaps between their tokens."""
    seq_id, n, writers = max(COUNTS), bench.whole("prompt"), range(WRITERS)
    pieces = PIECES.get(way, 1)
    ends = [n * (i + 1) // pieces for i in range(pieces)]
    chats.step(writers)
    at, gaps = 0, list[float]()
    for end in ends:
        prompt = [Chat(seq_id, pos) for pos in range(at, end)]
        gap = chats.step_beside(writers if way in (MIXED, SMALL) else (), prompt)
        if way in (AT_ONCE, ALONE):
            gap += chats.step(writers)
        gaps.append(gap)
        at = end
    yield Sample(f"{kind}, {way}: {PROMPT}", pieces, sum(gaps), number, unit="s")
    for gap in gaps:
        yield Sample(f"{kind}, {way}: {GAP}", pieces, gap, number, unit="s")
    context.seq_rm(seq_id)
    chats.set_back()


# --- what follows from it ---------------------------------------------------------------------------------------------


class _Waits(NamedTuple):
    """How the prompts of one order waited: of each round the mean and the last in seconds, and Jain's index of tokens a
    second.
    """

    mean: list[float]
    last: list[float]
    fairness: list[float]


def _waits(samples: Measured, kind: str, order: str, lengths: Sequence[int]) -> _Waits:
    by_prompt = [samples.all(f"{kind}, {order}", seq_id) for seq_id in range(len(lengths))]
    rounds = list(zip(*by_prompt, strict=True))
    return _Waits(
        [sum(waits) / len(waits) for waits in rounds],
        [max(waits) for waits in rounds],
        [jain([n / wait for n, wait in zip(lengths, waits, strict=True)]) for waits in rounds],
    )


def _answer(values: Values, held: Measured) -> Result:
    kinds = [kind for kind in (UNIFIED, STREAMS) if f"{kind}, {TOGETHER}" in held.series]
    most = max(COUNTS)
    gains = {
        n: held.ratio(
            tr("{n} together over in turn").format(n=n), (f"{UNIFIED}, {IN_TURN}", n), (f"{UNIFIED}, {TOGETHER}", n)
        )
        for n in COUNTS
    }
    gains[most] = gains[most].at_least(SLIGHTLY_MORE, MORE)
    streams = None
    if STREAMS in kinds:
        over = (f"{UNIFIED}, {TOGETHER}", most), (f"{STREAMS}, {TOGETHER}", most)
        streams = held.ratio(tr("{n} in streams over in one cache").format(n=most), *over)
        streams = streams.at_least(1 / MUCH).at_most(MUCH)
    lengths = prompt_lengths(int(values["longest"]))
    waits = {(kind, order): _waits(held, kind, order, lengths) for kind in kinds for order in ORDERS}
    came, shortest = waits[UNIFIED, CAME], waits[UNIFIED, SHORTEST]
    sooner = figure(tr("mean wait, shortest first over as they came"), ratios(shortest.mean, came.mean))
    gaps = {way: [max(ys) for ys in held.rounds(f"{UNIFIED}, {way}: {GAP}", PIECES.get(way, 1))] for way in WAYS}
    gap = figure(tr("longest gap, small pieces over the whole prompt"), ratios(gaps[SMALL], gaps[AT_ONCE]))
    sooner, gap = sooner.at_most(1 / MUCH), gap.at_most(1 / MUCH)
    read = held.ratio(
        tr("prompt read, small pieces over the whole prompt"),
        (f"{UNIFIED}, {SMALL}: {PROMPT}", PIECES[SMALL]),
        (f"{UNIFIED}, {AT_ONCE}: {PROMPT}", 1),
    )
    return Result(
        Verdict(
            "; ".join(
                (
                    f"{most} at once write {_more(gains[most])} tokens a second",
                    _streams_key(streams),
                    f"the shortest first {'waits less' if sooner.holds else 'waits as long'}",
                    f"pieces {'shorten' if gap.holds else 'do not shorten'} the longest gap",
                )
            ),
            " ".join(
                (
                    _said(streams).format(n=most, gain=gains[most], streams=streams),
                    tr(
                        "Of eight prompts that come at once each waits {sooner} times as long when the shortest is "
                        "read first as in the order they came."
                    ).format(sooner=sooner),
                    tr(
                        "A prompt of {n:,.0f} tokens in {pieces} pieces among {writers} answers makes their longest "
                        "gap {gap} times that of the prompt at once, and is itself read in {read} times the time."
                    ).format(n=values["prompt"], pieces=PIECES[SMALL], writers=WRITERS, gap=gap, read=read),
                )
            ),
            tr(
                "{n} answers together write {gain:.2g} times the tokens a second; a prompt in {pieces} pieces makes"
                " their longest gap {gap:.2g} times as long."
            ).format(n=most, gain=gains[most].value, pieces=PIECES[SMALL], gap=gap.value),
        ),
        figures=tuple(f for f in (*gains.values(), streams, sooner, gap, read) if f is not None),
        plots=(_plot(held),),
        tables=(_at_once_table(held, kinds, gains), _order_table(waits), _among_table(held, kinds)),
        remarks=tuple(_remarks(held.samples)),
    )


def _said(streams: Figure | None) -> str:
    if streams is None:
        return tr("{n} chats in one batch write {gain} times as many tokens a second as in turn.")
    return tr(
        "{n} chats in one batch write {gain} times as many tokens a second as in turn, and in separate streams "
        "{streams} times as many as in one cache."
    )


def _more(gain: Figure) -> str:
    return ("no more", "slightly more", "more")[sum(bar.holds(gain.value) for bar in gain.bars)]


def _streams_key(streams: Figure | None) -> str:
    if streams is None:
        return "no streams"
    if streams.value >= MUCH:
        return "streams are faster"
    return "streams are slower" if streams.value <= 1 / MUCH else "streams are as fast"


def _plot(held: Measured) -> Plot:
    def rate(name: str, n: int) -> Figure:
        return figure("", [n * len(steps) / sum(steps) for steps in held.rounds(name, n)])

    names = sorted(name for name in held.series if name.endswith((TOGETHER, IN_TURN)))
    series = tuple(curve(series_title(name), [(n, rate(name, n)) for n in COUNTS]) for name in names)
    return Plot(tr("Tokens a second of all chats"), tr("chats at once"), "tok/s", series)


def _at_once_table(held: Measured, kinds: Sequence[str], gains: Mapping[int, Figure]) -> Table:
    rows = []
    for n in COUNTS:
        names = (*(f"{kind}, {TOGETHER}" for kind in kinds), f"{UNIFIED}, {IN_TURN}")
        speeds = [number_text(n / held.median(name, n), 4) for name in names]
        rows.append((str(n), *speeds, str(gains[n]), *_gaps(held.rounds(f"{UNIFIED}, {TOGETHER}", n))))
    columns = (
        tr("chats"),
        *(f"tok/s {tr(kind)}" for kind in kinds),
        f"tok/s {tr(IN_TURN)}",
        tr("together over in turn"),
    )
    return _table_with_gaps(tr("Answers at once"), columns, rows)


def _order_table(waits: Mapping[tuple[str, str], _Waits]) -> Table:
    rows = (
        {
            tr("cache"): tr(kind),
            tr("order"): tr(order),
            tr("mean wait ms"): number_text(1000 * median(waited.mean), 4),
            tr("all read ms"): number_text(1000 * median(waited.last), 4),
            tr("Jain's index"): str(figure("", waited.fairness)),
        }
        for (kind, order), waited in waits.items()
    )
    return Table.of(tr("Eight prompts at once"), rows)


def _among_table(held: Measured, kinds: Sequence[str]) -> Table:
    rows = []
    for kind, way in product(kinds, WAYS):
        name, pieces = f"{kind}, {way}", PIECES.get(way, 1)
        read = held.median(f"{name}: {PROMPT}", pieces)
        speed = number_text(WRITERS * pieces / read, 4)
        gaps = _gaps(held.rounds(f"{name}: {GAP}", pieces))
        rows.append((tr(kind), tr(way), str(pieces), number_text(1000 * read, 4), speed, *gaps))
    columns = (tr("cache"), tr("way"), tr("pieces"), tr("prompt read ms"), tr("tok/s of the answers"))
    return _table_with_gaps(tr("A prompt among {n} answers").format(n=WRITERS), columns, rows)


def _gaps(rounds: Sequence[Sequence[float]]) -> tuple[str, str]:
    """In ms: the longest gap of the median round; P50, P95 and P99 of all gaps, if there are `ENOUGH`."""
    longest, gaps = median([max(seconds) for seconds in rounds]), [gap for seconds in rounds for gap in seconds]
    told = " / ".join(number_text(1000 * value, 4) for value in percentiles(gaps)) if len(gaps) >= ENOUGH else ""
    return number_text(1000 * longest, 4), told or NOT_TOLD


def _table_with_gaps(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """`rows` end with the two of `_gaps`. Percentiles have a column where any row has them."""
    columns = (*columns, tr("longest gap ms"), tr("gaps P50/95/99 ms"))
    n = len(columns) if any(row[-1] != NOT_TOLD for row in rows) else len(columns) - 1
    return Table(title, columns[:n], tuple(row[:n] for row in rows))


def _remarks(samples: Sequence[Sample]) -> Iterator[str]:
    n = max(COUNTS)
    alone = jain([1 / (k + 1) for k in range(n)])
    yield tr(
        "In one batch every answer gets the same: Jain's index is 1. {n} equal answers one after "
        "another, each to its end, would have {alone:.2f}, counted as tokens over the time until its "
        "end."
    ).format(n=n, alone=alone)
    why = tr("Streams are not measured: {why}")
    yield from (why.format(why=sample.note) for sample in samples if sample.series == REFUSED)


EXPERIMENT = Experiment(
    id="batching",
    title=marked("Batches"),
    question=marked("How should batches be cut and mixed, and does it pay to sort by length?"),
    supposed=marked("Batches should be sorted by length, prompts kept apart from answers."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(
        values["rounds"]
        * (
            4 * values["text"] * sum(SHARES)
            + 2 * len(ORDERS) * values["longest"] * sum(SHARES)
            + 2 * len(WAYS) * values["prompt"]
            + sum(COUNTS) * values["tokens"]
        ),
        values["rounds"] * (sum(COUNTS) * values["tokens"] + 2 * WRITERS * len(WAYS)),
    ),
    measure=_measure,
    answer=_answer,
)
