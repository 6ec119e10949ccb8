"""One sequence id for all requests or a fresh one for each, cleaned or not, and what happens at n_seq_max."""

from collections.abc import Iterator

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import figure, median
from kvdesk.protocol.experiment import Figure, Parameter, Plot, Result, Sample, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

DIFFERS = 1.25
"""Seconds of a request over those with one id from which ids are said to make a difference."""
CELLS = marked("cells") + ": "


@dataclass(frozen=True, slots=True)
class Policy:
    """Which id a request gets. ids: "one", "fresh" forever, or "recycled" within n_seq_max; cleaned: its cells are
    removed when the request is over; narrow: in a cache with room for two requests.
    """

    name: str
    ids: str
    cleaned: bool
    narrow: bool = False


ONE = Policy(marked("one id, cleaned"), "one", True)
RECYCLED = Policy(marked("ids recycled, cleaned"), "recycled", True)
FRESH = Policy(marked("fresh ids, not cleaned"), "fresh", False)
POLICIES = (
    ONE,
    RECYCLED,
    Policy(marked("fresh ids, cleaned"), "fresh", True),
    FRESH,
    Policy(marked("one id, not cleaned"), "one", False),
    Policy(marked("recycled ids, not cleaned"), "recycled", False),
    Policy(marked("fresh ids, not cleaned, few cells"), "fresh", False, narrow=True),
)

PARAMETERS = (
    Parameter("n_seq_max", marked("n_seq_max"), 4, 2, 16, 4, marked("Sequence ids the context has")),
    Parameter("requests", marked("Requests"), 8, 3, 24, 6,
              marked("Requests, one after another; at least one more than there are ids")),
    Parameter("prompt", marked("Prompt"), 100, 1, 200, 100, marked("Tokens in each prompt")),
    Parameter("tokens", marked("Answer"), 16, 1, 64, 8, marked("Tokens written for each request")),
    Parameter("rounds", marked("Rounds"), 7, 2, 30, 3, marked("How often everything is repeated")),
)  # fmt: skip


def _requests(values: Values) -> int:
    """One more than there are ids at least: the first fresh id beyond n_seq_max comes with request n_seq_max + 1."""
    return max(int(values["requests"]), int(values["n_seq_max"]) + 1)


def _settings(values: Values) -> ContextSettings:
    cells = int(_requests(values) * (values["prompt"] + values["tokens"]))
    return ContextSettings(n_ctx=max(512, pad(cells, CTX_PAD)), n_seq_max=int(values["n_seq_max"]))


def _measure(bench: Bench) -> Measuring:
    prompt = bench.tokens(bench.whole("prompt"))
    with bench.context(inspect=True) as wide, bench.context(inspect=True, n_ctx=256) as narrow:
        list(_run(wide, bench, ONE, prompt, 0))  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for at, policy in enumerate(POLICIES):
                yield bench.progress(number, at, len(POLICIES), tr(policy.name))
                yield from _run(narrow if policy.narrow else wide, bench, policy, prompt, number)


def _run(context: RawContext, bench: Bench, policy: Policy, prompt: list[int], number: int) -> Iterator[Sample]:
    context.clear()
    for request in range(_requests(bench.values)):
        seq_id = {"one": 0, "fresh": request, "recycled": request % context.n_seq_max}[policy.ids]
        answer = context.append(prompt, 0, seq_id)
        seconds, used = answer.seconds, answer.slot.used if answer.slot else 0
        for step in range(bench.whole("tokens")):
            if answer.rc != 0:
                break
            answer = context.append([context.likeliest()], len(prompt) + step, seq_id)
            seconds += answer.seconds
            used = answer.slot.used + 1 if answer.slot else used
        refusal = (
            ""
            if answer.rc == 0
            else tr("code {rc}: {why}").format(rc=answer.rc, why=answer.refusal or tr("no cells are left"))
        )
        yield Sample(policy.name, request + 1, seconds, number, refusal, unit="s")
        if refusal:
            return
        if number == 0:
            yield Sample(CELLS + policy.name, request + 1, used, unit="cells")
        if policy.cleaned:
            context.seq_rm(seq_id)


def _answer(values: Values, measured: Measured) -> Result:
    def used(policy: Policy) -> list[tuple[float, Figure]]:
        return [(s.x, Figure("", s.y)) for s in measured.samples if s.series == CELLS + policy.name]

    refused = {sample.series: (int(sample.x), sample.note) for sample in measured.samples if sample.note}
    taken = Measured([sample for sample in measured.samples if not sample.note])
    ratios = {}
    for policy in POLICIES:
        pairs = zip(taken.by_round(policy.name), taken.by_round(ONE.name), strict=False)
        found = [median(own) / median(one) for own, one in pairs]
        ratios[policy.name] = figure(tr("{a} over {b}").format(a=tr(policy.name), b=tr(ONE.name)), found or [0.0])
    recycled = ratios[RECYCLED.name].at_most(DIFFERS).at_least(1 / DIFFERS)
    ratios[RECYCLED.name] = recycled
    at, said = refused.get(FRESH.name, (0, ""))
    beyond = at == int(values["n_seq_max"]) + 1
    limit = tr("Fresh ids are not refused beyond n_seq_max.")
    if beyond:
        limit = tr("Fresh ids are refused beyond n_seq_max ({said}).").format(said=said)
    ends = {name: tr("request {n}: {why}").format(n=n, why=why) for name, (n, why) in refused.items()}
    rows = (
        {
            tr("ids"): tr(policy.name),
            tr("cells"): f"{max((cells.value for _, cells in used(policy)), default=0):,.0f}",
            tr("seconds"): str(ratios[policy.name]) if ratios[policy.name].value else "–",
            tr("end"): ends.get(policy.name, tr("none refused")),
        }
        for policy in POLICIES
    )
    series = tuple(curve(tr(policy.name), used(policy)) for policy in POLICIES)
    sentence = tr(
        "A request with recycled ids takes {ratio} times one with a single id, both cleaned: which "
        "id it has makes a difference."
    )
    answer = tr("Yes: with recycled ids a request takes {ratio:.2g} times as long.")
    if recycled.holds:
        sentence = tr(
            "A request with recycled ids takes {ratio} times one with a single id, both cleaned: which "
            "id it has makes none."
        )
        answer = tr("No: which id a request has makes no difference to its time.")
    return Result(
        Verdict(
            f"{'ids do not differ' if recycled.holds else 'ids differ'}; {'refused' if beyond else 'not refused'}",
            f"{sentence.format(ratio=recycled)} {limit}",
            answer.format(ratio=recycled.value),
        ),
        figures=tuple(ratio for ratio in ratios.values() if ratio.value),
        plots=(Plot(tr("Cells in use at the end of each request"), tr("request"), tr("cells"), series),),
        tables=(Table.of(tr("Seconds of a request over one with a single id, cleaned"), rows),),
    )


def _work(values: Values) -> Work:
    times = values["rounds"] * _requests(values) * len(POLICIES)
    return Work(times * values["prompt"], times * values["tokens"])


EXPERIMENT = Experiment(
    id="seq-ids",
    title=marked("Sequence ids"),
    question=marked("Should each request get its own sequence id, and what happens at n_seq_max?"),
    supposed=marked(
        "An id that is used again may leave its state in confusion; a fresh one for each request would be safe, as"
        " long as it is below n_seq_max."
    ),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
)
