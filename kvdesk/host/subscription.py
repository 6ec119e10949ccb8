"""A subscriber's own queue of events: nobody else's reading takes anything from it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from kvdesk.host.joining import bytes_of, join
from kvdesk.protocol.cache import CacheView
from kvdesk.protocol.messages import Event, SubscriptionDropped
from kvdesk.translation import marked, tr

MOST_EVENTS = 500
"""A subscriber that has that many events waiting is slow: text is joined, and of views only the latest is kept."""
_VIEW = 25
"""A view of the cache counts as that many events: it is up to some MB."""
MOST_BYTES = 8 * 2**20
"""One that is after by more than this, joined, is dropped."""
_DROPPED = marked("Events came faster than they were read: the chats are complete, some measurements are missing.")
_log = logging.getLogger(__name__)


class Subscription:
    """Made by `Host.subscribe`. `take` and `close` may be called from any thread, and from `on_ready`.

    n_taken  the number of the last event that was taken
    """

    def __init__(
        self,
        on_ready: Callable[[], None],
        on_close: Callable[[Subscription], None],
        begin_anew: Callable[[Subscription], Sequence[Event]],
        known: Sequence[Event],
        n_before: int,
    ) -> None:
        """`known` waits at once, without `on_ready`; `n_before` events were reported before this subscription began.
        `begin_anew` subscribes it again and gives what is known then.
        """
        self._on_ready, self._on_close, self._begin_anew = on_ready, on_close, begin_anew
        self._lock = threading.Lock()
        self._waiting = list(known)
        self._told = False  # that there are events
        self._complained = False  # that on_ready fails
        self._room = MOST_EVENTS  # that many more events, then they are joined
        self._n_put = self.n_taken = n_before
        self._closed = False
        self.dropped = False

    def put(self, event: Event, number: int) -> None:
        """Called by the host with its events, numbered from 1. Never raises: whatever is wrong with this subscriber,
        the others get their events.
        """
        with self._lock:
            if self.dropped or self._closed or number <= self._n_put:
                return
            self._n_put = number
            self._waiting.append(event)
            self._room -= _VIEW if type(event) is CacheView else 1
            if self._room <= 0:
                self._join()
            if self._told:
                return
            self._told = True
        try:
            self._on_ready()
        except Exception:  # noqa: BLE001 - asked again at the next event
            self._told = False
            if not self._complained:
                self._complained = True
                _log.exception("a subscriber failed")

    def take(self) -> list[Event]:
        """The events since the last call, oldest first. One who was dropped begins again: behind `SubscriptionDropped`
        comes what is known now, as after `Host.subscribe(known=True)`, with the answers that ended meanwhile.
        """
        events = self._take()
        if self.dropped and not self._closed:
            events += self._take()  # it may have been dropped after the first: that is its last word
            events += self._begin_anew(self)
        return events

    def begin_at(self, n_before: int) -> None:
        """Take events again, from number `n_before` + 1 on. Called by the host."""
        with self._lock:
            self.dropped, self._n_put, self.n_taken = False, n_before, n_before

    def close(self) -> None:
        """Nothing comes any more."""
        with self._lock:
            self._closed, self._waiting = True, []
        self._on_close(self)

    def _take(self) -> list[Event]:
        with self._lock:
            taken, self._waiting = self._waiting, []
            self._told, self._room = False, MOST_EVENTS
            if not self.dropped:
                self.n_taken = self._n_put
        return taken

    def _join(self) -> None:
        """Join what waits; drop this subscriber where that is still too much. Waits are doubled, so that a subscriber
        who never reads costs each event a fixed amount.
        """
        self._waiting = join(self._waiting)
        self._room = max(MOST_EVENTS, len(self._waiting))
        if bytes_of(self._waiting) > MOST_BYTES:
            self.dropped = True
            self._waiting = [SubscriptionDropped(tr(_DROPPED))]
