"""What moving cells costs: compaction, swapping and restoring, beside their parts and a copy of as many bytes."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import product, starmap
from typing import Final

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.params import planned
from kvdesk.cache.compaction import Layout
from kvdesk.experiments.bench import Bench, uncollected
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.moved_states import LONG, N_SEQ, SHORT, Own, Parts, Texts, others_work, read_texts
from kvdesk.experiments.statistics import figure, median, ratios
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Progress,
    Result,
    Sample,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

NEAR: Final = 0.7
"""Time of the parts over that of kvdesk's whole operation from which it is said to be near the limit. The sentence and
the table say which operations are."""
WITHIN: Final = 3
"""Times its parts that kvdesk's slowest operation may take; the verdict's key says whether it does. It says no more,
since runs of the same program lay at 1.4 to 2.3: a limit among these would give another key each time."""
MUCH: Final = 1.15
"""Ratio of times from which one way is said to be slower than another."""
REPEATED: Final = 3
"""Repetitions in a round; the least time counts, because other programs only make a copy slower."""
BYTES, HIGH_WATER, WRONG = "bytes of the state", "cells up to the last in use", "the map is wrong"
COPY, COPY_AGAIN, COPY_NEW = marked("memcpy"), marked("memcpy again at once"), marked("memcpy into new memory")
GET, GET_NEW, GET_TIDY = marked("get"), marked("get into new memory"), marked("get, cells side by side")
SET, PERMUTE = marked("set"), marked("permute")
OUT, IN = marked("get of the long conversation"), marked("set of the long conversation")
SHORT_OUT, SHORT_IN = marked("get of the short conversation"), marked("set of the short conversation")
KEPT, HOT = marked("compaction, order kept"), marked("compaction, the short conversation first")
SWAP_OUT, SWAP_IN = marked("swap out"), marked("swap in")
PARTIAL = marked("the short conversation alone")
WHOLE: Final[dict[str, tuple[str, ...]]] = {
    KEPT: (GET, SET),
    HOT: (GET, PERMUTE, SET),
    SWAP_OUT: (OUT,),
    SWAP_IN: (IN,),
    PARTIAL: (SHORT_OUT, SHORT_IN),
}
"""What is done, and the calls without which it cannot be done."""
OWN: Final = (KEPT, HOT, SWAP_OUT, SWAP_IN)
"""What kvdesk does automatically, which is judged. Moving one conversation within the cache is only tried here."""
STAGES = (marked("scattered"), marked("the short one moved"), marked("compacted"))


@dataclass(frozen=True, slots=True)
class Kind:
    """Of attention: without flash attention V is stored transposed."""

    name: str
    flash_attn: bool


KINDS = (Kind(marked("flash attention"), True), Kind(marked("no flash attention"), False))

PARAMETERS = (
    Parameter("cells", marked("Cells in use"), 2048, 256, 32768, 2048,
              marked("Of two conversations, in a context of twice as many")),
    Parameter("run", marked("Cells in a run"), 16, 1, 256, 16,
              marked("Side by side, with as many free ones behind them")),
    Parameter("rounds", marked("Rounds"), 15, 2, 100, 5, marked("How often everything is repeated")),
)  # fmt: skip


def threads_tried() -> int:
    """Of the copy in parts: one for each processor."""
    return max(2, os.cpu_count() or 1)


def _sizes(values: Values) -> list[int]:
    """Cells in use: a half, all; each a whole number of pairs of runs, of which one is the least."""
    step = 8 * int(values["run"])
    return sorted({max(step, int(values["cells"]) // part // step * step) for part in (2, 1)})


def _settings(n_cells: int) -> dict[str, object]:
    return {"n_ctx": 2 * n_cells, "n_seq_max": N_SEQ, "n_batch": min(512, 2 * n_cells), "n_ubatch": 512}


def _measure(bench: Bench) -> Measuring:
    sizes, n_rounds = _sizes(bench.values), bench.whole("rounds")
    steps = [(kind, size) for kind in KINDS for size in sizes]
    for at, (kind, size) in enumerate(steps):
        yield Progress(
            at * n_rounds, len(steps) * n_rounds, tr("{size:,} cells, {name}").format(size=size, name=tr(kind.name))
        )
        settings = bench.settings.model_copy(update={**_settings(size), "flash_attn": kind.flash_attn})
        with bench.context_of(settings) as raw:
            texts = read_texts(raw, bench.tokens(size), bench.whole("run"))
            parts = Parts(raw, texts, planned(bench.model, settings))
            with closing(Context(bench.model, settings)) as context:
                yield from _rounds(bench, kind, parts, Own(context, texts), texts)


def _rounds(bench: Bench, kind: Kind, parts: Parts, own: Own, texts: Texts) -> Iterator[Sample]:
    n_cells = texts.n_cells
    yield Sample(f"{kind.name}: {BYTES}", n_cells, parts.n_bytes, unit="B")
    for at, n in enumerate(_stages(own)):
        yield Sample(f"{kind.name}: {HIGH_WATER}", n_cells, n, at, unit="cells")
    _round(parts, own, first=True)  # touches all memory that is kept
    for number in bench.rounds(bench.whole("rounds")):
        with uncollected():
            each = [_round(parts, own, first=(number + i) % 2 == 0) for i in range(REPEATED)]
        for what, seconds in {key: min(found[key] for found in each) for key in each[0]}.items():
            yield Sample(f"{kind.name}: {what}", n_cells, seconds, number, unit="s")
    yield Sample(f"{kind.name}: {WRONG}", n_cells, float(bool(own.wrong)), note=own.wrong)


def _stages(own: Own) -> list[int]:
    """Cells up to the last in use: scattered, after the short conversation was moved, after a compaction."""
    found = [own.high_water]
    own.move_short()
    found.append(own.high_water)
    own.compact(Layout.KEEP_ORDER)
    return [*found, own.high_water]


def _round(parts: Parts, own: Own, *, first: bool) -> dict[str, float]:
    """Seconds of everything once. first: the parts are done before the whole. Each time others have worked before."""
    found: dict[str, float] = {}

    def whole(what: str, operation: Callable[[], float]) -> None:
        others_work()
        found[what] = operation()

    def calls(what: str, *each: tuple[str, Callable[[], float]]) -> None:
        others_work()
        found.update({f"{what}: {part}": call() for part, call in each})

    def both(what: str, operation: Callable[[], float], *each: tuple[str, Callable[[], float]]) -> None:
        if first:
            calls(what, *each)
        whole(what, operation)
        if not first:
            calls(what, *each)

    def scatter() -> None:
        parts.scatter()
        own.scatter()

    scatter()
    both(KEPT, lambda: own.compact(Layout.KEEP_ORDER), (GET, parts.get), (SET, parts.set))
    whole(GET_TIDY, parts.get)
    scatter()
    order = own.order(Layout.HOT_FIRST)
    permute = PERMUTE, lambda: parts.permute(order)
    both(HOT, lambda: own.compact(Layout.HOT_FIRST), (GET, parts.get), permute, (SET, parts.set))
    scatter()
    whole(GET_NEW, parts.get_to_new_memory)
    whole(GET, parts.get)
    whole(COPY_NEW, parts.memcpy_to_new_memory)
    whole(COPY, parts.memcpy)
    found[COPY_AGAIN] = parts.memcpy()
    whole(_copy_by(threads_tried()), lambda: parts.memcpy(threads_tried()))
    short = (SHORT_OUT, lambda: parts.seq_get(SHORT)), (SHORT_IN, lambda: parts.seq_set(SHORT))
    both(PARTIAL, own.move_short, *short)
    both(SWAP_OUT, own.swap_out, (OUT, lambda: parts.seq_get(LONG)))
    both(SWAP_IN, own.swap_in, (IN, lambda: parts.seq_set(LONG)))
    return found


def _copy_by(n_threads: int) -> str:
    return f"memcpy, {n_threads} threads"


# --- conclusion -------------------------------------------------------------------------------------------------------


class _Times:
    """Seconds of each round, by kind, cells and what was done."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self.copy_threads = next(
            (name.partition(": ")[2] for name in sorted(measured.series) if name.endswith("threads")), _copy_by(2)
        )

    def of(self, kind: Kind, n_cells: int, what: str) -> list[float]:
        return self._measured.all(f"{kind.name}: {what}", n_cells)

    def parts(self, kind: Kind, n_cells: int, whole: str) -> list[float]:
        """Of the parts of one of `WHOLE` together."""
        each = [self.of(kind, n_cells, f"{whole}: {part}") for part in WHOLE[whole]]
        return [sum(of_round) for of_round in zip(*each, strict=True)]


