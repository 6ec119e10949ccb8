"""What rebuilding the context costs and cures: a scattered cache before and after, beside a compaction of the same."""

import time

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_attention
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import median
from kvdesk.protocol.experiment import Parameter, Plot, Result, Sample, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr

TOKEN, COST = marked("one token"), marked("cost")
BEFORE, COMPACTED = marked("scattered"), marked("compacted")
RESTORED, READ = marked("rebuilt, state kept"), marked("rebuilt, text read again")
WAYS = (COMPACTED, RESTORED, READ)
SAME = 0.1
"""Share by which a token's time may differ between two cures that are said to be the same."""

PARAMETERS = (
    Parameter("text", marked("Text"), 512, 64, 4096, 256, marked("Tokens of the conversation")),
    Parameter("others", marked("Cells of others"), 3584, 256, 32768, 1792,
              marked("Removed again: holes below and above the text")),
    Parameter("tokens", marked("Tokens"), 16, 4, 256, 8, marked("Timed in each state and round")),
    Parameter("rounds", marked("Rounds"), 7, 2, 50, 6, marked("How often everything is repeated")),
)  # fmt: skip


def _settings(values: Values) -> ContextSettings:
    cells = pad(int(values["text"] + values["others"] + values["tokens"]), CTX_PAD)
    return ContextSettings(n_ctx=cells, n_seq_max=2, n_batch=512, n_ubatch=512, flash_attn=False)


def _measure(bench: Bench) -> Measuring:
    text, other = bench.tokens(bench.whole("text")), bench.tokens(bench.whole("others"))
    with bench.context() as context:
        context.read(other, 0, 1)
        others = context.saved(1)
    for number in bench.rounds(bench.whole("rounds")):
        for at, way in enumerate(WAYS):
            yield bench.progress(number, at, len(WAYS), tr("{what}, round {n}").format(what=tr(way), n=number + 1))
            held = list(text)
            with bench.context() as context:
                context.restore(1, others, other)
                context.read(text, 0, 0)
                context.seq_rm(1)
                yield Sample(f"{TOKEN}: {BEFORE}", at, _token(context, bench, held), number, unit="s")
                if way == COMPACTED:
                    yield Sample(f"{COST}: {way}", at, context.compact()[0], number, unit="s")
                    yield Sample(f"{TOKEN}: {way}", at, _token(context, bench, held), number, unit="s")
                    continue
                start = time.perf_counter()
                state = context.saved(0) if way == RESTORED else b""
            with bench.context() as new:
                if way == RESTORED:
                    new.restore(0, state, held)
                else:
                    new.read(held, 0, 0)
                yield Sample(f"{COST}: {way}", at, time.perf_counter() - start, number, unit="s")
                yield Sample(f"{TOKEN}: {way}", at, _token(new, bench, held), number, unit="s")


def _token(context: RawContext, bench: Bench, held: list[int]) -> float:
    """Median seconds of one token behind what the sequence holds, which is removed again.

    Of a recurrent state no part can be removed (docs/questions/positions.md): in a hybrid memory the token stays,
    `held` gets it, and the next one goes behind it. There are cells: those of the others, who are gone. Raises
    ContextError.
    """
    seconds = []
    for _ in range(bench.whole("tokens")):
        seconds.append(context.read(held[:1], len(held)).seconds)
        if not context.seq_rm(0, len(held), -1):
            held.append(held[0])
    return median(seconds)


def _short(*, cures: bool, same: bool) -> str:
    if not cures:
        return tr("There is nothing to cure: after a compaction a token takes {compacted:.2g} of its time.")
    if same:
        return tr("No: a compaction cures as much ({compacted:.2g} of the time of a token; rebuilt: {read:.2g}).")
    return tr("A compaction brings a token to {compacted:.2g} of its time, a rebuild to {read:.2g}.")


def _answer(values: Values, measured: Measured) -> Result:
    ratio, cost, pays = {}, {}, {}
    for at, way in enumerate(WAYS):
        before, after = (f"{TOKEN}: {BEFORE}", at), (f"{TOKEN}: {way}", at)
        ratio[way] = measured.ratio(tr("a token, {way} over before").format(way=tr(way)), after, before)
        cost[way] = measured.figure(tr("cost, {way}").format(way=tr(way)), f"{COST}: {way}", at, "s")
        gained = measured.median(*before) - measured.median(*after)
        pays[way] = cost[way].value / gained if gained > 0 else float("inf")
    compacted = ratio[COMPACTED].value
    cures = compacted < 1 - SAME
    ratio[COMPACTED] = ratio[COMPACTED].at_most(1 - SAME)
    ratio[READ] = ratio[READ].at_least(compacted - SAME).at_most(compacted + SAME)
    same = abs(ratio[READ].value - compacted) <= SAME
    rows = (
        {
            tr("way"): tr(way),
            tr("a token over before"): str(ratio[way]),
            tr(COST): str(cost[way]),
            tr("pays after tokens"): f"{pays[way]:,.0f}" if pays[way] < 1e6 else tr("never"),
        }
        for way in WAYS
    )
    costs = curve(tr("seconds"), enumerate(cost.values()))
    return Result(
        Verdict(
            f"compaction {'cures' if cures else 'cures nothing'}, a rebuild {'cures the same' if same else 'differs'}",
            tr(
                "A token behind {text:,.0f} tokens, with {others:,.0f} holes before them and no flash "
                "attention, takes {compacted} of its time after a compaction, {restored} in a new context "
                "that got the state, and {read} in one that read the text again. They cost {compacted_cost}, "
                "{restored_cost} and {read_cost}."
            ).format(
                text=values["text"],
                others=values["others"],
                compacted=ratio[COMPACTED],
                restored=ratio[RESTORED],
                read=ratio[READ],
                compacted_cost=cost[COMPACTED],
                restored_cost=cost[RESTORED],
                read_cost=cost[READ],
            ),
            _short(cures=cures, same=same).format(compacted=compacted, read=ratio[READ].value),
        ),
        figures=(*ratio.values(), *cost.values()),
        plots=(Plot(tr("Cost of each way"), tr("way"), "s", (costs,), x_names=tuple(map(tr, WAYS))),),
        tables=(Table.of(tr("Ways"), rows),),
    )


EXPERIMENT = Experiment(
    id="rebuild",
    title=marked("Rebuilding the context"),
    question=marked("Does rebuilding the context now and then make requests fast again, and what does it cost?"),
    supposed=marked("After many requests the context is to be rebuilt."),
    parameters=PARAMETERS,
    stages=WAYS,
    settings=_settings,
    work=lambda values: Work(
        values["others"] + 4 * values["rounds"] * values["text"], 6 * values["rounds"] * values["tokens"]
    ),
    measure=_measure,
    answer=_answer,
    applies=needs_attention,
)
