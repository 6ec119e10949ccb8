"""`python -m tests.benchmarks.drafts [--model FILE] [--llama-server FILE]`: what drafts give, and what they cost.

Three texts: prose, the edit of a program of 300 lines, JSON from a schema. Of each, rounds of answers in turns: without
drafts, with them, a bare loop that verifies the drafts of the last answer with them and samples with the same sampler,
and with `--llama-server FILE` that server with each of `SPEC_TYPES`. Prompts are read once, only writing is timed:
tokens after the first, a second. Ratios are made within a round. At the end those of the three texts together: the
geometric mean, round by round, over llama-server also with the type that is best for each text.
"""

import argparse
import ctypes
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import numpy as np
from numpy.typing import NDArray

from kvdesk import paths
from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.memory.decodes import DecodeKind, PendingDecode
from kvdesk.backends.local.llama.samplers.grammar_sampler import sampler_of
from kvdesk.backends.local.llama.samplers.sampler import plan_sampling
from kvdesk.cache.batch import Batch
from kvdesk.experiments.bare_context import BareContext
from kvdesk.experiments.bench import uncollected
from kvdesk.experiments.statistics import geometric_mean
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.message import ConversationId, Message, TurnStats, new_conversation_id, new_message_id
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import CloseConversation, Generate, LoadModel, TurnEnded
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.operations import ClearCache, Operate
from kvdesk.settings import CachePolicy, ContextSettings, Sampling
from tests.benchmarks.peers.started_server import StartedServer, llama_server

SPEC_TYPES: Final = ("none", "ngram-simple")
"""Without `ngram-mod`, which drafts the answers of earlier rounds: it keeps n-grams of all requests."""
SERVER: Final = "server"
WITHOUT, WITH, BARE = "without", "with", "bare loop"
SETTINGS: Final = ContextSettings(n_ctx=8192, n_seq_max=2)
_PROGRAM: Final = Path(__file__).with_name("edited_program.txt")
"""300 lines that stay the same, unlike a module of kvdesk, so that figures of two versions can be compared."""
_PEOPLE: Final = "; ".join(
    f"{name} from {town}, born {year}, who {works}"
    for name, town, year, works in (
        ("Ada Berg", "Oslo", 1971, "builds boats"),
        ("Ben Costa", "Porto", 1984, "bakes bread"),
        ("Cleo Dunn", "Cork", 1990, "mends clocks"),
        ("Dov Eder", "Graz", 1966, "teaches music"),
        ("Eva Falk", "Lund", 1978, "paints houses"),
        ("Finn Gray", "Perth", 1995, "drives a tram"),
        ("Gus Hahn", "Bern", 1959, "grows apples"),
        ("Ida Ito", "Kobe", 1988, "writes letters"),
    )
)
_SCHEMA: Final = {
    "type": "array",
    "minItems": 8,
    "maxItems": 8,
    "items": {
        "type": "object",
        "properties": {
            "full_name": {"type": "string"},
            "home_town": {"type": "string"},
            "year_of_birth": {"type": "integer"},
            "occupation": {"type": "string"},
        },
        "required": ["full_name", "home_town", "year_of_birth", "occupation"],
        "additionalProperties": False,
    },
}


class Text(NamedTuple):
    """What is asked; `schema`: JSON that the answer has to follow, "" none."""

    question: str
    schema: str = ""


def texts() -> dict[str, Text]:
    program = _PROGRAM.read_text(encoding="utf-8").rstrip("\n")
    asked = "Rename `request` to `asked` everywhere in this program. Answer with the whole program."
    edit = f"{asked}\n```python\n{program}\n```"
    return {
        "prose": Text("Write a long story about a lighthouse keeper who finds a letter in a bottle."),
        "edit": Text(edit),
        "json": Text(f"Write these people as JSON: {_PEOPLE}.", json.dumps(_SCHEMA)),
    }


