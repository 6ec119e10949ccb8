"""When to compact: never, over a threshold, by a cost model or in pauses, on a day of chats. Hole filling beside it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import starmap

import numpy as np

from kvdesk.backends.local.scheduler.speed_model import reads_of
from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.cache.memories.cells import StreamCells
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_plain_attention
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.scenarios.chat_day import Day, chat_day
from kvdesk.experiments.scenarios.from_recording import history_of
from kvdesk.experiments.scenarios.history import Event, History, Paused, Read, Sequences, Wrote, each_token
from kvdesk.experiments.scenarios.player import Player, States
from kvdesk.experiments.simulators.compactions import Way, simulate
from kvdesk.experiments.simulators.hole_filling import max_moves, over_threshold
from kvdesk.policies.compaction_gain import Fragmented, judge_compaction
from kvdesk.policies.costs import Costs
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
from kvdesk.values import dataclass, field

NEVER = marked("never")
THRESHOLD = marked("over a threshold of 0.1, before a decode (llama.cpp until #15473)")
COST = marked("by the cost model, before a question is read")
IDLE = marked("by the cost model, in pauses (kvdesk)")
POLICIES = (NEVER, THRESHOLD, COST, IDLE)

WAITED = marked("seconds waited")
P50, P95, LONGEST = marked("token, P50"), marked("token, P95"), marked("token, longest")
FIRST_P50, FIRST_P95 = "first token, P50", "first token, P95"
TIMES, BYTES, PAUSE = "compactions", marked("bytes moved"), "seconds compacting"
NOTICED = marked("seconds of that waited for")
TURN = "a token of this turn"
NUMBERS = (WAITED, P50, P95, LONGEST, FIRST_P50, FIRST_P95, TIMES, BYTES, PAUSE, NOTICED)
UNITS = {TIMES: "", BYTES: "bytes"}
SIMULATED = "simulated: "
OVER, PAUSED = marked("over a threshold"), marked("in each pause where fewer cells would be walked over")
RUNS = ((NEVER, Way.FILL), *((name, way) for name in (OVER, PAUSED) for way in Way))
KEYS = ("times", "cells", "most", "n_kv", "runs")
ROW_BYTES = "bytes of a cell"

MUCH = 0.05
"""Share of the time waited from which compaction counts as worthwhile, if its interval is also below all of it."""

PARAMETERS = (
    Parameter("turns", marked("Turns"), 60, 4, 1000, 24, marked("Questions and answers in a day")),
    Parameter("cells", marked("Cells"), 8192, 1024, 65536, 4096, marked("Of the cache")),
    Parameter("chats", marked("Sequences"), 12, 2, 64, 12, marked("Chats in the cache at the same time, at most")),
    Parameter("yesterday", marked("Chats of yesterday"), 8, 0, 63, 8,
              marked("Loaded from saved states in the morning")),
    Parameter("longest", marked("The longest of them"), 1280, 16, 16384, 800, marked("Tokens; the others are shorter")),
    Parameter("deleted", marked("Turns before a chat is deleted"), 4, 1, 1000, 2, marked("Which leaves holes")),
    Parameter("prompt", marked("Question"), 24, 2, 1024, 16, marked("Tokens of a typical question")),
    Parameter("answer", marked("Answer"), 24, 2, 1024, 12, marked("Tokens of a typical answer")),
    Parameter("flash_attention", marked("Flash attention"), 0, 0, 1, 0, marked("1: on")),
    Parameter("rounds", marked("Days"), 5, 2, 30, 3, marked("Each with other chats, once with every policy")),
)  # fmt: skip


def _cells(values: Values) -> int:
    """Of each policy's context."""
    return pad(int(values["cells"]), CTX_PAD)


def _settings(values: Values) -> ContextSettings:
    return ContextSettings(
        n_ctx=len(POLICIES) * _cells(values),
        n_seq_max=int(values["chats"]),
        n_batch=512,
        n_ubatch=512,
        flash_attn=bool(values["flash_attention"]),
    )


