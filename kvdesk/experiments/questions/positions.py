"""Which positions llama.cpp takes: its own answer to starts, gaps, repetitions, going back, and other sequences."""

import numpy as np

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import Answer, RawContext
from kvdesk.protocol.experiment import Figure, Parameter, Progress, Result, Sample, Table, Values, Verdict
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

DIFFERENCE = marked("difference of logits after removal")
CELLS = marked("cells after removal")
"""Series of the last two samples: how far a text after a removed one is from the same in an empty cache."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call after others, in an empty cache. before: positions in sequence 0; removed: then, from and to (-1: end);
    asked: the positions of the call, in sequence `seq_id`. {n} tokens are before, {far} is a far position.
    """

    id: str
    what: str
    before: tuple[str, str] | None
    removed: tuple[str, str] | None
    asked: tuple[str, ...]
    seq_id: int = 0


CASES = (
    Case("start at 0", marked("an empty sequence from 0 on"), None, None, ("0", "1", "2")),
    Case("start elsewhere", marked("an empty sequence from a far position on"), None, None, ("far", "far+1", "far+2")),
    Case(
        "start past the cells",
        marked("an empty sequence from behind n_ctx on"),
        None,
        None,
        ("n_ctx+far", "n_ctx+far+1"),
    ),
    Case("start below 0", marked("an empty sequence from -1 on"), None, None, ("-1", "0")),
    Case("next", marked("the position behind the last"), ("0", "n"), None, ("n", "n+1")),
    Case("gap", marked("one position left out behind the last"), ("0", "n"), None, ("n+1",)),
    Case("jump", marked("a far position behind the last"), ("0", "n"), None, ("n+far",)),
    Case("last again", marked("the last position again"), ("0", "n"), None, ("n-1",)),
    Case("from 0 again", marked("from 0 with the old cells there"), ("0", "n"), None, ("0", "1")),
    Case("gap inside", marked("a position left out inside a batch"), None, None, ("0", "1", "3")),
    Case("twice inside", marked("a position twice inside a batch"), None, None, ("0", "1", "1")),
    Case("back inside", marked("positions that go back inside a batch"), None, None, ("0", "2", "1")),
    Case("other sequence", marked("another sequence from 0 on"), ("0", "n"), None, ("0", "1"), 1),
    Case("from 0 after removal", marked("from 0 when all was removed"), ("0", "n"), ("0", "-1"), ("0", "1")),
    Case("on after removal", marked("behind the last when all was removed"), ("0", "n"), ("0", "-1"), ("n", "n+1")),
    Case("back after removal", marked("the middle, when the end was removed"), ("0", "n"), ("n//2", "-1"), ("n//2",)),
    Case(
        "0 after the end was removed",
        marked("from 0 when only the end was removed"),
        ("0", "n"),
        ("n//2", "-1"),
        ("0",),
    ),
)

PARAMETERS = (
    Parameter("n", marked("Tokens before"), 16, 4, 256, 16, marked("Tokens that are in the cache before")),
    Parameter("far", marked("Far position"), 1000, 100, 100000, 1000, marked("A position far from the others")),
)


def _measure(bench: Bench) -> Measuring:
    n = bench.whole("n")
    first, second = bench.tokens(n), bench.tokens(n)
    with bench.context(inspect=True) as context:
        known = {"n": n, "far": bench.whole("far"), "n_ctx": context.n_ctx}
        for i, case in enumerate(CASES):
            yield Progress(i, len(CASES) + 1, tr(case.what))
            context.clear()
            answer = _ask(context, case, first, known)
            yield Sample(case.id, i, answer.rc, note=answer.refusal, unit="code")
        yield Progress(len(CASES), len(CASES) + 1, tr("the same text after another one, and in an empty cache"))
        context.clear()
        context.read(second, 0)
        alone = context.logits()
        context.clear()
        context.read(first, 0)
        context.seq_rm(0)
        context.read(second, 0)
        yield Sample(DIFFERENCE, 0, float(np.abs(context.logits() - alone).max()))
        slot = context.read(first[:1], n).slot
        if slot is not None:
            yield Sample(CELLS, n, slot.used, unit="cells")


def _ask(context: RawContext, case: Case, tokens: list[int], known: dict[str, int]) -> Answer:
    if case.before is not None:
        start, end = (_number(text, known) for text in case.before)
        context.read(tokens[: end - start], start)
    if case.removed is not None and not context.seq_rm(0, *(_number(text, known) for text in case.removed)):
        return Answer(-1, 0.0, (tr("llama_memory_seq_rm returned false: this memory cannot remove a part."),), None)
    asked = [_number(text, known) for text in case.asked]
    return context.decode(tokens[: len(asked)], asked, case.seq_id)


