"""Six equal requests of which each takes longer than the one before: which mistake of the program does that?

The program of the story is run as its authors describe it, with each suspected mistake alone, with all of them, and
without any. Every run of six requests is preceded by one of the right program, its yardstick.
"""

import math
import time
from typing import Literal

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_attention
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import exponent, figure, line_slope, median
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Result,
    Sample,
    Series,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import ContextSettings, default_threads
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, replace

STORY_S = (0.9, 2.7, 3.5, 5.0, 6.6, 8.3)
"""Seconds of the six requests in the story."""
GROWS = 2.0
"""The last request over the first from which a program is said to become slower; in the story it is 9.2."""
MOST_TIMES = 60
"""A program is stopped after this many times the time of the right one: threads that wait for each other on a busy
machine take forever."""
YARDSTICK = marked("yardstick")
CELLS = marked("cells") + ": "


@dataclass(frozen=True, slots=True)
class Program:
    """How a program uses the cache. The defaults are the right way.

    whole      sends the whole sequence at each step, not only what is new
    record     keeps the tokens of earlier requests in front of those of the next
    fresh_id   its own sequence id for each request, else always 0
    go_on      positions go on behind the last one in the cache, else they are the places in the sequence
    removal    of the cells before what is sent does not follow them: "right" those of its sequence, "wrong" those of
               another one, or "none"
    threads    one; "too many": several times as many as the processor has cores; "added": that many cores' more for
               each request
    """

    name: str
    whole: bool = False
    record: bool = False
    fresh_id: bool = False
    go_on: bool = False
    removal: Literal["right", "wrong", "none"] = "right"
    threads: Literal["one", "too many", "added"] = "one"


RIGHT = Program(marked("the right way"))
RECORD = replace(
    RIGHT, name=marked("tokens of earlier requests kept, sent whole at each step"), whole=True, record=True
)
TOGETHER = Program(marked("all together"), whole=True, record=True, go_on=True, removal="none", threads="too many")
PROGRAMS = (
    replace(RIGHT, name=marked("whole sequence sent at each step, cells removed before"), whole=True),
    replace(
        RIGHT, name=marked("whole sequence sent at each step, from 0, nothing removed"), whole=True, removal="none"
    ),
    replace(
        RIGHT, name=marked("whole sequence sent at each step, behind the last"), whole=True, removal="none", go_on=True
    ),
    replace(RIGHT, name=marked("id reused, from 0, nothing removed"), removal="none"),
    replace(RIGHT, name=marked("id reused, positions go on, nothing removed"), removal="none", go_on=True),
    replace(RIGHT, name=marked("a fresh id for each request, nothing removed"), removal="none", fresh_id=True),
    replace(RIGHT, name=marked("another sequence removed, from 0"), removal="wrong"),
    replace(RIGHT, name=marked("another sequence removed, positions go on"), removal="wrong", go_on=True),
    replace(RIGHT, name=marked("removed, but positions go on"), go_on=True),
    replace(RIGHT, name=marked("more threads than cores"), threads="too many"),
    replace(RIGHT, name=marked("more threads with each request"), threads="added"),
    RECORD,
    TOGETHER,
)

PARAMETERS = (
    Parameter("requests", marked("Requests"), 6, 3, 12, 6, marked("Requests of the same size, one after another")),
    Parameter("prompt", marked("Prompt"), 4, 1, 64, 4,
              marked("Tokens in each prompt; 4 in the report of six requests that this is about")),
    Parameter("tokens", marked("Answer"), 15, 2, 128, 6, marked("Tokens written for each request; 15 in that report")),
    Parameter("threads", marked("Too many threads"), 3, 2, 8, 2,
              marked("How many times the processor's cores are too many threads")),
    Parameter("rounds", marked("Rounds"), 7, 2, 30, 3, marked("How often everything is repeated")),
)  # fmt: skip


def _settings(values: Values) -> ContextSettings:
    """With room for the program that throws nothing away and sends everything again."""
    n, size = int(values["requests"]), int(values["prompt"] + values["tokens"])
    largest = n * size
    cells = sum(_sent(values, request, record=True) for request in range(n))
    return ContextSettings(
        n_ctx=math.ceil((cells + size) / 256) * 256, n_seq_max=n + 1, n_batch=max(512, largest), n_ubatch=512
    )


def _sent(values: Values, request: int, *, record: bool) -> int:
    """Tokens that a program which sends everything at each step sends for a request, counted from 0."""
    prompt, steps = int(values["prompt"]), int(values["tokens"])
    before = request * (prompt + steps) if record else 0
    return steps * (before + prompt) + steps * (steps - 1) // 2