def _answer(values: Values, measured: Measured) -> Result:
    times, sizes = _Times(measured), _sizes(values)
    most = sizes[-1]
    near = {
        (kind, whole): figure(
            tr("{whole}, {kind}: its parts over kvdesk").format(whole=tr(whole), kind=tr(kind.name)),
            ratios(times.parts(kind, most, whole), times.of(kind, most, whole)),
        )
        for kind in KINDS
        for whole in WHOLE
    }
    near |= {key: ratio.at_least(NEAR) for key, ratio in near.items() if key[1] in OWN}
    worst = min((key for key in near if key[1] in OWN), key=lambda key: near[key].value)
    near[worst] = slowest = near[worst].at_least(1 / WITHIN)
    own = {key: ratio for key, ratio in near.items() if key[1] in OWN}
    wrong = any(times.of(kind, size, WRONG)[-1] for kind in KINDS for size in sizes)
    flash = KINDS[0]
    copy = times.of(flash, most, COPY)

    def over(what: str, base: str = COPY, kind: Kind = flash) -> Figure:
        name = tr("{what} over {base}, {kind}").format(what=tr(what), base=tr(base), kind=tr(kind.name))
        return figure(name, ratios(times.of(kind, most, what), times.of(kind, most, base)))

    new, threads, get = over(COPY_NEW).at_least(MUCH), over(times.copy_threads), over(GET)
    scattered, slow_get = over(GET, GET_TIDY), over(GET, COPY, KINDS[1]).at_least(get.value * MUCH)
    alone = over(PARTIAL, KEPT).at_most(1 / MUCH)
    state = times.of(flash, most, BYTES)[0]
    keys = (
        f"kvdesk moves {'within' if slowest.value * WITHIN >= 1 else 'in more than'} {WITHIN} times its parts",
        f"new memory is {'slower' if new.holds else 'as fast'}",
        f"transposed V is {'slower' if slow_get.holds else 'as fast'}",
        f"one conversation alone is {'cheaper' if alone.holds else 'no cheaper'}",
    )
    water = {stage: times.of(flash, most, HIGH_WATER)[at] for at, stage in enumerate(STAGES)}
    said = "; ".join(
        tr("{whole} {flash} ({plain} without flash attention)").format(
            whole=tr(whole), flash=near[KINDS[0], whole], plain=near[KINDS[1], whole]
        )
        for whole in WHOLE
    )
    sentence = " ".join(
        (
            tr("The least time to move cells, over what kvdesk takes for the whole operation: {said}.").format(
                said=said
            ),
            _against_the_limit(own, slowest),
            tr(
                "A memcpy of the {mb:,.1f} MB runs at {rate:.1f} GB/s; into memory that is new it takes {new} times as"
                " long, in {n} parts at the same time {threads} times. llama.cpp's get takes {get} times as long as the"
                " memcpy with flash attention and {slow} times without, where V is transposed; cells apart instead of"
                " side by side make it {scattered} times as long."
            ).format(
                mb=state / 1e6,
                rate=state / median(copy) / 1e9,
                new=new,
                n=times.copy_threads.split()[1],
                threads=threads,
                get=get,
                slow=slow_get,
                scattered=scattered,
            ),
            tr(
                "Moving one conversation of an eighth of the cells takes {alone} of the time of a compaction, and the"
                " last used cell falls from {before:,.0f} to {after:,.0f} instead of {all:,.0f}."
            ).format(alone=alone, before=water[STAGES[0]], after=water[STAGES[1]], all=water[STAGES[2]]),
        )
    )
    return Result(
        Verdict(
            f"{'the map is wrong; ' * wrong}{'; '.join(keys)}",
            sentence,
            tr("Moving cells takes kvdesk at most {times} times the least time that it can take.").format(
                times=number_text(1 / max(slowest.value, 1e-9), 2)
            ),
        ),
        figures=(*near.values(), new, threads, get, slow_get, scattered, alone),
        plots=(_plot(times, sizes),),
        tables=(_limits(times, most, near), _rates(times, most)),
        remarks=(
            tr(
                "The parts are llama.cpp's own calls between memory that was used before, and numpy's take. Before each"
                " of them, and before kvdesk's whole, the processor's caches were filled with other things."
            ),
            tr("kvdesk's time has its map, its comparisons and its audit in it. A copy for undo is made only by hand."),
            tr("Setting a whole state zeroes the whole buffer first, used or not (llama_kv_cache::clear)."),
        ),
    )