def _number(text: str, known: dict[str, int]) -> int:
    """Of a sum of names and numbers, as in "n+1" and "n//2"."""
    name, halved, _ = text.partition("//")
    if halved:
        return known[name] // 2
    minus = text.startswith("-")
    first, less, rest = text.removeprefix("-").partition("-")
    total = sum(known[part] if part in known else int(part) for part in first.split("+"))
    return -total if minus else total - (int(rest) if less else 0)


def _answer(values: Values, measured: Measured) -> Result:
    by_id = {sample.series: sample for sample in measured.samples}
    taken = {case.id: by_id[case.id].y == 0 for case in CASES}
    starts = taken["start at 0"] and taken["start elsewhere"] and taken["other sequence"]
    gaps = taken["gap"] or taken["jump"]
    back = taken["last again"] or taken["from 0 again"]
    difference = by_id[DIFFERENCE].y
    cells = by_id.get(CELLS)
    stacks = difference != 0 or (cells is not None and cells.y != cells.x)
    parts = (
        "any start" if starts else "not any start",
        "gaps are taken" if gaps else "no gaps",
        "going back is taken" if back else "no going back",
        "context stacks" if stacks else "nothing stacks",
    )
    refused = tr("refused ({code:.0f})")
    rows = (
        {
            tr("call"): tr(case.what),
            tr("positions"): _called(case),
            tr("answer"): tr("taken") if taken[case.id] else refused.format(code=by_id[case.id].y),
            tr("what it says"): by_id[case.id].note,
        }
        for case in CASES
    )
    n_taken = sum(taken.values())
    left = tr("none of its cells")
    if cells is not None:
        left = tr("{n:.0f} cells where {own:.0f} are its own").format(n=cells.y, own=cells.x)
    sentence = tr(
        "A sequence {starts}; behind its last position {gaps}, and going back to one that is there "
        "is {back}: {taken} of {n} calls were taken. What was removed {stacks}: the same text after "
        "a removed one and in an empty cache differs by {difference:.3g} in its logits, with {left}."
    ).format(
        starts=tr("may start anywhere") if starts else tr("may not start anywhere"),
        gaps=tr("a gap is taken") if gaps else tr("there may be no gap"),
        back=tr("taken") if back else tr("refused"),
        taken=n_taken,
        n=len(CASES),
        stacks=tr("still counts") if stacks else tr("is gone"),
        difference=difference,
        left=left,
    )
    return Result(
        Verdict(
            "; ".join(parts),
            sentence,
            tr("A sequence {starts}; behind its last position {gaps}, and going back is {back}.").format(
                starts=tr("may start anywhere") if starts else tr("may not start anywhere"),
                gaps=tr("a gap is taken") if gaps else tr("there may be no gap"),
                back=tr("taken") if back else tr("refused"),
            ),
        ),
        figures=(Figure(tr("calls taken"), n_taken), Figure(tr(DIFFERENCE), difference)),
        tables=(Table.of(tr("The engine's own answers"), rows),),
        remarks=(
            tr("n is {n:.0f}, the far position {far:,.0f}, n_ctx 1,024.").format(n=values["n"], far=values["far"]),
        ),
    )


def _called(case: Case) -> str:
    before = tr("after {first}…{end}-1 ").format(first=case.before[0], end=case.before[1]) if case.before else ""
    removed = tr("removed from {first} ").format(first=case.removed[0]) if case.removed else ""
    where = tr(" in sequence 1") if case.seq_id else ""
    return f"{before}{removed}→ {', '.join(case.asked)}{where}"


EXPERIMENT = Experiment(
    id="positions",
    title=marked("Positions"),
    question=marked("Must positions start at 0, may they jump or go back, and does a context stack when they do?"),
    supposed=marked(
        "Positions must be continuous within a sequence (Y = X + 1); when they go back to 0 the old context may"
        " stay underneath."
    ),
    parameters=PARAMETERS,
    settings=lambda _values: ContextSettings(n_ctx=1024, n_seq_max=2, n_batch=512, n_ubatch=256),
    work=lambda values: Work(len(CASES) * (values["n"] + 3) + 3 * values["n"], 1),
    measure=_measure,
    answer=_answer,
)
