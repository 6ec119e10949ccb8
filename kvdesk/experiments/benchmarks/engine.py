"""`kvdesk bench engine`: the engine with inspection on against the barest loop and against `Llama`, in one run.

Every figure that is judged is a ratio of runs that took turns, so that a machine whose speed drifts changes both.
Inspection: every decode is mirrored and compared with what llama.cpp printed. What it costs when somebody looks as
well, 15 views a second, is measured beside it; `kvdesk bench ui` judges that with the window that draws them.
"""

import bisect
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from kvdesk.backends.local.llama.binding import engine_log
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.process.backend import ProcessBackend
from kvdesk.children.entry import Parent
from kvdesk.children.process import Child, child_command
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.baselines import BareLoop, LlamaClass
from kvdesk.experiments.benchmarks.interleaved import six_requests
from kvdesk.experiments.benchmarks.requests import QUESTION, REQUEST, answered, asked, turns
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import SURE, error, most_rounds, ratio, ratio_at_least, slowest_over_fastest
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import TurnStats
from kvdesk.protocol.cache import RebuildContext, Watch
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.experiment import Figure
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings, Sampling

GREEDY = Sampling(temperature=0.0, max_tokens=128)
SHORT = Sampling(temperature=0.0, max_tokens=32)
"""Of answers whose speed is compared: many short pairs tell more in the same time than few long ones, since a machine's
speed jumps by a fifth from one second to the next (standard deviation of the ratio of neighbours: 0.17 for answers of
32 tokens, 0.20 for those of 128).
"""
FIRST = Sampling(temperature=0.0, max_tokens=1)
READ = {512: 2, 2048: 1}
"""Lengths of the prompts whose prefill is measured, in tokens, and how often in a context."""
CONTEXTS = 2
"""New ones for each round: where the memory of one lies is worth 10 % of a prompt's time, for as long as it is held."""
LLAMA_DEFAULTS = {"n_batch": 2048, "n_ubatch": 512, "exact": False}
"""llama_context_default_params (llama-context.cpp)."""
MOST_TURNS, LEAST_TURNS = 5, 2
"""Answers of each contender in a context; between them, as many as take TURNS_S; in a single round the least."""
TURNS_S = 2.5
SETTLED_S = 0.3
"""Between two answers. What one leaves to be done after it is the next one's load otherwise, and that follows the load:
it begins with fewer threads while another process computes, as the engine of safe mode is one.
"""
JUDGED = (("engine", "bare"), ("engine", "llama"), ("safe", "bare"), ("probabilities", "engine"))
"""The contenders whose ratio of speeds has a bar."""
SIX_ROUNDS = 3
"""How often the six requests are made: single ones differ by as much as the machine's speed jumps."""

ROWS = ("prefill", "decode", "six-requests", "turns", "memory")
"""What can be measured alone."""