def _measure(bench: Bench) -> Measuring:
    if bench.whole("yesterday") > bench.whole("chats"):
        raise UserError(tr("There are more of yesterday's chats than sequences: choose more sequences."))
    journal = _of_journal(bench)
    states: States = {}
    texts: list[list[int]] = []
    if journal is None:
        yield Progress(0, 1, tr("the chats of yesterday are made"))
        texts = _yesterday(bench, states)
    for number in bench.rounds(bench.whole("rounds")):
        yield from _same_day(bench, journal or _day(bench, texts, number), number, states)


def _same_day(bench: Bench, history: History, number: int, states: States) -> Measuring:
    """The day with every policy, each on a separate context. They take turns after each question, starting with another
    one each time, so that a machine with varying speed affects all of them equally.
    """
    with ExitStack() as stack:
        days = [
            _DayWith(policy, stack.enter_context(bench.context(n_ctx=_cells(bench.values))), bench, states)
            for policy in POLICIES
        ]
        yield from _simulations(days[0].context, bench, history, number)
        turns = _turns(history)
        for turn, events in enumerate(turns):
            yield bench.progress(number, turn, len(turns), tr("turn {n}").format(n=turn + 1))
            first = (number + turn) % len(days)
            for day in days[first:] + days[:first]:
                for event in events:
                    day.do(event)
        for day in days:
            yield from day.samples(number)


def _turns(history: History) -> list[list[Event]]:
    """The day in parts: what comes before the first question, and each question with all until the next one."""
    turns: list[list[Event]] = [[]]
    for event in each_token(history):
        if isinstance(event, Read):
            turns.append([])
        turns[-1].append(event)
    return turns


def _of_journal(bench: Bench) -> History | None:
    if bench.journal is None:
        return None
    history, cache = history_of(bench.journal), bench.journal.shape.caches[0]
    n_cells, sequences = cache.size * cache.n_streams, Sequences()
    most = 0
    for event in history:
        sequences.follow(event)
        most = max(most, *sequences.tokens, 0)
    if n_cells > _cells(bench.values) or most >= bench.settings.n_seq_max:
        raise UserError(
            tr("This journal is of {cells:,} cells and {chats} sequences: choose as many (cells, chats).").format(
                cells=n_cells, chats=most + 1
            )
        )
    return history


