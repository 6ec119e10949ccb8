"""Which positions llama.cpp takes: its own answer to starts, gaps, repetitions, going back, and other sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Work
from kvdesk.experiments.raw_context import Answer, RawContext
from kvdesk.protocol.experiment import Figure, Parameter, Progress, Result, Sample, Table, Values, Verdict
from kvdesk.settings import ContextSettings

DIFFERENCE = "difference of logits after removal"
CELLS = "cells after removal"
"""Series of the last two samples: how far a text after a removed one is from the same in an empty cache."""

Positions = Sequence[int]


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
    Case("start at 0", "an empty sequence from 0 on", None, None, ("0", "1", "2")),
    Case("start elsewhere", "an empty sequence from a far position on", None, None, ("far", "far+1", "far+2")),
    Case("start past the cells", "an empty sequence from behind n_ctx on", None, None, ("n_ctx+far", "n_ctx+far+1")),
    Case("start below 0", "an empty sequence from -1 on", None, None, ("-1", "0")),
    Case("next", "the position behind the last", ("0", "n"), None, ("n", "n+1")),
    Case("gap", "one position left out behind the last", ("0", "n"), None, ("n+1",)),
    Case("jump", "a far position behind the last", ("0", "n"), None, ("n+far",)),
    Case("last again", "the last position again", ("0", "n"), None, ("n-1",)),
    Case("from 0 again", "from 0 with the old cells there", ("0", "n"), None, ("0", "1")),
    Case("gap inside", "a position left out inside a batch", None, None, ("0", "1", "3")),
    Case("twice inside", "a position twice inside a batch", None, None, ("0", "1", "1")),
    Case("back inside", "positions that go back inside a batch", None, None, ("0", "2", "1")),
    Case("other sequence", "another sequence from 0 on", ("0", "n"), None, ("0", "1"), 1),
    Case("from 0 after removal", "from 0 when all was removed", ("0", "n"), ("0", "-1"), ("0", "1")),
    Case("on after removal", "behind the last when all was removed", ("0", "n"), ("0", "-1"), ("n", "n+1")),
    Case("back after removal", "the middle, when the end was removed", ("0", "n"), ("n//2", "-1"), ("n//2",)),
    Case("0 after the end was removed", "from 0 when only the end was removed", ("0", "n"), ("n//2", "-1"), ("0",)),
)

PARAMETERS = (
    Parameter("n", "Tokens before", 16, 4, 256, 16, "Tokens that are in the cache before"),
    Parameter("far", "Far position", 1000, 100, 100000, 1000, "A position far from the others"),
)


def _measure(bench: Bench) -> Iterator[Progress | Sample]:
    n = bench.whole("n")
    first, second = bench.tokens(n), bench.tokens(n)
    with bench.context(inspect=True) as context:
        known = {"n": n, "far": bench.whole("far"), "n_ctx": context.n_ctx}
        for i, case in enumerate(CASES):
            yield Progress(i, len(CASES) + 1, case.what)
            context.clear()
            answer = _ask(context, case, first, known)
            yield Sample(case.id, i, answer.rc, note=answer.refusal, unit="code")
        yield Progress(len(CASES), len(CASES) + 1, "the same text after another one, and in an empty cache")
        context.clear()
        context.append(second, 0)
        alone = context.logits()
        context.clear()
        context.append(first, 0)
        context.remove(0)
        context.append(second, 0)
        yield Sample(DIFFERENCE, 0, float(np.abs(context.logits() - alone).max()))
        slot = context.append(first[:1], n).slot
        if slot is not None:
            yield Sample(CELLS, n, slot.used, unit="cells")


def _ask(context: RawContext, case: Case, tokens: list[int], known: dict[str, int]) -> Answer:
    if case.before is not None:
        start, end = (_number(text, known) for text in case.before)
        context.append(tokens[: end - start], start)
    if case.removed is not None and not context.remove(0, *(_number(text, known) for text in case.removed)):
        return Answer(-1, 0.0, ("llama_memory_seq_rm returned false: this memory cannot remove a part.",), None)
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


def _conclude(values: Values, samples: Sequence[Sample]) -> Result:
    by_id = {sample.series: sample for sample in samples}
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
    rows = tuple(
        (
            case.what,
            _called(case),
            "taken" if taken[case.id] else f"refused ({by_id[case.id].y:.0f})",
            by_id[case.id].note,
        )
        for case in CASES
    )
    n_taken = sum(taken.values())
    left = "none of its cells" if cells is None else f"{cells.y:.0f} cells where {cells.x:.0f} are its own"
    sentence = (
        f"A sequence {'may start anywhere' if starts else 'may not start anywhere'}; behind its last position"
        f" {'a gap is taken' if gaps else 'there may be no gap'}, and going back to one that is there is"
        f" {'taken' if back else 'refused'}: {n_taken} of {len(CASES)} calls were taken. What was removed"
        f" {'still counts' if stacks else 'is gone'}: the same text after a removed one and in an empty cache differs"
        f" by {difference:.3g} in its logits, with {left}."
    )
    return Result(
        Verdict("; ".join(parts), sentence),
        figures=(Figure("calls taken", n_taken), Figure(DIFFERENCE, difference)),
        tables=(Table("The engine's own answers", ("call", "positions", "answer", "what it says"), rows),),
        remarks=(f"n is {values['n']:.0f}, the far position {values['far']:.0f}, n_ctx 1024.",),
    )


def _called(case: Case) -> str:
    before = f"after {case.before[0]}…{case.before[1]}-1 " if case.before else ""
    removed = f"removed from {case.removed[0]} " if case.removed else ""
    return f"{before}{removed}→ {', '.join(case.asked)}{' in sequence 1' if case.seq_id else ''}"


EXPERIMENT = Experiment(
    id="positions",
    title="Positions",
    question="Must positions start at 0, may they jump or go back, and does a context stack when they do?",
    supposed="Positions must be continuous within a sequence (Y = X + 1); when they go back to 0 the old context may"
    " stay underneath.",
    parameters=PARAMETERS,
    settings=lambda _values: ContextSettings(n_ctx=1024, n_seq_max=2, n_batch=512, n_ubatch=256),
    work=lambda values: Work(len(CASES) * (values["n"] + 3) + 3 * values["n"], 1),
    measure=_measure,
    conclude=_conclude,
)