def run(
    path: Path, settings: ContextSettings, rounds: int, say: Callable[[str], None], only: Sequence[str] = ()
) -> dict[str, object]:
    """Run everything, or the rows of `only`; returns figures, the values behind them, and whether each bar was reached.

    `rounds`: at least; speeds are compared until their ratios are known to SURE, at most `most_rounds`. In a single
    round, as those of `--against` are, each figure is measured once.
    """
    wanted = set(only) or set(ROWS)
    figures: list[Figure] = []
    values: dict[str, object] = {}
    bench = Bench(path, settings, {"rounds": rounds}, say=say)
    with bench.engine(CachePolicy()) as headless:
        _answer_at_length(headless)
        info = session_of(headless).runtime.info
        if "prefill" in wanted:
            reading = _prefill_speeds(headless, bench)
            figures += [ratio_at_least(f"prefill_{n}_vs_bare_loop", 0.97, *sides) for n, sides in reading.items()]
            values["prefill_tok_s"] = {
                n: {"engine": [round(v, 1) for v in ours], "bare": [round(v, 1) for v in theirs]}
                for n, (ours, theirs) in reading.items()
            }
        if "decode" in wanted:
            speeds = _decode_speeds(headless, bench)
            figures += [
                ratio_at_least("decode_vs_bare_loop", 0.97, speeds["engine"], speeds["bare"]),
                ratio_at_least("decode_in_safe_mode_vs_bare_loop", 0.97, speeds["safe"], speeds["bare"]),
                ratio_at_least("decode_with_probabilities_vs_engine", 0.98, speeds["probabilities"], speeds["engine"]),
                ratio_at_least("decode_vs_llama_class", 1.0, speeds["engine"], speeds["llama"]),
            ]
            values["watched_vs_engine"] = round(ratio(speeds["watched"], speeds["engine"]), 4)
            values["decode_tok_s"] = {name: [round(v, 1) for v in found] for name, found in speeds.items()}
        if "six-requests" in wanted:
            six = six_requests(headless, SIX_ROUNDS if rounds > 1 else 1, SHORT)
            for seconds, _ in six:
                say("six equal requests: " + ", ".join(f"{s:.2f} s" for s in seconds))
            slowest, machine = slowest_over_fastest(six)
            over = Figure("six_requests_slowest_over_fastest_over_bare", slowest / machine)
            figures.append(over.at_most(1.15))
            values["six_requests"] = {
                "slowest_over_fastest": round(slowest, 3),
                "slowest_over_fastest_of_a_bare_loop": round(machine, 3),
                "seconds": [[round(s, 3) for s in seconds] for seconds, _ in six],
                "seconds_of_a_bare_loop": [[round(s, 3) for s in empty] for _, empty in six],
            }
        if "turns" in wanted:
            last, n_new = _fifth_turn(headless)
            say(f"turn 5: {last.reused_tokens} reused, {last.prefilled_tokens} prefilled of {n_new} new")
            figures.append(Figure("turn_5_prefilled_over_new", last.prefilled_tokens / n_new).at_most(1.0))
            values["turn_5"] = {"reused_tokens": last.reused_tokens, "prefilled_tokens": last.prefilled_tokens}
    values["audit"] = bench.audited
    if "memory" in wanted:
        allowed = path.stat().st_size + _repacked_bytes(path) + info.k_bytes + info.v_bytes + 300 * 2**20
        resident = _resident_bytes(path, settings)
        say(f"resident {resident / 2**20:.0f} MiB of {allowed / 2**20:.0f} MiB allowed")
        figures.append(Figure("resident_over_allowed", resident / allowed).at_most(1.0))
        values |= {"resident_bytes": resident, "allowed_bytes": allowed}
    outcome = Outcome(figures, values)
    return {**outcome.as_json(), "passed": outcome.passed and bench.audited == "verified"}


def _contexts(rounds: int) -> int:
    """New ones in each round."""
    return CONTEXTS if rounds > 1 else 1


def _answer_at_length(headless: HeadlessEngine) -> None:
    """From now on answers have the length that is asked for, whatever the model has to say."""
    session_of(headless).loaded.model.vocab.ignore_eog()


def _prefill_speeds(headless: HeadlessEngine, bench: Bench) -> dict[int, tuple[list[float], list[float]]]:
    """By length of the prompt: tok/s of the engine, and of the bare loop with llama.cpp's default sizes of batches.

    From the request to the first token, so template, tokenizer and what follows a decode count for the engine.
    """
    settings, rounds = bench.settings, bench.whole("rounds")
    wide = settings.model_copy(update={"n_ctx": settings.n_ctx and max(settings.n_ctx, max(READ) + 256)})
    requests = {n: prompt_of_size(headless, n) for n in READ}
    speeds: dict[int, tuple[list[float], list[float]]] = {n: ([], []) for n in READ}
    contexts = _contexts(rounds)
    for number in range(most_rounds(rounds)):
        if number >= rounds and all(error(ours, theirs) <= SURE for ours, theirs in speeds.values()):
            break
        for i in range(contexts):
            for n, sides in _prefill_in_one_context(headless, wide, requests, bare_first=i % 2 == 1).items():
                for side, values in zip(speeds[n], sides, strict=True):
                    side.extend(values)
        told = (f"{n} tokens {ours[-1]:.0f} tok/s, bare {theirs[-1]:.0f}" for n, (ours, theirs) in speeds.items())
        bench.say(f"prefill, round {number + 1}: " + "; ".join(told))
    headless.do(RebuildContext(settings))
    return speeds


