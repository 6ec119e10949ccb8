"""`python -m tests.benchmarks.prompts settings|batches|builds|programs [--model FILE]`: what reads prompts faster.

settings   how weights and contexts can be made, each over how kvdesk makes them: bare contexts, a new one each time
batches    the same with sizes of n_ubatch, on a longer prompt
builds     kvdesk's settings with other builds of the engine's libraries
programs   kvdesk's whole way from a request to its tokens over llama-bench

What is compared takes turns, who begins changes. Ratios are made within a round, above 1 is faster.
"""

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

import numpy as np

from kvdesk import paths
from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.model import Model
from kvdesk.experiments.bench import ONE_THREAD, STEADY, uncollected
from kvdesk.experiments.benchmarks.engine import first_token_s, prompt_of_size, wrote_tok_s
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.statistics import geometric_mean
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CacheType, ContextSettings

SETTINGS: Final = ContextSettings(n_ctx=4096, n_seq_max=2)
USUAL: Final = "as kvdesk"
MADV_COLLAPSE: Final = 25
"""madvise(2), Linux 6.1: pages become huge ones at once."""
HUGE: Final = 2 << 20
LLAMA_LOAD_MODE_NONE: Final = 0
WARM_UP: Final = 32
LLAMA_BENCH: Final = "llama-bench"


class Way(NamedTuple):
    """How a context is made. load: fields of llama_model_params; huge: its weights lie in huge pages."""

    name: str
    context: Mapping[str, object] = {}
    load: Mapping[str, object] = {}
    huge: bool = False


WAYS: Final = (
    Way(USUAL),
    Way("flash attention off", {"flash_attn": False}),
    Way("K and V as f32", {"type_k": CacheType.F32, "type_v": CacheType.F32}),
    Way("K and V as q8_0", {"type_k": CacheType.Q8_0, "type_v": CacheType.Q8_0}),
    Way("1 thread", {"n_threads": 1, "n_threads_batch": 1}),
    Way("not mapped", load={"load_mode": LLAMA_LOAD_MODE_NONE}),
    Way("not repacked", load={"use_extra_bufts": False}),
    Way("huge pages", load={"load_mode": LLAMA_LOAD_MODE_NONE}, huge=True),
)
UBATCHES: Final = (
    Way(USUAL),
    *(Way(f"n_ubatch {n}", {"n_ubatch": n, "n_batch": max(n, SETTINGS.n_batch)}) for n in (128, 256, 1024)),
)

Clock = Callable[[], float]
Found = dict[str, dict[str, list[float]]]
"""tok/s of each round, by what was done and how."""


class Work(NamedTuple):
    """Tokens of the prompt, those in the cache before it is read again, and those that are then written."""

    prompt: int
    depth: int
    written: int


class Ways:
    """Ways to make contexts of one model's file. Each way to load it is loaded once. clock: seconds, by which all is
    measured.
    """

    def __init__(self, path: Path, ways: Sequence[Way], work: Work, settings: ContextSettings, clock: Clock) -> None:
        self._ways, self._work, self._settings, self._clock = ways, work, settings, clock
        self._models: dict[str, Model] = {}
        for way in ways:
            if self._key(way) not in self._models:
                with _defaults(way.load), _collapsed() if way.huge else nullcontext():
                    self._models[self._key(way)] = Model(path)
        n_vocab = self._models[self._key(ways[0])].vocab.n_tokens
        self._tokens = np.random.default_rng(17).integers(3, n_vocab, work.prompt).tolist()

    def round(self, number: int, found: Found) -> None:
        turn = number % len(self._ways)
        for way in [*self._ways[turn:], *self._ways[:turn]]:
            for what, tok_s in self._measured(way).items():
                found.setdefault(what, {}).setdefault(way.name, []).append(tok_s)

    def _measured(self, way: Way) -> dict[str, float]:
        prompt, depth, written = self._work
        settings = self._settings.model_copy(update=dict(way.context))
        with closing(RawContext(self._models[self._key(way)], settings)) as context:
            context.read(self._tokens[:WARM_UP], 0)
            context.clear()
            told = {f"read {prompt:,}": prompt / self._seconds(context, self._tokens, 0)}
            if depth:
                self._deepened(context)
                told[f"read {prompt:,} behind {depth:,}"] = prompt / self._seconds(context, self._tokens, depth)
                context.seq_rm(0, depth, -1)
            if written:
                seconds = [self._seconds(context, [token], depth + i) for i, token in enumerate(self._tokens[:written])]
                told[f"write behind {depth:,}"] = 1 / statistics.median(seconds)
        return told

    def _seconds(self, context: RawContext, tokens: Sequence[int], start: int) -> float:
        began = self._clock()
        context.read(tokens, start)
        return self._clock() - began

    def _deepened(self, context: RawContext) -> None:
        """The cells of the prompt again and again, one behind the other: what they hold makes no difference in time."""
        prompt, depth, _ = self._work
        state = context.saved(0)
        for start in range(prompt, depth, prompt):
            context.restore(1, state, self._tokens)
            context.seq_add(1, 0, -1, start)
            context.seq_cp(1, 0)
            context.seq_rm(1)
        context.read(self._tokens[:1], depth)  # what was moved is turned by the next decode
        context.seq_rm(0, depth, -1)

    def _key(self, way: Way) -> str:
        return json.dumps([way.load, way.huge])


