"""Requests of other programs, as rows: who asked, how much of the prompt was in the cache, and why not more. No Qt."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kvdesk.cache.reuse.score import Score
from kvdesk.message import ConversationId, MessageId, MessageState
from kvdesk.protocol.cache import CacheView, ClientShare
from kvdesk.protocol.chat import EngineDied, EngineRestarted, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import Event
from kvdesk.quantities import cells_text
from kvdesk.translation import marked, plural, tr
from kvdesk.values import dataclass, replace
from kvdesk.viewmodel.cells.readout import reasons

MOST_ROWS: Final = 200
"""The latest requests that are listed."""
_PROTOCOLS: Final = {
    "/chat/completions": marked("Chat"),
    "/completions": marked("Completion"),
    "/completion": marked("Completion"),
    "/responses": marked("Responses"),
    "/messages": marked("Messages"),
    "/infill": marked("Infill"),
}
_STATES: Final[dict[MessageState, str]] = {
    "streaming": marked("being answered"),
    "complete": marked("answered"),
    "stopped": marked("stopped"),
    "interrupted": marked("interrupted"),
    "failed": marked("failed"),
}


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request. `at_s`: Unix time of its beginning; `seq_id`: its sequence; tokens; `why`: see `TurnStats`;
    `asked`: by which protocol, and with what.
    """

    answer: MessageId
    conversation: ConversationId
    client: str
    at_s: float
    seq_id: int
    n_prompt: int
    n_cached: int
    n_generated: int = 0
    state: MessageState = "streaming"
    why: str = ""
    note: str = ""
    asked: str = ""

    @property
    def time(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self.at_s))

    @property
    def state_text(self) -> str:
        return tr(_STATES[self.state])

    @property
    def cached_text(self) -> str:
        """How much of the prompt was in the cache."""
        share = round(100 * self.n_cached / self.n_prompt) if self.n_prompt else 0
        return tr("{cached:,} of {n:,} ({share} %)").format(cached=self.n_cached, n=self.n_prompt, share=share)

    @property
    def explanation(self) -> str:
        """Why so much of it was, and how the answer ended where that needs a word."""
        if not self.why:
            return tr("The request is being answered. When it has ended, you see why so much was in the cache.")
        return " ".join(part for part in (self.why, self.note) if part)


class RequestLog:
    """The latest requests, the newest first, and the score of all. One reducer, `apply`."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._rows: OrderedDict[MessageId, RequestRow] = OrderedDict()
        self.score = Score()
        self._clients: tuple[ClientShare, ...] = ()

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        return tuple(reversed(self._rows.values()))

    @property
    def n_running(self) -> int:
        return sum(row.state == "streaming" for row in self._rows.values())

    @property
    def kept(self) -> str:
        """What the cache, and the memory for saved conversations, keep of each program's requests; "" for nothing."""
        found = [
            tr("{client}: {cells}, {mb} MB saved").format(
                client=one.name, cells=cells_text(one.n_cells), mb=f"{one.saved_bytes / 1e6:,.1f}"
            )
            for one in self._clients
        ]
        return tr("Kept for programs: {kept}.").format(kept=tr("; ").join(found)) if found else ""

    def apply(self, event: Event) -> bool:
        """Take an event over. Whether a row, or what is kept, has changed."""
        match event:
            case CacheView():
                changed, self._clients = event.clients != self._clients, event.clients
                return changed
            case TurnStarted() if event.client:
                return self._start(event)
            case TextDelta() if (row := self._rows.get(event.answer)) is not None:
                self._rows[event.answer] = replace(row, n_generated=row.n_generated + len(event.tokens))
                return True
            case TurnEnded() if (row := self._rows.get(event.answer)) is not None:
                stats = event.stats
                self.score = self.score.with_request(stats)
                self._rows[event.answer] = replace(
                    row, state=event.state, n_generated=stats.generated_tokens, why=reasons(stats), note=event.note
                )
                return True
            case EngineRestarted() | EngineDied():
                return self._interrupt()
            case _:
                return False

    def _start(self, event: TurnStarted) -> bool:
        if event.answer in self._rows:
            return False
        of = event.answer, event.conversation, event.client, self._now_s(), event.seq_id
        self._rows[event.answer] = RequestRow(*of, event.prompt_tokens, event.reused_tokens, asked=_asked(event))
        while len(self._rows) > MOST_ROWS:
            self._rows.popitem(last=False)
        return True

    def _interrupt(self) -> bool:
        running = [row for row in self._rows.values() if row.state == "streaming"]
        for row in running:
            self._rows[row.answer] = replace(row, state="interrupted")
        return bool(running)


def _asked(event: TurnStarted) -> str:
    """Such as "Messages, 12 tools, reasoning"; "" if it is not known."""
    if (asked := event.asked) is None:
        return ""
    n = asked.n_tools
    tools = plural("1 tool", "%n tools", n) if n else ""
    reasoning = tr("reasoning") if asked.thinks and event.marks is not None else ""
    protocol = tr(_PROTOCOLS[asked.path]) if asked.path in _PROTOCOLS else asked.path
    return ", ".join(part for part in (protocol, tools, reasoning) if part)
