"""What HTTP costs: the same conversations through `kvdesk serve` and through its host, in turns; four clients at once.

Both ways ask the same engine, greedily, with beginnings of prompts that the other way does not share. A turn whose
answer came out with another number of tokens the other way is left out. Another server of the protocol can be put
beside (`peer`): it should have the same model and settings.
"""

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import httpx2

from kvdesk.errors import UserError
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import figure
from kvdesk.headless import running
from kvdesk.host.host import GIL_SWITCH_S, Host
from kvdesk.message import Message, MessageId, TurnStats, new_conversation_id, new_message_id
from kvdesk.protocol.chat import Client, Generate, TextDelta, TurnEnded
from kvdesk.protocol.experiment import Figure
from kvdesk.server.config import Key, ServerConfig, new_key
from kvdesk.server.server import Server
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.values import replace

TURNS: Final = 10
MAX_TOKENS: Final = 48
N_CLIENTS: Final = 4
HTTP_BAR, TOGETHER_BAR, PEER_BAR = 0.97, 0.95, 0.95
_WAIT_S: Final = 300.0
_SAMPLING: Final = Sampling(temperature=0.0, max_tokens=MAX_TOKENS)


class Turn(NamedTuple):
    """How long it took, and how many tokens its answer has."""

    seconds: float
    n_tokens: int


class Way(Protocol):
    """How conversations are asked."""

    def turns(self, k: int, n: int) -> Iterator[Turn]:
        """Conversation number `k` with the given number of turns. Raises UserError."""


def run(
    model: Path, context: ContextSettings, rounds: int, say: Callable[[str], None], peer: str = ""
) -> dict[str, object]:
    """Figures with their bars. `peer`: base address of another server of the protocol, such as http://…:8081/v1."""
    sys.setswitchinterval(GIL_SWITCH_S)
    with running(model, context) as host:
        key = Key(new_key(), "bench")
        with closing(Server(host, ServerConfig(port=0, keys=(key,), share_prefixes=False))) as server:
            server.start()
            figures, gain = _figures(_Direct(host), _Over(server.url, key.value), rounds, say)
            if peer:
                figures.append(_beside(_Over(server.url, key.value), _Over(peer, ""), rounds, say))
    return Outcome(figures, {"four at once over one after another": gain}).as_json()


def _figures(direct: Way, http: Way, rounds: int, say: Callable[[str], None]) -> tuple[list[Figure], float]:
    """Figures, and what four clients at once gain over one after another: that is the engine's, and judged by `bench
    cache`.
    """
    ratios, together, gains = [], [], []
    for k in range(rounds + 1):  # the first warms up
        ours, theirs = _by_turns(direct, http, k)
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.n_tokens == b.n_tokens]
        if k and pairs:
            ratios += [a.seconds / b.seconds for a, b in pairs]
            said = (sum(turn.seconds for turn in turns) for turns in zip(*pairs, strict=True))
            say("{} turns of the same length: host {:.3f} s, HTTP {:.3f} s".format(len(pairs), *said))
    for k in range(rounds + 1):  # the first warms up
        first = 1000 + N_CLIENTS * k
        ways: tuple[Way, ...] = (direct, http) if k % 2 else (http, direct)
        speeds = {way: _at_once(way, first) for way in ways}
        alone = [turn for i in range(N_CLIENTS) for turn in http.turns(5000 + first + i, 3)]
        if k:
            together.append(speeds[http] / speeds[direct])
            gains.append(speeds[http] / _tok_s(alone))
            say(
                f"{N_CLIENTS} clients at once: host {speeds[direct]:.1f} tok/s, HTTP {speeds[http]:.1f}, "
                f"{gains[-1]:.2f} times one after another"
            )
    if not ratios:
        raise UserError("The conversations came out differently every time with this model: nothing can be compared.")
    return [
        figure("ten turns, HTTP over host", ratios).at_least(HTTP_BAR),
        figure("four clients at once, HTTP over host", together).at_least(TOGETHER_BAR),
    ], statistics.median(gains)


def _by_turns(one: Way, other: Way, k: int) -> tuple[list[Turn], list[Turn]]:
    """Both have conversation `k`, turn by turn: a machine whose speed wanders changes both alike."""
    asked = one.turns(k, TURNS), other.turns(k, TURNS)
    done: tuple[list[Turn], list[Turn]] = [], []
    for number in range(TURNS):
        for i in (0, 1) if number % 2 else (1, 0):
            done[i].append(next(asked[i]))
    return done


