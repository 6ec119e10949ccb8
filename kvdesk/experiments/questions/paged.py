"""What vLLM's blocks and SGLang's tree would have done with a history that llama.cpp's cells really had."""

from collections.abc import Iterator, Sequence

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.cache.journal.recording import Recording
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_prefixes
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.scenarios.chat_day import Day, chat_day
from kvdesk.experiments.scenarios.from_recording import history_of
from kvdesk.experiments.scenarios.history import History, Kept, Read, Sequences
from kvdesk.experiments.scenarios.player import Player
from kvdesk.experiments.simulators.live_cells import live_cells
from kvdesk.experiments.simulators.paged_cache import PagedCache
from kvdesk.experiments.simulators.radix_cache import RadixCache
from kvdesk.experiments.simulators.replay import Outcome, held, served
from kvdesk.experiments.statistics import figure
from kvdesk.protocol.experiment import (
    Figure,
    Parameter,
    Plot,
    Progress,
    Result,
    Sample,
    Series,
    Table,
    Values,
    Verdict,
    number_text,
)
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, names

BLOCK_SIZES = (8, 16, 32, 64, 128)
USUAL = 16
"""The block size that the answer is about: vLLM's default."""
SAME = 0.05
"""Share by which as many tokens are computed."""
FACTOR = 2.0
"""Between shares that are about as much."""

LLAMA = marked("llama.cpp's cells (recorded)")
SERVED = marked("blocks, requests: vLLM v1 (simulated)")
HELD = marked("blocks, sequences that stay, copy on write (simulated)")
TREE = marked("radix tree, requests: SGLang (simulated)")
RULES = (LLAMA, TREE, SERVED, HELD)