def _work(values: Values) -> Work:
    n, rounds = int(values["requests"]), values["rounds"]
    whole = sum(_sent(values, request, record=False) for request in range(n))
    record = sum(_sent(values, request, record=True) for request in range(n))
    written = n * values["tokens"] * (len(PROGRAMS) + 8 + 4 * values["threads"])
    return Work(rounds * 2 * (whole + record), rounds * written)


def _measure(bench: Bench) -> Measuring:
    prompt = bench.tokens(bench.whole("prompt"))
    with bench.context(inspect=True) as context:
        _run(context, bench, RIGHT, prompt, 0)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for at, program in enumerate(PROGRAMS):
                yield bench.progress(number, at, len(PROGRAMS), tr(program.name))
                yardstick = _run(context, bench, RIGHT, prompt, number)
                for sample in yardstick:
                    if sample.series == RIGHT.name:
                        yield replace(sample, series=YARDSTICK, note=program.name)
                    if at == 0:
                        yield sample
                limit_s = MOST_TIMES * sum(sample.y for sample in yardstick if sample.series == RIGHT.name)
                yield from _run(context, bench, program, prompt, number, limit_s)


def _run(
    context: RawContext, bench: Bench, program: Program, prompt: list[int], number: int, limit_s: float = math.inf
) -> list[Sample]:
    """The requests, until one is refused or `limit_s` is over: seconds in llama_decode, and the cells used then."""
    context.clear()
    start = time.perf_counter()
    samples = []
    record: list[int] = []
    for request in range(bench.whole("requests")):
        times = bench.whole("threads") if program.threads == "too many" else request + 1
        context.set_threads(1 if program.threads == "one" else default_threads() * times)
        sequence = record + prompt if program.record else list(prompt)
        seconds, refusal, used = _request(context, program, sequence, request, bench.whole("tokens"))
        samples.append(Sample(program.name, request + 1, seconds, number, refusal, unit="s"))
        if refusal:
            break
        if number == 0:
            samples.append(Sample(CELLS + program.name, request + 1, used, unit="cells"))
        if request and time.perf_counter() - start > limit_s:
            break
        record = sequence
    context.set_threads(1)
    return samples


def _request(
    context: RawContext, program: Program, sequence: list[int], request: int, steps: int
) -> tuple[float, str, int]:
    """Seconds, what the engine refused it with, cells in use. The answer is appended to `sequence`."""
    seq_id = request if program.fresh_id else 0
    if program.removal != "none":
        context.seq_rm(seq_id if program.removal == "right" else context.n_seq_max - 1)
    go_on_from = request * len(sequence) if program.removal == "right" and program.go_on else 0
    seconds, used, n_sent = 0.0, 0, 0
    if program.record and not program.whole:
        n_sent = len(sequence)
    for _ in range(steps):
        if program.whole:
            if program.removal == "right" and n_sent:
                context.seq_rm(seq_id)
            n_sent = 0
        part = sequence[n_sent:]
        last = context.span(seq_id)[1]
        start = max(last + 1, go_on_from) if program.go_on else n_sent
        answer = context.append(part, start, seq_id)
        seconds += answer.seconds
        if answer.rc != 0:
            return seconds, answer.refusal or tr("llama_decode returned {rc}.").format(rc=answer.rc), used
        used = (answer.slot.used if answer.slot else 0) + len(part)
        n_sent = len(sequence)
        sequence.append(context.likeliest())
    return seconds, "", used