def _yesterday(bench: Bench, states: States) -> list[list[int]]:
    """Beginnings of one text, each a part longer than the one before, with their states: the text is read once. Raises
    UserError if there is no room for all.
    """
    n, cells = bench.whole("yesterday"), bench.whole("cells")
    text = bench.tokens(bench.whole("longest"))
    texts = [text[: max(2, len(text) * (i + 1) // n)] for i in range(n)]
    if (total := sum(map(len, texts))) > cells:
        raise UserError(
            tr(
                "Yesterday's chats have {n:,} tokens together: choose more than {cells:,} cells, or shorter ones."
            ).format(n=total, cells=cells)
        )
    with bench.context(n_ctx=_cells(bench.values)) as context:
        if texts:
            context.read(text, 0)
        for tokens in reversed(texts):
            context.seq_rm(0, len(tokens), -1)
            states[tuple(tokens)] = context.saved(0)
    return texts


def _day(bench: Bench, texts: Sequence[Sequence[int]], number: int) -> History:
    """The chats of yesterday come in another order on each day."""
    day = Day(
        turns=bench.whole("turns"),
        n_seq=bench.whole("chats"),
        n_cells=bench.whole("cells"),
        system=0,
        prompt=bench.whole("prompt"),
        answer=bench.whole("answer"),
        deleted_every=bench.whole("deleted"),
    )
    order = np.random.default_rng(bench.seed + number).permutation(len(texts))
    return chat_day(day, bench.tokens, bench.seed + number, [texts[i] for i in order])


# --- on the engine ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tally:
    """Seconds of one day: of tokens and first tokens as they were waited for, of pauses; bytes."""

    tokens: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    noticed: float = 0.0
    n_bytes: int = 0
    turns: list[list[float]] = field(default_factory=list)

    def numbers(self) -> dict[str, float]:
        return {
            WAITED: sum(self.tokens) + sum(self.firsts),
            P50: _percentile(self.tokens, 50),
            P95: _percentile(self.tokens, 95),
            LONGEST: max(self.tokens, default=0.0),
            FIRST_P50: _percentile(self.firsts, 50),
            FIRST_P95: _percentile(self.firsts, 95),
            TIMES: len(self.pauses),
            BYTES: self.n_bytes,
            PAUSE: sum(self.pauses),
            NOTICED: self.noticed,
        }


class _DayWith:
    def __init__(self, policy: str, context: RawContext, bench: Bench, states: States) -> None:
        self.policy, self.context = policy, context
        self._player, self._sequences = Player(context, bench.model.vocab.n_tokens, states), Sequences()
        self._row_bytes, self._flash = _row_bytes(context), bench.settings.flash_attn
        self._costs = Costs(reads_of(bench.header, bench.settings, bench.header.file_size, self._row_bytes))
        self._tally = _Tally()

    def do(self, event: Event) -> None:
        """What the policy does before it, and the event."""
        pause, tally = self._compacted(event), self._tally
        seconds = self._player.do(event)
        self._sequences.follow(event)
        match event:
            case Read():
                tally.firsts.append(seconds[0] + pause)
                tally.turns.append([])
                tally.noticed += pause
            case Wrote(seq_id):
                tally.tokens.append(seconds[0] + pause)
                tally.noticed += pause
                if tally.turns:
                    tally.turns[-1].append(seconds[0])
                self._costs.learn(1, self._cells.n_kv, len(self._sequences.tokens[seq_id]), seconds[0] * 1e3)
            case Paused(length):
                tally.noticed += max(0.0, pause - length)
            case _:
                pass

    def samples(self, number: int) -> Iterator[Sample]:
        """What came of the day."""
        for name, value in self._tally.numbers().items():
            yield Sample(f"{self.policy}: {name}", 0, value, number, unit=UNITS.get(name, "s"))
        for turn, taken in enumerate(self._tally.turns):
            if taken:
                yield Sample(f"{self.policy}: {TURN}", turn + 1, float(np.median(taken)), number, unit="s")

    @property
    def _cells(self) -> StreamCells:
        return self.context.mirror.caches[0].streams[0]

    def _compacted(self, event: Event) -> float:
        """Seconds that compaction takes before this event; 0 if it is not due."""
        due = _due(self.policy, event, self._cells, self._costs, self._sequences, self._row_bytes, flash=self._flash)
        if not due:
            return 0.0
        pause, n_bytes = self.context.compact()
        self._costs.learn_state(n_bytes // 2, pause * 1e3)
        self._tally.pauses.append(pause)
        self._tally.n_bytes += n_bytes
        return pause


def _due(
    policy: str, event: Event, cells: StreamCells, costs: Costs, sequences: Sequences, row_bytes: int, *, flash: bool
) -> bool:
    if policy == THRESHOLD:
        return isinstance(event, Read | Wrote) and over_threshold(cells, 256 if flash else 32)
    if (policy == COST and isinstance(event, Read)) or (policy == IDLE and isinstance(event, Paused)):
        n_visible = max((len(tokens) for tokens in sequences.tokens.values()), default=0)
        now = Fragmented(cells.n_kv, cells.n_kv_of(cells.used), n_visible, cells.used * row_bytes)
        return judge_compaction(costs, now).pays
    return False


def _row_bytes(context: RawContext) -> int:
    """K and V of one cell in all layers."""
    return context.buffers["KV"] // context.n_ctx


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else 0.0


# --- simulated --------------------------------------------------------------------------------------------------------


def _simulations(context: RawContext, bench: Bench, history: History, number: int) -> Iterator[Sample]:
    """What each way of defragmenting would move on this day, over the threshold and in pauses."""
    yield Sample(ROW_BYTES, 0, _row_bytes(context), number, unit="bytes")
    most = max_moves(bench.header.hyper("block_count", 1))
    triggers = _triggers(flash=bench.settings.flash_attn)
    for name, way in RUNS:
        moved = simulate(history, context.mirror.geometry, way, triggers[name], most)
        for key, value in zip(KEYS, moved, strict=True):
            yield Sample(f"{SIMULATED}{name}: {way.value}: {key}", 0, value, number)


def _triggers(*, flash: bool) -> dict[str, Callable[[StreamCells, Event], bool]]:
    def over(cells: StreamCells, event: Event) -> bool:
        return isinstance(event, Read | Wrote) and over_threshold(cells, 256 if flash else 32)

    def paused(cells: StreamCells, event: Event) -> bool:
        return isinstance(event, Paused) and cells.n_kv_of(cells.used) < cells.n_kv

    return {NEVER: lambda _cells, _event: False, OVER: over, PAUSED: paused}


# --- what follows from the samples ------------------------------------------------------------------------------------


def _answer(values: Values, measured: Measured) -> Result:
    def over(policy: str, other: str, name: str) -> Figure:
        said = tr("{what}, {policy} over {other}").format(what=tr(name), policy=tr(policy), other=tr(other))
        return measured.ratio(said, (f"{policy}: {name}", 0), (f"{other}: {name}", 0))

    def of(what: str, policy: str, unit: str, scale: float = 1.0) -> Figure:
        return measured.figure(f"{tr(what)}, {tr(policy)}", f"{policy}: {what}", unit=unit, scale=scale)

    waited = {policy: over(policy, NEVER, WAITED).at_most(1 - MUCH) for policy in POLICIES[1:]}
    middle = over(IDLE, NEVER, P50)
    moved = {policy: of(BYTES, policy, "MB", 1e-6) for policy in POLICIES}
    noticed = {policy: of(NOTICED, policy, "s") for policy in POLICIES}
    acted = [ratio for policy, ratio in waited.items() if max(measured.all(f"{policy}: {TIMES}")) > 0]
    shorter = [ratio for ratio in acted if ratio.holds and (ratio.high or ratio.value) < 1]
    pays = "pays" if shorter else "does not pay" if acted else "has nothing to do"
    felt = noticed[IDLE].value > 0
    cells = {way: measured.median(f"{SIMULATED}{OVER}: {way.value}: cells") for way in Way}
    fewer = cells[Way.FILL] < cells[Way.IN_ORDER]
    said = tr(
        "Without compaction the day's tokens and first tokens take {never} s; over a threshold {threshold}, by the"
        " cost model before a question {cost}, in pauses {idle} of it (a middle token {middle}). Compactions moved"
        " {moved_threshold}, {moved_cost} and {moved_idle}; somebody waited {noticed_threshold}, {noticed_cost} and"
        " {noticed_idle} for them. Simulated over the threshold, filling holes moves {filled:,.0f} cells, the whole"
        " state {whole:,.0f}, and grouping by sequence {grouped:,.0f}."
    ).format(
        never=number_text(measured.median(f"{NEVER}: {WAITED}")),
        threshold=waited[THRESHOLD],
        cost=waited[COST],
        idle=waited[IDLE],
        middle=middle,
        moved_threshold=moved[THRESHOLD],
        moved_cost=moved[COST],
        moved_idle=moved[IDLE],
        noticed_threshold=noticed[THRESHOLD],
        noticed_cost=noticed[COST],
        noticed_idle=noticed[IDLE],
        filled=cells[Way.FILL],
        whole=cells[Way.IN_ORDER],
        grouped=cells[Way.GROUPED],
    )
    best = min(shorter or acted, key=lambda ratio: ratio.value) if acted else None
    answer = tr("There was nothing to compact.")
    if best is not None:
        policy = next(name for name, ratio in waited.items() if ratio is best)
        answer = tr("Compaction pays: {policy}, the day takes {ratio:.2g} of its time.")
        if not shorter:
            answer = tr("Compaction does not pay here: at best ({policy}) the day takes {ratio:.2g} of its time.")
        answer = answer.format(policy=tr(policy), ratio=best.value)
    flash = tr("on") if values["flash_attention"] else tr("off")
    return Result(
        Verdict(
            f"compaction {pays}; in pauses {'it is waited for' if felt else 'nobody waits'};"
            f" filling holes moves {'fewer' if fewer else 'no fewer'} cells",
            said,
            answer,
        ),
        figures=(*waited.values(), middle, over(IDLE, NEVER, P95), *moved.values(), *noticed.values()),
        plots=(_plot(measured),),
        tables=(_table(measured, waited), _simulated_table(measured)),
        remarks=(
            tr("Flash attention is {flash}. The policies took turns on each day, question by question.").format(
                flash=flash
            ),
            tr(
                "The first table is measured on the engine; every compaction there reads and writes the whole state."
                " The second is simulated: which cells each way would move, read and written, and nothing is timed."
            ),
        ),
    )


def _table(measured: Measured, waited: dict[str, Figure]) -> Table:
    def row(policy: str) -> dict[str, str]:
        m = {name: measured.median(f"{policy}: {name}") for name in NUMBERS}
        return {
            tr("policy"): tr(policy),
            tr("waited over never"): str(waited.get(policy, 1)),
            tr("token P50, P95, longest (ms)"): ", ".join(f"{m[name] * 1e3:.1f}" for name in (P50, P95, LONGEST)),
            tr("first token P50, P95 (ms)"): ", ".join(f"{m[name] * 1e3:.0f}" for name in (FIRST_P50, FIRST_P95)),
            tr("compactions"): f"{m[TIMES]:.0f}",
            tr("MB moved"): f"{m[BYTES] / 1e6:.1f}",
            tr("compacting (ms)"): f"{m[PAUSE] * 1e3:.1f}",
            tr("waited for (ms)"): f"{m[NOTICED] * 1e3:.1f}",
        }

    return Table.of(tr("A day with each policy (medians over the days)"), map(row, POLICIES))


def _simulated_table(measured: Measured) -> Table:
    mb = 2 * measured.median(ROW_BYTES) / 1e6  # each moved cell is read and written

    def row(name: str, way: Way) -> dict[str, str]:
        times, cells, most, n_kv, runs = (measured.median(f"{SIMULATED}{name}: {way.value}: {key}") for key in KEYS)
        return {
            tr("when"): tr(name),
            tr("way"): tr(way.value) if name != NEVER else "–",
            tr("times"): f"{times:.0f}",
            tr("cells moved"): f"{cells:,.0f}",
            tr("MB moved"): f"{cells * mb:,.1f}",
            tr("MB at most at a time"): f"{most * mb:,.1f}",
            tr("cells walked over"): f"{n_kv:,.0f}",
            tr("runs a sequence"): f"{runs:.2f}",
        }

    return Table.of(tr("Ways of defragmenting, simulated (medians over the days)"), starmap(row, RUNS))


def _plot(measured: Measured) -> Plot:
    names = {policy: f"{policy}: {TURN}" for policy in POLICIES}
    series = tuple(measured.curve(name, measured.xs(name), 1e3, tr(policy)) for policy, name in names.items())
    return Plot(tr("A token over the day"), tr("turn"), tr("ms"), series)


def _work(values: Values) -> Work:
    n = values["rounds"] * values["turns"] * len(POLICIES)
    return Work(values["longest"] + n * 1.5 * values["prompt"], n * 1.6 * values["answer"])


EXPERIMENT = Experiment(
    id="defrag-policies",
    title=marked("When to compact"),
    question=marked("When should a fragmented cache be compacted, and how?"),
    supposed=marked("Over a threshold, or in idle time; the whole cache rather than its holes."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_plain_attention(
        marked("This model's cache is not one of plain attention: the day cannot be moved cell by cell.")
    ),
    takes_journal=True,
)