class Parting(NamedTuple):
    """Where the answers with and without drafts go apart, token number `n`. The bare context computes its logits again:
    alone as without, and in the batch that it was in. apart_*: those of the token of the answer without, over those of
    the one with; moved: the largest difference of a logit between both.
    """

    n: int
    apart_alone: float
    apart_in_batch: float
    moved: float

    def __str__(self) -> str:
        return (
            f"From token {self.n} on they differ: the logits of both are {self.apart_alone:+.4f} apart alone and "
            f"{self.apart_in_batch:+.4f} in the batch, which moves logits by up to {self.moved:.4f}."
        )


@dataclass(slots=True)
class Told:
    """tok/s of the answers in each round, by who wrote them; of the last one with drafts what became of them."""

    tok_s: dict[str, list[float]] = field(default_factory=dict)
    same: list[bool] = field(default_factory=list)
    last: TurnStats | None = None
    parting: Parting | None = None

    def ratios(self, under: str) -> list[float]:
        """With drafts over another way, round by round."""
        return [a / b for a, b in zip(self.tok_s[WITH], self.tok_s[under], strict=True)]

    @property
    def best_server(self) -> str:
        """The server's way that is the fastest here; "" without a server."""
        servers = [name for name in self.tok_s if name.startswith(SERVER)]
        return max(servers, key=lambda name: statistics.median(self.tok_s[name]), default="")