# --- what follows from the samples ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A program's requests. Ratios and slopes are within one round; slope: in requests of the right way.

    reached    the last request in some round; fewer than requested if the program was stopped
    n_rounds   all of them; n_stopped: those in which it was stopped. These count only if there are no others, and then
               up to `reached`
    """

    name: str
    refusal: str
    reached: int
    n_rounds: int
    n_stopped: int
    cells: int
    first: float
    last: Figure
    ratio: Figure
    slope: Figure
    power: Figure
    shape: tuple[float, ...]

    @property
    def grows(self) -> bool:
        return not self.refusal and self.ratio.holds

    @property
    def whole(self) -> bool:
        """Whether some round came to its last request."""
        return self.n_stopped < self.n_rounds

    @property
    def judged(self) -> bool:
        """A program that was stopped in every round grows if it had grown until then; else nothing is known."""
        return not self.refusal and (self.whole or self.grows)

    def __str__(self) -> str:
        """The last request over the first."""
        if self.whole:
            return str(self.ratio)
        return tr("{ratio} (at request {n}, where it was stopped)").format(ratio=self.ratio, n=self.reached)


def _answer(values: Values, measured: Measured) -> Result:
    rows = [_row(program.name, measured, int(values["requests"])) for program in (RIGHT, *PROGRAMS)]
    figures = tuple(
        replace(row.ratio, name=tr("last over first request: {name}").format(name=tr(row.name)))
        for row in rows
        if not row.refusal and row.whole
    )
    return Result(
        verdict=_verdict(rows),
        figures=figures,
        plots=(_plot(rows),),
        tables=(_table(rows),),
        remarks=_remarks(values, rows),
    )


def _row(name: str, measured: Measured, n_requests: int) -> Row:
    samples = measured.samples
    refusal = next((s.note for s in samples if s.series == name and s.note), "")
    cells = max((int(measured.one(CELLS + name, x)) for x in measured.xs(CELLS + name)), default=0)
    beside = name if name != RIGHT.name else PROGRAMS[0].name
    yardstick = Measured([s for s in samples if s.series == YARDSTICK and s.note == beside]).by_round(YARDSTICK)
    rounds = measured.by_round(name)
    reached = min(map(len, rounds))
    whole = [number for number, seconds in enumerate(rounds) if len(seconds) == n_requests]
    counted = {number: rounds[number] for number in whole} or {n: own[:reached] for n, own in enumerate(rounds)}
    ratios, slopes, powers, lasts, shapes = [], [], [], [], []
    for number, seconds in counted.items():
        unit = median(yardstick[number])
        x = range(1, len(seconds) + 1)
        ratios.append(seconds[-1] / seconds[0])
        lasts.append(seconds[-1])
        slopes.append(line_slope(x, seconds) / unit if len(seconds) > 1 else 0.0)
        powers.append(exponent(x, seconds) if len(seconds) > 1 else 0.0)
        shapes.append([second / seconds[0] for second in seconds])
    return Row(
        name,
        refusal,
        reached,
        len(rounds),
        0 if refusal else len(rounds) - len(whole),
        cells,
        measured.median(name, 1),
        figure(tr("last request"), lasts, "s"),
        figure(tr("last over first request"), ratios).at_least(GROWS),
        figure(tr("slope"), slopes),
        figure(tr("exponent"), powers),
        tuple(median(column) for column in zip(*shapes, strict=False)),
    )


def _verdict(rows: list[Row]) -> Verdict:
    """The key rests on programs of one thread: how long threads wait for each other is the machine's affair."""
    by_name = {row.name: row for row in rows}
    record, together = by_name[RECORD.name], by_name[TOGETHER.name]
    single = [p.name for p in (RIGHT, *PROGRAMS) if p.threads == "one" and p != RECORD]
    others = [row for name in single if (row := by_name[name]).grows]
    refused = sum(bool(row.refusal) for row in rows)
    most = max((by_name[name] for name in single if by_name[name].judged), key=lambda row: row.ratio.value)
    rest = tr("llama.cpp refuses {n} of the suspects with an error, and the right way stays at {ratio} times.").format(
        n=refused, ratio=rows[0].ratio
    )
    if unknown := [tr(row.name) for row in rows if not row.refusal and not row.judged]:
        stopped = tr("Not judged, since they took too long and were stopped: {names}.")
        rest += " " + stopped.format(names="; ".join(unknown))
    if others:
        said = "; ".join(tr("{name}: {ratio} times").format(name=tr(row.name), ratio=row) for row in others)
        found = tr("The last request over the first: {said}.").format(said=said)
        worst = max(others, key=lambda row: row.ratio.value)
        answer = tr("Requests become slower: the last takes {ratio} times the first ({name}).")
        answer = answer.format(ratio=number_text(worst.ratio.value, 2), name=tr(worst.name))
        return Verdict(f"grows: {', '.join(row.name for row in others)}", f"{found} {rest}", answer)
    if not record.grows:
        found = tr(
            "None of the suspects makes equal requests slower: at most the last takes {most} times the "
            "first ({name}), and {record} times where earlier tokens are kept and sent again."
        ).format(most=most, name=tr(most.name), record=record)
        answer = tr("No suspect makes equal requests slower: at most {ratio} times.")
        answer = answer.format(ratio=number_text(most.ratio.value, 2))
        return Verdict("nothing grows", f"{found} {rest}", answer)
    found = tr(
        "Equal requests become slower where the tokens of earlier requests are kept and all are sent "
        "again at each step: the last takes {record} times the first, all mistakes together "
        "{together}, in the story {story:.1f}. Nothing else does it with one thread: the most is "
        "{most} times ({name})."
    ).format(record=record, together=together, story=STORY_S[-1] / STORY_S[0], most=most, name=tr(most.name))
    answer = tr("Because all earlier tokens are sent again: the last request takes {ratio} times the first.")
    answer = answer.format(ratio=number_text(record.ratio.value, 2))
    return Verdict("the record sent again", f"{found} {rest}", answer)


