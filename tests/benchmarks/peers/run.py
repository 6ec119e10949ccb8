"""`kvdesk bench peers`: kvdesk beside llama-cpp-python's `Llama` and servers given by their address.

All run the same model and get the same chats, one peer after another within each row, each row in a different order;
rounds go over all rows, quiet and beside busy processes. It builds nothing and downloads nothing.
"""

from __future__ import annotations

import gc
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kvdesk.errors import UserError
from kvdesk.experiments.bench import uncollected
from kvdesk.experiments.busy import busy_processes
from kvdesk.experiments.child import machine
from kvdesk.settings import ContextSettings
from tests.benchmarks.peers.kvdesk_itself import Kvdesk
from tests.benchmarks.peers.llama_class import LlamaPeer
from tests.benchmarks.peers.peer import Peer, PeerFailed, answer
from tests.benchmarks.peers.rows import ROWS, WORDS, Row, Texts
from tests.benchmarks.peers.server import ServerPeer
from tests.benchmarks.peers.started_server import LLAMA_SERVER, llama_server
from tests.benchmarks.peers.table import LOADS, PRIMARY, Line, as_json

WARM_UP = 16
"""Times `WORDS` in the prompt by which the peers are warmed up."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: `rows` for each of `loads` (numbers of busy processes), `rounds` times; nothing is begun when
    `minutes` have passed.
    """

    rows: tuple[Row, ...]
    loads: tuple[int, ...]
    rounds: int
    minutes: float

    @classmethod
    def of(cls, only: Sequence[str], loads: Sequence[int], rounds: int, minutes: float) -> Plan:
        """Raises UserError for a row or a load that there is not."""
        by_id = {row.id: row for row in ROWS}
        if unknown := [name for name in only if name not in by_id]:
            raise UserError(f"There is no row {', '.join(unknown)}. There are: {', '.join(by_id)}.")
        if any(not 0 <= load < len(LOADS) for load in loads):
            raise UserError(f"Busy processes are 0 to {len(LOADS) - 1}.")
        rows = tuple(row for row in ROWS if not only or row.id in only)
        return cls(rows, tuple(sorted(set(loads))), rounds, minutes)