def _at_once(way: Way, first: int) -> float:
    """Tokens a second of four conversations of three turns."""
    began = time.perf_counter()
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        done = list(pool.map(lambda i: list(way.turns(i, 3)), range(first, first + N_CLIENTS)))
    return sum(turn.n_tokens for turns in done for turn in turns) / (time.perf_counter() - began)


def _beside(http: Way, peer: Way, rounds: int, say: Callable[[str], None]) -> Figure:
    """Tokens a second of whole conversations: answers of another server may have other lengths."""
    ratios = []
    for k in range(2000, 2001 + rounds):
        ours, theirs = _by_turns(http, peer, k)
        if k > 2000:
            ratios.append(_tok_s(ours) / _tok_s(theirs))
            say(f"ten turns: {_tok_s(ours):.1f} tok/s, the peer {_tok_s(theirs):.1f}")
    return figure("ten turns, tokens a second over the peer", ratios).at_least(PEER_BAR)


def _tok_s(turns: Sequence[Turn]) -> float:
    """Of all these answers, prompts included."""
    return sum(turn.n_tokens for turn in turns) / sum(turn.seconds for turn in turns)


def _texts(k: int, turns: int) -> list[str]:
    return [f"Tell me story number {k}, the part {turn}, in some sentences." for turn in range(1, turns + 1)]


class _Direct:
    def __init__(self, host: Host) -> None:
        self._host = host

    def turns(self, k: int, n: int) -> Iterator[Turn]:
        messages: list[Message] = []
        for text in _texts(k, n):
            began, conversation = time.perf_counter(), new_conversation_id()
            messages.append(Message(new_message_id(), conversation, None, "user", text))
            answer, stats = self._answer(Generate(conversation, new_message_id(), tuple(messages), _SAMPLING))
            messages.append(replace(answer, stats=stats))
            yield Turn(time.perf_counter() - began, stats.generated_tokens)

    def _answer(self, command: Generate) -> tuple[Message, TurnStats]:
        texts: list[str] = []
        tokens: list[int] = []
        ended: list[TurnEnded] = []
        over = threading.Event()

        def take() -> None:
            for event in subscription.take():
                if isinstance(event, TextDelta) and event.answer == command.answer:
                    texts.append(event.text)
                    tokens.extend(event.tokens)
                elif isinstance(event, TurnEnded) and event.answer == command.answer:
                    ended.append(event)
                    over.set()

        subscription = self._host.subscribe(take)
        self._host.submit(replace(command, client=Client("bench", "direct")))
        if not over.wait(_WAIT_S) or ended[0].state != "complete":
            raise UserError(ended[0].note if ended else "The engine did not answer.")
        subscription.close()
        message = Message(MessageId(command.answer), command.conversation, None, "assistant", "".join(texts))
        return replace(message, tokens=tuple(tokens)), ended[0].stats


class _Over:
    def __init__(self, url: str, key: str) -> None:
        self._url, self._headers = url, {"authorization": f"Bearer {key}"} if key else {}

    def turns(self, k: int, n: int) -> Iterator[Turn]:
        messages: list[dict[str, str]] = []
        with httpx2.Client(base_url=self._url, headers=self._headers, timeout=_WAIT_S, trust_env=False) as client:
            for text in _texts(k, n):
                began = time.perf_counter()
                messages.append({"role": "user", "content": text})
                said, size = self._asked(client, messages)
                messages.append({"role": "assistant", "content": said})
                yield Turn(time.perf_counter() - began, size)

    def _asked(self, client: httpx2.Client, messages: Sequence[dict[str, str]]) -> tuple[str, int]:
        """`_streamed`, once more where the connection was closed: llama-server does so now and then, untold."""
        try:
            with suppress(httpx2.RemoteProtocolError):
                return _streamed(client, messages)
            return _streamed(client, messages)
        except httpx2.HTTPError as error:
            raise UserError(f"The server at {self._url} could not be asked: {error}") from error


def _streamed(client: httpx2.Client, messages: Sequence[dict[str, str]]) -> tuple[str, int]:
    """The text of an answer, and how many tokens it has."""
    body = {
        "messages": messages,
        "max_tokens": MAX_TOKENS,
        "temperature": 0.0,
        "stream": True,
        "model": "any",
        "stream_options": {"include_usage": True},
    }
    said, n = [], 0
    with client.stream("POST", "/chat/completions", json=body) as answer:
        if answer.status_code != 200:
            raise UserError(f"The server answered {answer.status_code}: {answer.read().decode()[:200]}")
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line.removeprefix("data: "))
                said += [choice["delta"].get("content") or "" for choice in chunk["choices"]]
                n = (chunk.get("usage") or {}).get("completion_tokens", n)
    return "".join(said), n
