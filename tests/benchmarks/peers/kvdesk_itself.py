"""kvdesk as a peer: its host in a thread of its own as in the window, with saved states in a folder."""

import gc
import queue
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

from kvdesk import __version__
from kvdesk.backends.local.engine import Engine
from kvdesk.host.host import GIL_SWITCH_S, IDLE_S, Host
from kvdesk.message import ConversationId, Message, MessageId, TurnStats, new_conversation_id, new_message_id
from kvdesk.protocol.cache import LoadSample, UsePolicy
from kvdesk.protocol.chat import EngineDied, EngineRestarted, Generate, LoadModel, ModelLoaded, TextDelta, TurnEnded
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings, Sampling
from tests.benchmarks.peers.peer import PeerFailed, Piece, wrote_with

MOST_WAIT_S = 600.0
"""Without an event for so long something has gone wrong."""


class Kvdesk:
    """See `Peer`. folder: where the states of conversations are saved, empty at first; follow_load: its number of
    threads follows what the machine can give, as in the window.
    """

    name = "kvdesk"
    no_restart = ""

    def __init__(self, path: Path, settings: ContextSettings, folder: Path, *, follow_load: bool = True) -> None:
        self.about = f"{__version__}, {path.name}"
        self.n_prompt = 0
        """Tokens of the last prompt."""
        self._path, self._settings, self._folder = path, settings, folder
        self._policy = CachePolicy(follow_load=follow_load)
        self._ids: dict[str, ConversationId] = {}
        self._said: dict[str, list[Message]] = {}
        self._start()

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        conversation = self._ids.setdefault(chat, new_conversation_id())
        said = self._said.setdefault(chat, [])
        asked = Message(new_message_id(), conversation, said[-1].id if said else None, "user", text)
        sampling = Sampling(temperature=0.0, max_tokens=n_tokens)
        command, asked_s = Generate(conversation, new_message_id(), (*said, asked), sampling), time.monotonic()
        events = self._answers[command.answer] = queue.SimpleQueue[Event]()
        self._host.submit(command)
        words, tokens, stopped = "", list[int](), False
        ended: TurnEnded | None = None
        try:
            while ended is None:
                event = self._next(events)
                if isinstance(event, TurnEnded):
                    ended = event
                elif isinstance(event, TextDelta):
                    words += event.text
                    tokens += event.tokens
                    if not stopped:
                        try:
                            yield Piece(event.text, len(event.tokens))
                        except GeneratorExit:
                            stopped = True
                            self._host.stop(command.answer)
        finally:
            del self._answers[command.answer]
        if ended.state == "failed":
            raise PeerFailed(ended.note)
        ids, stats = tuple(tokens), ended.stats
        self.n_prompt = stats.prompt_tokens
        said += [asked, Message(command.answer, conversation, asked.id, "assistant", words, ended.state, ids, stats)]
        if not stopped:
            yield Piece("", stats.generated_tokens - len(tokens), stats.prefilled_tokens, self._how(stats, asked_s))

    def forget(self, chat: str) -> None:
        """As a chat that nobody looks at any more: what is in the cache stays there while there is room."""
        self._said.pop(chat, None)
        self._ids.pop(chat, None)

    def settle(self) -> None:
        """What an idle engine does, it does now and not while another peer is measured."""
        time.sleep(IDLE_S + 0.1)
        while self._host.silent_s:
            time.sleep(0.05)

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        self._host.shut_down()
        self._thread.join()
        sys.setswitchinterval(self._switch_s)

    # --- private ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """An engine with the model, and its idle work done."""
        self._answers: dict[MessageId, queue.SimpleQueue[Event]] = {}
        self._others = queue.SimpleQueue[Event]()
        self._load: LoadSample | None = None
        self._host = Host(Engine)
        self._subscription = self._host.subscribe(self._take)
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(GIL_SWITCH_S)
        self._thread = threading.Thread(target=self._host.run, name="kvdesk-engine", daemon=True)
        self._thread.start()
        self._host.submit(UsePolicy(self._policy, self._folder))
        self._host.submit(LoadModel(LocalFile(self._path), self._settings))
        try:
            while not isinstance(self._next(self._others), ModelLoaded):
                pass
            gc.collect()
            gc.freeze()  # as in the window: what was loaded need not be looked at again
        except PeerFailed:
            self.close()
            raise

    def _how(self, stats: TurnStats, asked_s: float) -> str:
        """See `Piece.how`."""
        said, load = [], self._load
        if stats.n_kv:
            n_own = stats.prompt_tokens + stats.generated_tokens
            said.append(f"had attention over {stats.n_kv:,} cells for a chat of {n_own:,} tokens")
        if load is not None and load.at_s >= asked_s:
            said.append(f"{wrote_with(load.n_threads)} while other processes took {load.others:.1f} cores")
        return ", ".join(said)

    def _take(self) -> None:
        """On the host's thread: each event to whoever waits for it."""
        for event in self._subscription.take():
            if isinstance(event, TextDelta | TurnEnded):
                if (waiting := self._answers.get(event.answer)) is not None:
                    waiting.put(event)
            elif isinstance(event, CommandFailed) and isinstance(event.command, Generate):
                if (waiting := self._answers.get(event.command.answer)) is not None:
                    waiting.put(event)
            elif isinstance(event, CommandFailed | ModelLoaded):
                self._others.put(event)
            elif isinstance(event, LoadSample):
                self._load = event
            elif isinstance(event, EngineRestarted | EngineDied):
                for waiting in (self._others, *self._answers.values()):
                    waiting.put(event)

    @staticmethod
    def _next(events: queue.SimpleQueue[Event]) -> Event:
        """Raises PeerFailed for one that says that nothing comes any more."""
        try:
            event = events.get(timeout=MOST_WAIT_S)
        except queue.Empty:
            raise PeerFailed(f"kvdesk's engine said nothing for {MOST_WAIT_S:.0f} s.", gone=True) from None
        if isinstance(event, CommandFailed | EngineRestarted | EngineDied):
            raise PeerFailed(event.sentence, event.detail, gone=not isinstance(event, CommandFailed))
        return event