class Others(NamedTuple):
    """The peers beside kvdesk: servers by their addresses, and the model to ask them for; a llama-server's program,
    which is started here. only: the names or addresses of those that are wanted; all where it is empty.
    """

    urls: Sequence[str] = ()
    served_model: str = ""
    llama_server: Path | None = None
    only: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The table, and what it rests on. peers: what each is, by its name; absent: why some are not compared."""

    lines: list[Line]
    peers: dict[str, str]
    absent: dict[str, str]
    settings: ContextSettings
    seconds: float

    def as_json(self) -> dict[str, object]:
        return {
            "machine": machine(),
            "settings": self.settings.model_dump(mode="json"),
            "peers": self.peers,
            "absent": self.absent,
            "seconds": round(self.seconds, 1),
            "rows": as_json(self.lines, self.peers),
        }


def run(
    path: Path, settings: ContextSettings, plan: Plan, others: Others, say: Say, *, follow_load: bool = True
) -> Outcome:
    """Everything; follow_load: of kvdesk. Raises UserError where kvdesk itself cannot run the model."""
    start, absent = time.monotonic(), dict[str, str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kvdesk-bench-")))
        peers: dict[str, Peer] = {}
        kvdesk = partial(Kvdesk, path, settings, folder, follow_load=follow_load)
        for name, make in _makers(kvdesk, path, settings, others).items():
            try:
                peer = make()
            except PeerFailed as error:
                if name == PRIMARY:
                    raise
                absent[name] = str(error)
                say(str(error))
                continue
            peers[peer.name] = peer
            stack.callback(peer.close)
            say(f"{peer.name}: {peer.about}")
        texts = _warmed_up(peers, plan.loads, absent, say)
        say(f"{plan.rounds} rounds of {len(plan.rows)} rows; nothing is begun after {plan.minutes:g} minutes.")
        with uncollected():
            lines = compare(peers, plan, texts, say, start)
    about = {name: peer.about for name, peer in peers.items()}
    return Outcome(lines, about, absent, settings, time.monotonic() - start)


def compare(peers: Mapping[str, Peer], plan: Plan, texts: Texts, say: Say, start: float) -> list[Line]:
    """The lines of the table; `start`: when time began to count (time.monotonic()). After Ctrl+C they have what was
    measured until then.
    """
    lines = {(load, name): Line(load, name) for load in plan.loads for row in plan.rows for name in row.names}
    try:
        _fill(lines, peers, plan, texts, say, start)
    except KeyboardInterrupt:
        say("Interrupted: the table has what was measured until now.")
        for line in lines.values():
            for name in peers.keys() - line.values.keys():
                _put_problem([line], name, "Not measured: it was interrupted.")
    return list(lines.values())


def _fill(
    lines: Mapping[tuple[int, str], Line], peers: Mapping[str, Peer], plan: Plan, texts: Texts, say: Say, start: float
) -> None:
    gone: dict[str, str] = {}
    number = texts.number
    for turn in range(plan.rounds):
        for load in plan.loads:
            with busy_processes(load):
                for place, row in enumerate(plan.rows):
                    number += 1
                    over = time.monotonic() - start > 60 * plan.minutes
                    own = [lines[load, name] for name in row.names]
                    for name in _order(list(peers), turn + place):
                        said = own[0].problems.get(name) or gone.get(name)
                        if over and not said and not own[0].values.get(name):
                            said = f"Not measured: {plan.minutes:g} minutes were over."
                        if over or said:
                            _put_problem(own, name, said)
                            continue
                        _measure(peers[name], row, Texts(texts.word_tokens, number), own, turn, gone)
                    if not over:
                        say(f"round {turn + 1}, {LOADS[load]}, {row.title}")


def _measure(peer: Peer, row: Row, texts: Texts, own: list[Line], turn: int, gone: dict[str, str]) -> None:
    """One row on one peer, put into its lines."""
    gc.collect()
    try:
        for line, measured in zip(own, row.measure(peer, texts), strict=True):
            line.add(peer.name, turn, measured)
        peer.settle()
    except PeerFailed as error:
        _put_problem(own, peer.name, str(error))
        if error.gone:
            gone[peer.name] = str(error)


def _put_problem(own: list[Line], name: str, said: str | None) -> None:
    for line in own:
        if said:
            line.problems.setdefault(name, said)


def _order(names: list[str], n: int) -> list[str]:
    """Another one begins each row, and the same row in the next round."""
    first = n % len(names)
    return names[first:] + names[:first]


def _makers(
    kvdesk: Callable[[], Peer], path: Path, settings: ContextSettings, others: Others
) -> dict[str, Callable[[], Peer]]:
    """What makes each peer, by its name or address; kvdesk first."""
    makers: dict[str, Callable[[], Peer]] = {LlamaPeer.name: lambda: LlamaPeer(path, settings)}
    if (program := others.llama_server) is not None:
        makers[LLAMA_SERVER] = lambda: llama_server(program, path, settings)
    for url in others.urls:
        makers[url] = lambda url=url: _checked(ServerPeer(url, others.served_model))  # type: ignore[misc]
    if unknown := [name for name in others.only if name not in makers]:
        raise UserError(f"There is no peer {', '.join(unknown)}. There are: {', '.join(makers)}.")
    return {PRIMARY: kvdesk, **{name: make for name, make in makers.items() if name in (others.only or makers)}}


def _checked(peer: ServerPeer) -> ServerPeer:
    try:
        peer.check()
    except PeerFailed:
        peer.close()
        raise
    return peer


def _warmed_up(peers: dict[str, Peer], loads: Sequence[int], absent: dict[str, str], say: Say) -> Texts:
    """Texts whose lengths are known; a peer that cannot answer is absent from then on."""
    kvdesk = peers[PRIMARY]
    assert isinstance(kvdesk, Kvdesk)
    sizes = []
    for n in (1, 1 + WARM_UP):
        answer(kvdesk, f"size {n}", WORDS * n, 1)
        kvdesk.forget(f"size {n}")
        sizes.append(kvdesk.n_prompt)
    texts = Texts((sizes[1] - sizes[0]) / WARM_UP, first_number())
    for load in loads:
        with busy_processes(load):
            _warm_up(peers, texts, load, absent, say)
    return texts


def _warm_up(peers: dict[str, Peer], texts: Texts, which: int, absent: dict[str, str], say: Say) -> None:
    chat = texts.chat(which)
    for name, peer in list(peers.items()):
        try:
            answer(peer, chat, texts.opening(which, f"{WORDS * WARM_UP} What is this?"), 16)
            peer.forget(chat)
            peer.settle()
        except PeerFailed as error:
            if name == PRIMARY:
                raise
            absent[name] = str(error)
            say(str(error))
            del peers[name]  # closed at the end like the others


def first_number() -> int:
    """Where the numbers of texts begin, another one in each run: a server may still have those of the run before."""
    return 100_000 + secrets.randbelow(900_000)