def _prefill_in_one_context(
    headless: HeadlessEngine, settings: ContextSettings, requests: dict[int, str], *, bare_first: bool
) -> dict[int, tuple[list[float], list[float]]]:
    """By length of the prompt: tok/s of the engine and of the bare loop in a new context that they share, one after the
    other, the longest prompts next to each other. Runs in one context differ by 1 %, contexts by 10 %.

    The engine's batches are smaller than llama.cpp's by default: llama_decode computes `n_ubatch` tokens at once either
    way. Where the engine's `n_ubatch` is not llama.cpp's, the bare loop has a separate context. What the bare loop
    does in the engine's is not in its mirror: it leaves an empty cache behind if it runs first, else no answer follows.
    """
    headless.do(RebuildContext(settings))
    session = session_of(headless)
    defaults = settings.model_copy(update=LLAMA_DEFAULTS)
    shared = settings.graph_tokens == defaults.graph_tokens
    bare = BareLoop(session.loaded.model, defaults, ctx=session.runtime.context.memory.ctx if shared else None)
    prompts = {n: _prompt(headless, text) for n, text in requests.items()}
    runs = (lambda n: first_token_s(headless, requests[n]), lambda n: bare.seconds(prompts[n], 1))
    speeds: dict[int, tuple[list[float], list[float]]] = {n: ([], []) for n in requests}
    lengths = [n for n in sorted(READ) for _ in range(READ[n])]
    first = int(bare_first)
    try:
        runs[first](lengths[0])  # warms up
        for n in lengths:
            speeds[n][first].append(len(prompts[n]) / runs[first](n))
        if bare_first:
            bare.clear()
        for n in reversed(lengths):
            speeds[n][1 - first].insert(0, len(prompts[n]) / runs[1 - first](n))
    finally:
        bare.close()
    return speeds