class Writer:
    """kvdesk's engine, and a bare context of the same model."""

    def __init__(self, headless: HeadlessEngine, bare: BareContext, text: Text, n_tokens: int) -> None:
        self._headless, self._bare, self._text = headless, bare, text
        schema = {"json_schema": text.schema} if text.schema else {}
        self._sampling = Sampling(temperature=0.0, max_tokens=n_tokens, **schema)
        self._batches: list[tuple[int, Sequence[int]]] = []
        self._before: ConversationId | None = None
        self._n_read = 0  # tokens of the prompt that the bare context has
        self.tokens: dict[str, tuple[int, ...]] = {}
        self.stats: TurnStats | None = None

    def answer(self, *, drafts: bool) -> float:
        """tok/s."""
        headless, conversation = self._headless, new_conversation_id()
        headless.do(UsePolicy(CachePolicy(drafts=drafts, auto_compact=False, follow_load=False)))
        question = Message(new_message_id(), conversation, None, "user", self._text.question)
        asked = Generate(conversation, new_message_id(), (question,), self._sampling)
        batches: list[tuple[int, Sequence[int]]] = []
        with self._watched(batches):
            events = headless.do(asked)
        ended = next(event for event in events if isinstance(event, TurnEnded))
        if self._before is not None:  # it had the cells of the prompt, which were shared
            headless.do(CloseConversation(self._before))
        self._before = conversation
        sequence = session_of(headless).runtime.cache_manager.pool.get(conversation)
        self.tokens[WITH if drafts else WITHOUT] = tuple(sequence.tokens)
        if drafts:
            self._batches, self.stats = batches, ended.stats
        return ended.stats.decode_tok_s

    def verify(self, most: int | None = None) -> float:
        """The batches of the last answer with drafts again, `most` at most, each row sampled up to the first that is
        another; what the answer removed is removed. tok/s.
        """
        bare, memory = self._bare, lib.llama_get_memory(self._bare.ctx)
        prompt, vocab = self._prompt_read(), session_of(self._headless).loaded.model.vocab
        sampler = sampler_of(plan_sampling(self._sampling, vocab), vocab, prompt, self._batches[0][1][:1])
        n_tokens, began = 0, time.perf_counter()
        end = 0
        for at, tokens in self._batches[:most]:
            if at < end:
                lib.llama_memory_seq_rm(memory, 0, at, -1)
            end = at + len(tokens)
            self._decode(at, tokens, logits=True)
            for row in range(len(tokens)):
                token = sampler.sample(bare.ctx, row)
                n_tokens += 1
                if row + 1 < len(tokens) and token != tokens[row + 1]:
                    break
        seconds = time.perf_counter() - began
        sampler.close()
        return n_tokens / seconds

    def parting(self) -> Parting | None:
        """None where the last answers with and without are the same, as far as both go."""
        with_, without = self.tokens[WITH], self.tokens[WITHOUT]
        end = next((i for i, (a, b) in enumerate(zip(with_, without, strict=False)) if a != b), None)
        if end is None:
            return None
        start = len(self._prompt_read())
        for at in range(start, end):
            self._decode(at, with_[at : at + 1], logits=True)
        alone = self._logits(0)
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._bare.ctx), 0, start, -1)
        for at, tokens in self._batches:
            self._decode(at, tokens, logits=True)
            pairs = enumerate(zip(tokens, with_[at:], strict=False))
            n_right = next((i for i, (token, right) in pairs if token != right), len(tokens))
            if at + n_right >= end:
                break
            lib.llama_memory_seq_rm(lib.llama_get_memory(self._bare.ctx), 0, at + n_right, -1)
        in_batch = self._logits(end - 1 - at)
        apart_alone, apart_in_batch = (float(row[without[end]] - row[with_[end]]) for row in (alone, in_batch))
        return Parting(end - start + 1, apart_alone, apart_in_batch, float(np.abs(alone - in_batch).max()))

    def _prompt_read(self) -> tuple[int, ...]:
        """The prompt, of which the bare context has the cells and no others: those of kvdesk's context."""
        (start, _), runtime = self._batches[0], session_of(self._headless).runtime
        if self._n_read != start:
            assert self._before is not None
            sequence = runtime.cache_manager.pool.get(self._before)
            ctx = runtime.context.memory.ctx
            state = (ctypes.c_uint8 * lib.llama_state_seq_get_size(ctx, sequence.seq_id))()
            n_bytes = lib.llama_state_seq_get_data(ctx, state, len(state), sequence.seq_id)
            self._bare.clear()
            if lib.llama_state_seq_set_data(self._bare.ctx, state, n_bytes, 0) != n_bytes:
                raise RuntimeError("llama_state_seq_set_data failed in the bare loop")
            self._n_read = start
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._bare.ctx), 0, start, -1)
        return self.tokens[WITH][:start]

    def _logits(self, row: int) -> NDArray[np.float32]:
        """Of this token of the last batch, shape (n_vocab,)."""
        n_vocab = session_of(self._headless).loaded.model.vocab.n_tokens
        return np.ctypeslib.as_array(lib.llama_get_logits_ith(self._bare.ctx, row), shape=(n_vocab,)).copy()

    def _decode(self, at: int, tokens: Sequence[int], *, logits: bool) -> None:
        for i, token in enumerate(tokens):
            self._bare.put(i, token, at + i, 0, logits=logits)
        if self._bare.run(len(tokens)) != 0:
            raise RuntimeError("llama_decode failed in the bare loop")

    @contextmanager
    def _watched(self, batches: list[tuple[int, Sequence[int]]]) -> Iterator[None]:
        """The batches of an answer are written down: position and tokens."""
        cache = session_of(self._headless).runtime.cache_manager
        decode = cache.decode

        def seen(parts: Sequence[tuple[Any, Batch]], kind: DecodeKind = "decode") -> PendingDecode:
            if kind in ("decode", "draft"):
                batches.extend((batch.pos[0], batch.tokens) for _, batch in parts)
            return decode(parts, kind)

        cache.decode = seen  # type: ignore[method-assign]
        try:
            yield
        finally:
            del cache.decode


def served(server: StartedServer, text: Text, n_tokens: int) -> float:
    """tok/s as llama-server tells them."""
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": text.question}],
        "max_tokens": n_tokens,
        "temperature": 0.0,
    }
    if text.schema:
        request["json_schema"] = json.loads(text.schema)
    answer = httpx2.post(f"{server.url}/chat/completions", json=request, timeout=600.0)
    answer.raise_for_status()
    return float(answer.json()["timings"]["predicted_per_second"])