def _remarks(values: Values, rows: list[Row]) -> tuple[str, ...]:
    n = int(values["requests"])
    tokens = [_sent(values, request, record=True) for request in range(n)]
    theory = ", ".join(f"{sent / tokens[0]:.1f}" for sent in tokens)
    story = ", ".join(f"{second / STORY_S[0]:.1f}" for second in STORY_S)
    remarks = []
    remarks.append(
        tr(
            "Sending the tokens of all earlier requests at each step means {theory} times the tokens of "
            "the first request; the story's seconds are {story} times those of its first."
        ).format(theory=theory, story=story)
    )
    if any(row.name == RECORD.name and row.grows for row in rows):
        remarks.append(
            tr(
                "Unexplained: the story's log says that one token was decoded at each step. A program of "
                "that kind does not become slower here, so either the log told what was meant and not what "
                "was done, or the time went outside llama_decode."
            )
        )
    refused = tr("Refused — {name}: {why}")
    remarks += [refused.format(name=tr(row.name), why=row.refusal) for row in rows if row.refusal]
    remarks += [_stopped(row) for row in rows if row.n_stopped]
    times = tr("{name}: {n:.1f} times")
    slower = [times.format(name=tr(row.name), n=row.first / rows[0].first) for row in rows if not row.refusal]
    remarks.append(tr("The first request over that of the right way — {said}.").format(said="; ".join(slower)))
    return tuple(remarks)


def _stopped(row: Row) -> str:
    """That a program was not let run to its last request, and what counts of it."""
    said = tr(
        "Stopped — {name}: in {n} of {rounds} rounds, at the earliest after request {reached}, when it had taken {most}"
        " times as long as the right way takes for all."
    ).format(name=tr(row.name), n=row.n_stopped, rounds=row.n_rounds, reached=row.reached, most=MOST_TIMES)
    if row.whole:
        counts = tr("Only the other rounds count.")
    elif row.judged:
        counts = tr("What is called its last request is that one.")
    else:
        counts = tr("Whether it grows is not judged.")
    return f"{said} {counts}"


def _table(rows: list[Row]) -> Table:
    def line(row: Row) -> dict[str, str]:
        answer = tr("not judged") if not row.judged else tr("grows") if row.grows else tr("does not grow")
        if row.n_stopped:
            answer += tr(" (stopped after request {n} in {stopped} of {rounds} rounds)").format(
                n=row.reached, stopped=row.n_stopped, rounds=row.n_rounds
            )
        if row.refusal:
            answer = tr("refused at request {n}").format(n=row.reached)
        return {
            tr("program"): tr(row.name),
            tr("cells at the end"): "–" if row.refusal else f"{row.cells:,}",
            tr("first s"): "–" if row.refusal else f"{row.first:.3f}",
            tr("last s"): f"{row.last.value:.3f}" if row.judged else "–",
            tr("last / first"): str(row.ratio) if row.judged else "–",
            tr("slope per request"): f"{row.slope.value:+.2f}" if row.judged else "–",
            tr("exponent"): f"{row.power.value:.2f}" if row.judged else "–",
            tr("answer"): answer,
        }

    return Table.of(tr("Each suspect alone, and together (slope in requests of the right way)"), map(line, rows))


def _plot(rows: list[Row]) -> Plot:
    drawn = [row for row in rows if not row.refusal]
    series = [Series.of(tr(row.name), enumerate(row.shape, 1)) for row in drawn]
    story = Series.of(tr("the story"), enumerate((second / STORY_S[0] for second in STORY_S), 1))
    return Plot(
        tr("Seconds of each request over those of the first"), tr("request"), tr("times the first"), (story, *series)
    )


EXPERIMENT = Experiment(
    id="six-requests",
    title=marked("Six requests, each slower"),
    question=marked(
        "Six equal requests take 0.9 to 8.3 seconds, one after another: which mistake of the program does it?"
    ),
    supposed=marked(
        "Cells left behind, positions that do not start from 0, a sequence id used again, the whole sequence sent"
        " at each step, or too many threads."
    ),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_attention,
)
