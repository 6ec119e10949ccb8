"""What is reported of a server that shows its cache as hashed blocks."""

from kvdesk.blocks.tree import EMPTY, BlockMap
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """A server's own counters; None if it does not tell. usage: share of the cache that is taken, 0 to 1; hit_rate:
    share of prompt tokens that were in it; tokens since the server's start; requests now.
    """

    usage: float | None = None
    hit_rate: float | None = None
    queried_tokens: float | None = None
    hit_tokens: float | None = None
    running: float | None = None
    waiting: float | None = None

    @property
    def share_of_hits(self) -> float | None:
        """Of prompt tokens that were asked for, those that were in the cache."""
        if self.hit_rate is not None:
            return self.hit_rate
        return self.hit_tokens / self.queried_tokens if self.hit_tokens is not None and self.queried_tokens else None


@dataclass(frozen=True, slots=True)
class BlockMapView:
    """The blocks of a server as known now, and what it counts. `address`: where its events come from; `problem`: a
    sentence where they cannot be heard or read.
    """

    blocks: BlockMap = EMPTY
    metrics: ServerMetrics = ServerMetrics()
    address: str = ""
    problem: str = ""