def _against_the_limit(own: dict[tuple[Kind, str], Figure], slowest: Figure) -> str:
    """How kvdesk's own operations compare to `WITHIN` and `NEAR`."""
    below = "; ".join(
        tr("{whole}, {kind}").format(whole=tr(whole), kind=tr(kind.name))
        for (kind, whole), ratio in own.items()
        if ratio.value < NEAR
    )
    most = number_text(1 / slowest.value, 2)
    if not below:
        said = tr("kvdesk takes at most {most} times the least; {near:g} counts as near it. Nothing is below that.")
        return said.format(most=most, near=NEAR)
    said = tr("kvdesk takes at most {most} times the least; {near:g} counts as near it. Below that: {below}.")
    return said.format(most=most, near=NEAR, below=below)


def _limits(times: _Times, n_cells: int, near: dict[tuple[Kind, str], Figure]) -> Table:
    def row(kind: Kind, whole: str) -> dict[str, str]:
        parts = [1e3 * median(times.of(kind, n_cells, f"{whole}: {part}")) for part in WHOLE[whole]]
        ratio = near[kind, whole]
        is_near = tr("yes") if ratio.value >= NEAR else tr("no")
        return {
            tr("attention"): tr(kind.name),
            tr("operation"): tr(whole),
            tr("parts, ms"): " + ".join(f"{ms:.2f}" for ms in parts),
            tr("sum, ms"): f"{sum(parts):.2f}",
            tr("kvdesk, ms"): f"{1e3 * median(times.of(kind, n_cells, whole)):.2f}",
            tr("sum over kvdesk"): str(ratio),
            tr("{near:g} or more").format(near=NEAR): is_near if whole in OWN else "–",
        }

    return Table.of(tr("kvdesk and its parts"), starmap(row, product(KINDS, WHOLE)))