@contextmanager
def _defaults(changes: Mapping[str, object]) -> Iterator[None]:
    """llama_model_default_params with these fields."""
    made = lib.llama_model_default_params

    def changed() -> object:
        params = made()
        for name, value in changes.items():
            setattr(params, name, value)
        return params

    with patch.object(lib, "llama_model_default_params", changed):
        yield


@contextmanager
def _collapsed() -> Iterator[None]:
    """What is allocated meanwhile lies in huge pages afterwards, as far as the system does that."""
    before = set(_mapped())
    yield
    libc, n, refused = ctypes.CDLL(None, use_errno=True), 0, 0
    for start, end in _mapped():
        first, last = -(-start // HUGE) * HUGE, end // HUGE * HUGE
        if (start, end) in before or last - first < 8 * HUGE:
            continue
        if libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_COLLAPSE) == 0:
            n += (last - first) // HUGE
        else:
            refused = ctypes.get_errno()
    told = re.search(r"AnonHugePages:\s+(\d+) kB", Path("/proc/self/smaps_rollup").read_text())
    assert told is not None
    sys.stderr.write(f"{n} huge pages, {int(told[1]) >> 10} MiB in them, last refusal: {os.strerror(refused)}\n")


def _mapped() -> list[tuple[int, int]]:
    """Memory of this process that may be written and has no file."""
    found = re.findall(r"(?m)^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*$", Path("/proc/self/maps").read_text())
    return [(int(start, 16), int(end, 16)) for start, end in found]