def measure(
    headless: HeadlessEngine,
    bare: BareContext,
    text: Text,
    servers: Mapping[str, StartedServer],
    *,
    n_tokens: int,
    rounds: int,
    until: float,
) -> Told:
    """Rounds in turns: who begins changes, and every other round goes backwards, so that each way follows each. None is
    begun after `until` (time.monotonic), but the first.
    """
    writer, told = Writer(headless, bare, text, n_tokens), Told()
    ways: list[tuple[str, Callable[[], float]]] = [
        (WITH, lambda: writer.answer(drafts=True)),
        (WITHOUT, lambda: writer.answer(drafts=False)),
        (BARE, writer.verify),
        *((name, lambda server=server: served(server, text, n_tokens)) for name, server in servers.items()),
    ]
    headless.do(Operate(ClearCache(), measured=False))
    writer.answer(drafts=True)  # reads the prompt, and learns what batches cost
    writer.verify(2)
    for server in servers.values():
        served(server, text, 4)
    for number in range(rounds):
        if number and time.monotonic() > until:
            break
        turn = number % len(ways)
        order = [*ways[turn:], *ways[:turn]]
        for name, way in reversed(order) if number % 2 else order:
            told.tok_s.setdefault(name, []).append(way())
        told.same.append(writer.tokens[WITH] == writer.tokens[WITHOUT])
    told.last, told.parting = writer.stats, writer.parting()
    return told


def line(name: str, who: str, tok_s: float | None, ratios: Sequence[float]) -> str:
    """One row of the table: `ratios` of rounds, with drafts over this way; () if it is that way."""
    speed = "" if tok_s is None else f"{tok_s:.2f} tok/s"
    against = ""
    if ratios:
        ratio, low, high = geometric_mean(ratios)
        against = f"  with over it {ratio:.3f} [{low:.3f}, {high:.3f}]"
    return f"{name:<6} {who:<20} {speed:>14}{against}"


def lines(name: str, told: Told) -> Iterator[str]:
    for who, values in told.tok_s.items():
        yield line(name, who, statistics.median(values), told.ratios(who) if who != WITH else ())
    yield f"{name:<6} {told.last.draft_why} Same tokens in {sum(told.same)} of {len(told.same)} rounds."
    if told.parting is not None:
        yield f"{name:<6} {told.parting}"


def together(found: Sequence[Told]) -> Iterator[str]:
    """The geometric mean over the texts, in the rounds that all of them have."""

    def mean(ways: Sequence[str]) -> list[float]:
        of_texts = (told.ratios(way) for told, way in zip(found, ways, strict=True))
        return [statistics.geometric_mean(ratios) for ratios in zip(*of_texts, strict=False)]

    for who in found[0].tok_s:
        if who != WITH:
            yield line("all", who, None, mean([who] * len(found)))
    best = [told.best_server for told in found]
    if all(best):
        yield line("all", f"{SERVER}, best of each", None, mean(best))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What drafts give, and what they cost.")
    parser.add_argument("--model", type=Path, default=paths.embedded_model())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no round is begun afterwards, but the first of a text"
    )
    parser.add_argument("--tokens", type=int, default=400, help="of an answer")
    parser.add_argument("--only", nargs="*", choices=tuple(texts()), default=tuple(texts()))
    parser.add_argument("--llama-server", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    found, began = {}, time.monotonic()
    with ExitStack() as stack:
        headless = stack.enter_context(closing(HeadlessEngine()))
        headless.do(LoadModel(LocalFile(options.model), SETTINGS))
        bare = stack.enter_context(closing(BareContext(session_of(headless).loaded.model, SETTINGS)))
        stack.enter_context(uncollected())
        servers = {}
        for kind in SPEC_TYPES if options.llama_server is not None else ():
            server = llama_server(options.llama_server, options.model, SETTINGS, ("--spec-type", kind))
            servers[f"{SERVER}, {kind}"] = stack.enter_context(closing(server))
        for number, name in enumerate(options.only, 1):
            until = began + 60 * options.minutes * number / len(options.only)
            size = {"n_tokens": options.tokens, "rounds": options.rounds}
            found[name] = told = measure(headless, bare, texts()[name], servers, **size, until=until)
            if not options.json:
                sys.stdout.write("\n".join(lines(name, told)) + "\n")
                sys.stdout.flush()
        seconds = time.monotonic() - began
    if options.json:
        numbers = {name: {"tok_s": told.tok_s, "same": told.same} for name, told in found.items()}
        sys.stdout.write(json.dumps(numbers) + "\n")
    else:
        sys.stdout.write("\n".join([*together(list(found.values())), f"{seconds / 60:.1f} minutes"]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