def _rates(times: _Times, n_cells: int) -> Table:
    set_alone, permute = f"{KEPT}: {SET}", f"{HOT}: {PERMUTE}"
    moved = (COPY, COPY_AGAIN, COPY_NEW, times.copy_threads, GET, GET_NEW, GET_TIDY, set_alone, permute)

    def row(kind: Kind, what: str) -> dict[str, str]:
        seconds = times.of(kind, n_cells, what)
        return {
            tr("attention"): tr(kind.name),
            tr("what"): tr(what.rpartition(": ")[2]),
            tr("ms"): f"{1e3 * median(seconds):.2f}",
            tr("GB/s"): f"{times.of(kind, n_cells, BYTES)[0] / median(seconds) / 1e9:.2f}",
            tr("time over memcpy"): str(figure(what, ratios(seconds, times.of(kind, n_cells, COPY)))),
        }

    return Table.of(tr("The same bytes, moved in other ways"), starmap(row, product(KINDS, moved)))


def _plot(times: _Times, sizes: Sequence[int]) -> Plot:
    """With flash attention."""
    kind = KINDS[0]
    lines = [(COPY, False), (KEPT, True), (KEPT, False), (SWAP_OUT, False), (SWAP_IN, False), (PARTIAL, False)]
    series = []
    for what, of_parts in lines:
        taken = times.parts if of_parts else times.of
        by_mb = [
            (times.of(kind, size, BYTES)[0] / 1e6, figure("", [1e3 * s for s in taken(kind, size, what)]))
            for size in sizes
        ]
        name = tr("{whole}: llama.cpp's calls alone").format(whole=tr(what)) if of_parts else tr(what)
        series.append(curve(name, by_mb))
    return Plot(tr("Time to move a state"), tr("MB of the state"), "ms", tuple(series))


EXPERIMENT = Experiment(
    id="move-cost",
    title=marked("Cost of moving cells"),
    question=marked("What does moving cells cost, what is the least it can cost, and how near does kvdesk come?"),
    supposed=marked("Aligned copies, several threads and whole runs of cells make defragmentation cheap."),
    parameters=PARAMETERS,
    settings=lambda values: ContextSettings(n_ctx=16 * _sizes(values)[-1], n_seq_max=N_SEQ, n_batch=512, n_ubatch=512),
    work=lambda values: Work(2 * sum(_sizes(values)), 0),
    measure=_measure,
    answer=_answer,
    applies=needs_plain_attention(
        marked("This model's cache is not one of plain attention: what is moved of it depends on its windows.")
    ),
)