class Programs:
    """kvdesk and llama-bench."""

    def __init__(self, headless: HeadlessEngine, path: Path, program: Path, n_tokens: int) -> None:
        self._headless, self._path, self._program, self._n_tokens = headless, path, program, n_tokens
        self._request = prompt_of_size(headless, n_tokens)

    def round(self, number: int, found: Found) -> None:
        ways = [("kvdesk", self._kvdesk), (LLAMA_BENCH, self._bench)]
        for name, measure in ways if number % 2 == 0 else reversed(ways):
            for what, tok_s in measure().items():
                found.setdefault(what, {}).setdefault(name, []).append(tok_s)

    def _kvdesk(self) -> dict[str, float]:
        read = self._n_tokens / first_token_s(self._headless, self._request)
        return {f"read {self._n_tokens:,}": read, "write": wrote_tok_s(self._headless)}

    def _bench(self) -> dict[str, float]:
        sizes = ["-p", str(self._n_tokens), "-n", "32", "-t", str(SETTINGS.n_threads)]
        command = [str(self._program), "-m", str(self._path), *sizes, "-r", "1", "--no-warmup", "-o", "json"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {
            f"read {test['n_prompt']:,}" if test["n_prompt"] else "write": float(test["avg_ts"])
            for test in json.loads(said)
        }


class Builds:
    """kvdesk's way with its own libraries, and with other builds of them, each time in a process of its own."""

    def __init__(self, folders: Mapping[str, Path], arguments: Sequence[str]) -> None:
        self._folders: list[tuple[str, Path | None]] = [(USUAL, None), *folders.items()]
        self._command = [sys.executable, "-m", "tests.benchmarks.prompts", "settings", "--rounds", "1", "--json"]
        self._command += ["--only", USUAL, *arguments]

    def round(self, number: int, found: Found) -> None:
        turn = number % len(self._folders)
        for name, folder in [*self._folders[turn:], *self._folders[:turn]]:
            env = {**os.environ, **({"LLAMA_CPP_LIB_PATH": str(folder)} if folder else {})}
            said = subprocess.run(self._command, env=env, capture_output=True, text=True, check=True).stdout
            for what, ways in json.loads(said).items():
                found.setdefault(what, {}).setdefault(name, []).extend(ways[USUAL])


def lines(found: Found, base: str) -> Iterator[str]:
    for what, ways in found.items():
        for name, values in ways.items():
            against = ""
            if name != base:
                ratio, low, high = geometric_mean([a / b for a, b in zip(values, ways[base], strict=False)])
                against = f"  over {base} {ratio:.3f} [{low:.3f}, {high:.3f}]"
            yield f"{what:<24} {name:<20} {statistics.median(values):8.1f} tok/s{against}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What reads prompts and writes faster.")
    parser.add_argument("what", choices=("settings", "batches", "builds", "programs"))
    parser.add_argument("--model", type=Path, default=paths.embedded_model())
    parser.add_argument("--rounds", type=int, default=5, help="at most")
    parser.add_argument("--minutes", type=float, default=10.0, help="no round is begun afterwards, but the first")
    parser.add_argument("--tokens", type=int, default=512, help="of a prompt")
    parser.add_argument("--depth", type=int, default=2048, help="tokens before it, a multiple of its own")
    parser.add_argument("--only", nargs="*", help="these settings, beside kvdesk's")
    parser.add_argument("--processor", action="store_true", help="one thread, and the time of the processor")
    parser.add_argument("--llama-bench", type=Path, help="the program")
    parser.add_argument("--libraries", nargs="*", default=(), metavar="NAME=FOLDER", help="other builds of them")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    found: Found = {}
    began = time.monotonic()
    with uncollected(), closing(HeadlessEngine()) as headless:
        measured, base = _chosen(options, headless)
        for number in range(options.rounds):
            if number and time.monotonic() - began > 60 * options.minutes:
                break
            measured.round(number, found)
            if not options.json:
                sys.stdout.write(f"{number + 1} rounds, {time.monotonic() - began:.0f} s\n")
                sys.stdout.write("\n".join(lines(found, base)) + "\n")
                sys.stdout.flush()
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
    return 0


def _chosen(options: argparse.Namespace, headless: HeadlessEngine) -> tuple[Ways | Builds | Programs, str]:
    """What is measured, and what it is compared with."""
    if options.what == "programs":
        headless.do(UsePolicy(STEADY))
        headless.do(LoadModel(LocalFile(options.model), SETTINGS))
        session_of(headless).loaded.model.vocab.ignore_eog()
        return Programs(headless, options.model, options.llama_bench, options.tokens), LLAMA_BENCH
    if options.what == "builds":
        folders = {name: Path(folder) for name, folder in (text.split("=", 1) for text in options.libraries)}
        arguments = ["--model", options.model, "--tokens", options.tokens, "--depth", options.depth]
        return Builds(folders, [*map(str, arguments), *["--processor"] * options.processor]), USUAL
    settings = SETTINGS.model_copy(update=ONE_THREAD) if options.processor else SETTINGS
    clock = time.process_time if options.processor else time.perf_counter
    ways: Sequence[Way] = WAYS
    work = Work(options.tokens, options.depth, 16)
    if options.what == "batches":
        ways, work = UBATCHES, Work(2 * options.tokens, 0, 0)
    chosen = [way for way in ways if way.name == USUAL or not options.only or way.name in options.only]
    return Ways(options.model, chosen, work, settings, clock), USUAL


if __name__ == "__main__":
    sys.exit(main())