def prompt_of_size(headless: HeadlessEngine, n_tokens: int) -> str:
    """The longest beginning of an endless text whose prompt has at most `n_tokens` tokens."""
    words = (REQUEST * (n_tokens // 20)).split()

    def size(n_words: int) -> int:
        return len(_prompt(headless, " ".join(words[:n_words])))

    return " ".join(words[: bisect.bisect_right(range(1, n_tokens), n_tokens, key=size)])


def _prompt(headless: HeadlessEngine, text: str) -> list[int]:
    """The tokens of a conversation that begins with this text, however many the context holds. Raises UserError."""
    prompts = session_of(headless).loaded.prompts
    if prompts is None:
        raise UserError("This model cannot chat, so its speed cannot be measured with conversations.")
    return prompts.tokens(asked(text, FIRST).messages)


def first_token_s(headless: HeadlessEngine, request: str) -> float:
    """Seconds to the first token of an answer, with nothing of its prompt in the cache."""
    stats = answered(headless, request, FIRST)
    if stats.reused_tokens:
        raise UserError("The cache was not empty: this is no prefill of a whole prompt.")
    return stats.ttft_ms / 1e3


def _decode_speeds(headless: HeadlessEngine, bench: Bench) -> dict[str, list[float]]:
    """Decode speeds in tok/s of the contenders, who take turns; who begins changes every time.

    All load the model and make new contexts, `_contexts` times in a round. Runs that are compared lie next to each
    other, since the machine's own speed drifts as well. Each context gives one value, the median of its runs: where its
    memory lies is worth more than what runs in it differ by. "safe" is the engine in a child process (safe mode).
    """
    path, settings, rounds, n = bench.path, bench.settings, bench.whole("rounds"), SHORT.max_tokens
    most = MOST_TURNS if rounds > 1 else LEAST_TURNS
    turns = max(LEAST_TURNS, min(most, round(TURNS_S * wrote_tok_s(headless, watched=False) / n)))
    prompt = _prompt(headless, QUESTION)
    names = ["engine", "bare", "llama", "watched", "safe", "probabilities"]
    safe = HeadlessEngine(make_backend=ProcessBackend)
    speeds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(_contexts(rounds) * most_rounds(rounds)):
        if number >= _contexts(rounds) * rounds and all(error(speeds[a], speeds[b]) <= SURE for a, b in JUDGED):
            break
        headless.do(LoadModel(LocalFile(path), settings))
        _answer_at_length(headless)
        safe.do(LoadModel(LocalFile(path), settings))
        bare, llama = BareLoop(session_of(headless).loaded.model, settings), LlamaClass(path, settings)
        runs: dict[str, Callable[[], float]] = {
            "engine": lambda: wrote_tok_s(headless, watched=False),
            "bare": lambda bare=bare: bare.decode_tok_s(prompt, n),  # type: ignore[misc]
            "llama": lambda llama=llama: llama.decode_tok_s(prompt, n),  # type: ignore[misc]
            "watched": lambda: wrote_tok_s(headless, watched=True),
            "safe": lambda: wrote_tok_s(safe, watched=False),
            "probabilities": lambda: wrote_tok_s(headless, watched=False, probabilities=True),
        }
        found: dict[str, list[float]] = {name: [] for name in names}
        try:
            for turn in range(turns + 1):
                first = (number + turn) % len(names)
                for name in names[first:] + names[:first]:
                    time.sleep(SETTLED_S)
                    found[name].append(runs[name]())
        finally:
            bare.close()
            llama.close()
        for name, values in found.items():
            speeds[name].append(statistics.median(values[1:]))  # the first warms up
        told = (f"{name} {values[-1]:.1f} tok/s" for name, values in speeds.items())
        bench.say(f"contexts, number {number + 1}: " + ", ".join(told))
    headless.do(Watch(snapshots=False))
    safe.close()
    return speeds


def wrote_tok_s(headless: HeadlessEngine, *, watched: bool = False, probabilities: bool = False) -> float:
    """Decode speed of one answer in an empty cache, as the other contenders have it."""
    headless.do(Watch(snapshots=watched))
    chat = HeadlessChat(headless, probabilities=probabilities)
    speed = chat.answer(QUESTION, SHORT).stats.decode_tok_s
    headless.do(CloseConversation(chat.id))
    return speed


def _fifth_turn(headless: HeadlessEngine) -> tuple[TurnStats, int]:
    """The fifth turn of a conversation, and how many tokens of its prompt were not in the cache when it began."""
    chat = HeadlessChat(headless, "You are brief.")
    turns(chat, range(1, 5), SHORT)
    sequence = session_of(headless).runtime.cache_manager.pool.get(chat.id)
    assert sequence is not None
    n_held = len(sequence.tokens)
    stats = turns(chat, [5], SHORT)
    return stats, stats.prompt_tokens - n_held


def _repacked_bytes(path: Path) -> int:
    """Bytes of the weights that llama.cpp copies into an order that suits this processor (Q4_0, say): they are in
    memory twice, since the file stays mapped.
    """
    log = engine_log()
    log.capture_start(everything=True)
    Model(path, lambda _: True).close()
    said = b"".join(log.capture_stop()).decode("utf-8", "replace")
    return sum(round(float(mib) * 2**20) for mib in re.findall(r"_REPACK model buffer size = +([\d.]+) MiB", said))


def _resident_bytes(path: Path, settings: ContextSettings) -> int:
    """Largest resident memory of a chat in a separate process, as that process sees it."""
    with Child(child_command("--chat-alone", str(path), settings.model_dump_json())) as child:
        return int(child.receive_value())


def chat_alone(parent: Parent, argv: Sequence[str]) -> int:
    """The child of `_resident_bytes`: one long prompt, one answer, then says its peak memory in bytes."""
    path, settings = argv
    headless = HeadlessEngine()
    headless.do(LoadModel(LocalFile(Path(path)), ContextSettings.model_validate_json(settings)))
    HeadlessChat(headless).answer(REQUEST * 8, GREEDY)
    headless.close()
    parent.send_value(_peak_bytes())
    return 0


def _peak_bytes() -> int:
    """Peak resident memory of this process. `ru_maxrss` would count the parent's memory from before the exec."""
    memory = psutil.Process().memory_info()
    if (peak_on_windows := getattr(memory, "peak_wset", 0)) > 0:
        return int(peak_on_windows)
    status = Path("/proc/self/status")
    if status.exists():
        highest = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(highest.split()[1]) * 1024
    return int(memory.rss)