PARAMETERS = (
    Parameter("turns", marked("Turns"), 60, 4, 1000, 32, marked("Questions and answers in a day")),
    Parameter("cells", marked("Cells"), 2048, 256, 65536, 1024,
              marked("Of the cache, and slots of the simulated ones")),
    Parameter("chats", marked("Sequences"), 8, 2, 64, 6, marked("Chats in the cache at the same time, at most")),
    Parameter("system", marked("System prompt"), 96, 0, 4096, 64, marked("Tokens that all chats begin with")),
    Parameter("prompt", marked("Question"), 24, 2, 1024, 20, marked("Tokens of a typical question")),
    Parameter("answer", marked("Answer"), 24, 2, 1024, 14, marked("Tokens of a typical answer")),
    Parameter("rounds", marked("Days"), 5, 2, 30, 3, marked("Each with other chats")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What one cache did in one day. `computed`, `gone`, `copied`, `most`: tokens; the others are shares and numbers.

    hits    share of the tokens of prompts that was known
    gone    known and given up; for llama.cpp of sequences that were removed
    waste   mean share of the taken slots without a token; for llama.cpp of the cells below the high-water mark
    most    slots taken at most; for llama.cpp the highest high-water mark
    runs    mean runs of neighbouring slots of a sequence
    """

    hits: float
    computed: float
    gone: float
    copied: float
    waste: float
    most: float
    runs: float


NAMES = names(Row)


def _settings(values: Values) -> ContextSettings:
    cells = pad(int(values["cells"]), CTX_PAD)
    return ContextSettings(n_ctx=cells, n_seq_max=int(values["chats"]), n_batch=512, n_ubatch=512)


def _measure(bench: Bench) -> Measuring:
    if bench.journal is not None:
        yield Progress(0, 1, tr("the journal is read"))
        yield from _samples(bench.journal, 0)
        return
    values, n = bench.values, bench.whole("rounds")
    day = Day(
        turns=int(values["turns"]),
        n_seq=int(values["chats"]),
        n_cells=int(values["cells"]),
        system=int(values["system"]),
        prompt=int(values["prompt"]),
        answer=int(values["answer"]),
    )
    for number in range(n):
        history = chat_day(day, bench.tokens, bench.seed + number)
        with bench.context(record=True) as context:
            player = Player(context, bench.model.vocab.n_tokens, {})
            n_turns = 0
            for event in history:
                if isinstance(event, Read):
                    n_turns += 1
                    what = tr("day {day}, turn {turn}").format(day=number + 1, turn=n_turns)
                    yield Progress(number * day.turns + n_turns - 1, n * day.turns, what)
                player.do(event)
            yield from _samples(context.recording(), number)


def _samples(recording: Recording, number: int) -> Iterator[Sample]:
    """What llama.cpp did, and what the simulated caches with as many slots do with the same."""
    history = history_of(recording)
    cache = recording.shape.caches[0]
    n_slots = cache.size * cache.n_streams
    yield from _told(LLAMA, 0, _llama(recording, history), number)
    yield from _told(TREE, 1, _row(served(history, RadixCache(n_slots))), number)
    for size in BLOCK_SIZES:
        if n_slots >= size:
            yield from _told(SERVED, size, _row(served(history, PagedCache(n_slots, size))), number)
            yield from _told(HELD, size, _row(held(history, PagedCache(n_slots, size))), number)


def _told(rule: str, size: int, row: Row, number: int) -> Iterator[Sample]:
    for name in NAMES:
        yield Sample(f"{rule}: {name}", size, getattr(row, name), number)


def _row(outcome: Outcome) -> Row:
    o = outcome
    return Row(o.hit_rate, o.n_computed, o.n_evicted, o.n_copied, o.waste, o.most_slots, o.runs)


def _llama(recording: Recording, history: History) -> Row:
    sequences = Sequences()
    n_prompt = n_computed = n_gone = 0
    for event in history:
        if isinstance(event, Kept):
            n_gone += len(sequences.tokens[event.seq_id]) - event.n
        sequences.follow(event)
        if isinstance(event, Read):
            n_prompt += len(sequences.tokens[event.seq_id])
            n_computed += len(event.tokens)
    live = live_cells(recording)
    hits = 1 - n_computed / n_prompt if n_prompt else 0.0
    return Row(hits, n_computed, n_gone, 0, live.holes, live.most_high_water, live.runs)


# --- what follows from the samples ------------------------------------------------------------------------------------


def _answer(_values: Values, measured: Measured) -> Result:
    sizes = [int(x) for x in measured.xs(f"{HELD}: waste")]
    usual = USUAL if USUAL in sizes else sizes[-1]
    blocks_over = _over(measured, tr("prompt tokens computed, blocks of 16 over llama.cpp"), SERVED, usual)
    tree_over = _over(measured, tr("prompt tokens computed, tree over llama.cpp"), TREE, 1)
    blocks_over, tree_over = (ratio.at_least(1 - SAME).at_most(1 + SAME) for ratio in (blocks_over, tree_over))
    holes = measured.figure(tr("holes, llama.cpp"), f"{LLAMA}: waste")
    empty = measured.figure(tr("empty slots, blocks of 16"), f"{HELD}: waste", usual)
    empty = empty.at_least(holes.value / FACTOR).at_most(holes.value * FACTOR)
    less, more = (not bar.holds(empty.value) for bar in empty.bars)
    wasteful = "less than" if less else "more than" if more else "about as much as"
    wastes = {size: measured.median(f"{HELD}: waste", size) for size in sizes}
    said = tr(
        "With blocks of 16, vLLM's rule would compute {blocks} times the prompt tokens that were computed here, and"
        " SGLang's tree {tree} times. Of the slots in blocks {empty} would be empty if sequences stay (from {least:.3f}"
        " with blocks of {small} to {most:.3f} with {large}), where {holes} of the cells below llama.cpp's high-water"
        " mark were: those cost time, and can be used, where an empty slot of a block can be used by its sequence only."
    ).format(
        blocks=blocks_over,
        tree=tree_over,
        empty=empty,
        holes=holes,
        least=wastes[sizes[0]],
        small=sizes[0],
        most=wastes[sizes[-1]],
        large=sizes[-1],
    )
    return Result(
        Verdict(
            f"blocks compute {_word(blocks_over)}; the tree computes {_word(tree_over)}; waste is {wasteful} holes",
            said,
            tr(
                "Blocks of 16 would compute {blocks} times the prompt tokens, and {empty:.0%} of their slots would"
                " be empty; holes were {holes:.0%} here."
            ).format(blocks=number_text(blocks_over.value, 2), empty=empty.value, holes=holes.value),
        ),
        figures=(blocks_over, tree_over, empty, holes),
        plots=(_plot(measured, sizes),),
        tables=(_table(measured),),
        remarks=(
            tr(
                "Simulated by the rules of vLLM's and SGLang's source, with as many slots as there were cells. As"
                " requests a prompt comes whole and its tokens stay until their room is needed; sequences that stay"
                " keep their blocks until llama.cpp's were removed."
            ),
            tr(
                "vLLM v1 shares full blocks only and never writes into a shared one; copy on write is the rule of the"
                " PagedAttention paper, for sequences that are forked."
            ),
        ),
    )


def _over(measured: Measured, name: str, rule: str, size: int) -> Figure:
    pairs = zip(measured.all(f"{rule}: computed", size), measured.all(f"{LLAMA}: computed"), strict=True)
    return figure(name, [a / max(b, 1.0) for a, b in pairs])


def _word(ratio: Figure) -> str:
    if ratio.holds:
        return "as much"
    return "more" if ratio.value > 1 else "less"


def _table(measured: Measured) -> Table:
    def row(rule: str, size: int) -> dict[str, str]:
        middle = Row(*(measured.median(f"{rule}: {name}", size) for name in NAMES))
        return {
            tr("cache"): tr(rule),
            tr("block"): str(size) if size else "–",
            tr("prompt tokens known"): f"{middle.hits:.3f}",
            tr("computed"): f"{middle.computed:,.0f}",
            tr("given up"): f"{middle.gone:,.0f}",
            tr("copied"): f"{middle.copied:,.0f}",
            tr("empty"): f"{middle.waste:.3f}",
            tr("slots at most"): f"{middle.most:,.0f}",
            tr("runs a sequence"): f"{middle.runs:.1f}",
        }

    rows = (row(rule, int(x)) for rule in RULES for x in measured.xs(f"{rule}: hits"))
    return Table.of(tr("The same history in each cache (medians over the days)"), rows)


def _plot(measured: Measured, sizes: Sequence[int]) -> Plot:
    def line(name: str, rule: str, what: str, size: int | None = None) -> Series:
        figures = [(x, measured.figure("", f"{rule}: {what}", x if size is None else size)) for x in sizes]
        return curve(name.format(cache=tr(rule)), figures)

    return Plot(
        tr("Prompt tokens that were known, and slots that were empty"),
        tr("slots in a block"),
        tr("share"),
        (
            line(tr("known: {cache}"), LLAMA, "hits", 0),
            line(tr("known: {cache}"), SERVED, "hits"),
            line(tr("known: {cache}"), TREE, "hits", 1),
            line(tr("empty: {cache}"), HELD, "waste"),
            line(tr("holes: {cache}"), LLAMA, "waste", 0),
        ),
    )


def _work(values: Values) -> Work:
    n = values["rounds"] * values["turns"]
    return Work(n * 2 * values["prompt"], n * 1.2 * values["answer"])


EXPERIMENT = Experiment(
    id="paged",
    title=marked("Pages and trees"),
    question=marked("What would vLLM's pages and SGLang's tree do with this very history?"),
    supposed=marked("Pages bring the waste of a KV cache from 60 to 80 % down to less than 4 %; a tree reuses more."),
    parameters=PARAMETERS,
    settings=_settings,
    work=_work,
    measure=_measure,
    answer=_answer,
    applies=needs_prefixes,
    takes_journal=True,
)
