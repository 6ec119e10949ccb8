"""What SGLang's tree saves with llama.cpp: prompts that begin alike, read whole, and with their prefix shared."""

from collections.abc import Iterator, Sequence

from kvdesk.cache.geometry import CTX_PAD, pad
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.experiment import Experiment, Measuring, Work, needs_prefixes
from kvdesk.experiments.measured import Measured, curve
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.simulators.paged_cache import PagedCache
from kvdesk.experiments.simulators.radix_cache import RadixCache
from kvdesk.experiments.statistics import figure, median, ratios
from kvdesk.protocol.experiment import Parameter, Plot, Result, Sample, Table, Values, Verdict, number_text
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

WHOLE, SHARED = marked("each prompt read whole"), marked("common prefix shared")
WAYS = (WHOLE, SHARED)
FIRST, CELLS, READ, TOKEN = "first token", "cells used", "prompt tokens read", "first token chosen"
TREE, BLOCKS = marked("SGLang's tree (simulated)"), marked("vLLM's blocks of 16 (simulated)")
KINDS = {"first": marked("first prompt"), "chat": marked("chat"), "branch": marked("branch")}
USUAL = 16
MUCH = 1.15
"""Ratio of times to the first token from which sharing is said to save time."""

PARAMETERS = (
    Parameter("chats", marked("Chats"), 8, 2, 24, 6, marked("Which begin with the same system prompt")),
    Parameter("forks", marked("Branches"), 4, 0, 24, 3, marked("Of the first chat, behind its first question")),
    Parameter("system", marked("System prompt"), 250, 0, 4096, 120, marked("Tokens that all begin with")),
    Parameter("prompt", marked("Question"), 30, 1, 1024, 14, marked("Tokens of each question, all different")),
    Parameter("rounds", marked("Rounds"), 9, 2, 50, 5, marked("How often everything is repeated")),
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and whether it branches off the first chat."""

    tokens: tuple[int, ...]
    branches: bool


def _prompts(bench: Bench) -> list[Prompt]:
    system, n = bench.tokens(bench.whole("system")), bench.whole("prompt")
    chats = [Prompt((*system, *bench.tokens(n)), branches=False) for _ in range(bench.whole("chats"))]
    forks = [Prompt((*chats[0].tokens, *bench.tokens(n)), branches=True) for _ in range(bench.whole("forks"))]
    return [*chats, *forks]


def _settings(values: Values) -> ContextSettings:
    n_chats, n_forks = int(values["chats"]), int(values["forks"])
    each = int(values["system"] + values["prompt"])
    n_cells = n_chats * each + n_forks * (each + int(values["prompt"]))
    return ContextSettings(
        n_ctx=pad(n_cells, CTX_PAD), n_seq_max=n_chats + n_forks, n_batch=512, n_ubatch=512, kv_unified=True
    )


def _measure(bench: Bench) -> Measuring:
    prompts = _prompts(bench)
    yield from _simulated(prompts)
    with bench.context(record=True) as context:
        context.read(prompts[0].tokens, 0)  # warms up
        for number in bench.rounds(bench.whole("rounds")):
            for at, way in enumerate(WAYS if number % 2 == 0 else reversed(WAYS)):
                yield bench.progress(number, at, len(WAYS), f"{tr(way)}, {number + 1}")
                yield from _round(context, way, prompts, number)


def _round(context: RawContext, way: str, prompts: Sequence[Prompt], number: int) -> Iterator[Sample]:
    """All prompts, one after another; each stays."""
    context.clear()
    n_read = 0
    for seq_id, prompt in enumerate(prompts):
        n = 0
        if way == SHARED and seq_id:
            shared = [common_prefix(other.tokens, prompt.tokens[:-1]) for other in prompts[:seq_id]]
            if n := max(shared):
                context.seq_cp(shared.index(n), seq_id, 0, n)
        seconds = context.read(prompt.tokens[n:], n, seq_id).seconds
        n_read += len(prompt.tokens) - n
        note = "branch" if prompt.branches else "chat" if seq_id else "first"
        yield Sample(f"{FIRST}: {way}", seq_id, seconds, number, note, unit="s")
        if number == 0:
            yield Sample(f"{TOKEN}: {way}", seq_id, context.likeliest())
    yield Sample(f"{READ}: {way}", 0, n_read, number, unit="tokens")
    yield Sample(f"{CELLS}: {way}", 0, context.mirror.caches[0].streams[0].used, number, unit="cells")


def _simulated(prompts: Sequence[Prompt]) -> Iterator[Sample]:
    """What SGLang and vLLM would read of the same prompts, which all fit."""
    n_slots = 2 * sum(len(prompt.tokens) + USUAL for prompt in prompts)
    for name, cache in ((TREE, RadixCache(n_slots)), (BLOCKS, PagedCache(n_slots, USUAL))):
        found = sum(cache.begin(seq_id, prompt.tokens) for seq_id, prompt in enumerate(prompts))
        n_all = sum(len(prompt.tokens) for prompt in prompts)
        yield Sample(f"{READ}: {name}", 0, n_all - found, unit="tokens")
        yield Sample(f"{CELLS}: {name}", 0, cache.use().n_slots, unit="cells")


# --- what follows from the samples ------------------------------------------------------------------------------------


def _answer(values: Values, measured: Measured) -> Result:
    kinds = {int(s.x): s.note for s in measured.samples if s.series == f"{FIRST}: {WHOLE}"}
    places = {kind: [x for x, own in kinds.items() if own == kind] for kind in KINDS}

    def first(way: str, kind: str) -> list[float]:
        """Median seconds to the first token of prompts of this kind, in each round."""
        return [median(seconds) for seconds in measured.by_round(f"{FIRST}: {way}", places[kind])]

    over = {
        kind: figure(
            tr("first token of a {kind}, read whole over shared").format(kind=tr(KINDS[kind])),
            ratios(first(WHOLE, kind), first(SHARED, kind)),
        )
        for kind in KINDS
        if places[kind]
    }
    over["chat"] = over["chat"].at_least(MUCH)
    names = (*WAYS, TREE, BLOCKS)
    read, cells = ({name: measured.one(f"{what}: {name}") for name in names} for what in (READ, CELLS))

    def taken(name: str, kind: str) -> str:
        if name not in WAYS or not places[kind]:
            return "–"
        return str(figure("", [1000 * seconds for seconds in first(name, kind)], "ms"))

    rows = (
        {
            tr("cache"): tr(name),
            tr("prompt tokens read"): f"{read[name]:,.0f}",
            tr("cells"): f"{cells[name]:,.0f}",
            tr("first token, chat"): taken(name, "chat"),
            tr("first token, branch"): taken(name, "branch"),
        }
        for name in names
    )
    same = [measured.one(f"{TOKEN}: {WHOLE}", x) == measured.one(f"{TOKEN}: {SHARED}", x) for x in kinds]
    saves = over["chat"].holds
    like_tree = read[SHARED] == read[TREE]
    series = [
        curve(tr(way), [(x + 1, measured.figure("", f"{FIRST}: {way}", x, scale=1000)) for x in kinds]) for way in WAYS
    ]
    branch = ""
    if "branch" in over:
        branch = tr(", that of a branch {ratio} times").format(ratio=over["branch"])
    return Result(
        Verdict(
            f"sharing saves {'time' if saves else 'no time'};"
            f" as many tokens as in SGLang's tree: {'yes' if like_tree else 'no'}",
            tr(
                "{n} prompts with {system:,.0f} tokens in common: {whole:,.0f} tokens are read where each prompt is"
                " read whole, and {shared:,.0f} with the common prefix shared (SGLang's tree: {tree:,.0f}, vLLM's"
                " blocks of 16: {blocks:,.0f}, both simulated), into {cells_whole:,.0f} and {cells_shared:,.0f} cells."
                " Read whole, the first token of a chat takes {chat} times as long{branch}."
            ).format(
                n=len(kinds),
                system=values["system"],
                whole=read[WHOLE],
                shared=read[SHARED],
                tree=read[TREE],
                blocks=read[BLOCKS],
                cells_whole=cells[WHOLE],
                cells_shared=cells[SHARED],
                chat=over["chat"],
                branch=branch,
            ),
            (
                tr("Yes: without sharing, a chat's first token takes {ratio} times as long.")
                if saves
                else tr("No: without sharing, a chat's first token takes {ratio} times as long.")
            ).format(ratio=number_text(over["chat"].value, 2)),
        ),
        figures=tuple(over.values()),
        plots=(Plot(tr("Time to the first token"), tr("prompt, in order"), tr("ms"), tuple(series)),),
        tables=(Table.of(tr("Prompts that begin alike"), rows),),
        remarks=(
            tr(
                "The first token is the same in {same} of {n} prompts: a shorter batch adds up in another order, so"
                " that logits differ by rounding."
            ).format(same=sum(same), n=len(same)),
            tr("The first prompt finds nothing in either way: read whole it takes {ratio} times as long.").format(
                ratio=over["first"]
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="prefix-sharing",
    title=marked("Sharing a prefix"),
    question=marked("What does SGLang's tree of prefixes save with llama.cpp?"),
    supposed=marked("Prompts with a common beginning are computed once, which saves computing and memory."),
    parameters=PARAMETERS,
    settings=_settings,
    work=lambda values: Work(
        values["rounds"]
        * (
            (values["chats"] + values["forks"]) * (values["system"] + 2 * values["prompt"])
            + values["system"]
            + (values["chats"] + values["forks"]) * values["prompt"]
        ),
        0,
    ),
    measure=_measure,
    answer=_answer,
    applies=needs_prefixes,
)
