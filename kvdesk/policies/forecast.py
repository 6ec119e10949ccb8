"""What sending will cost, shown in advance: tokens from cache, tokens to compute, time to the first token.

Pure: measured times come in (`Costs`). Must never know the engine.
"""

from kvdesk.policies.costs import Costs
from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Forecast:
    """`first_token_ms` is None until something was measured. Parts of it: `restore_ms`, restoring a saved state;
    `measuring_ms`, finding the tokens that leave a full context. `n_put`: tokens of documents that are put into the
    cache in the place of being read.
    """

    n_reused: int
    n_prefill: int
    first_token_ms: float | None
    restore_ms: float = 0.0
    measuring_ms: float = 0.0
    n_put: int = 0

    @property
    def sentence(self) -> str:
        """For the line under the composer."""
        parts = [tr("{n:,} tokens from cache").format(n=self.n_reused), tr("{n:,} to compute").format(n=self.n_prefill)]
        if self.n_put:
            parts.insert(1, put_words(self.n_put))
        if self.restore_ms:
            parts.insert(0, tr("restored in {time}").format(time=in_seconds(self.restore_ms)))
        if self.measuring_ms:
            parts.append(tr("{time} to find what matters least").format(time=in_seconds(self.measuring_ms)))
        if self.first_token_ms is not None:
            parts.append(tr("first token in {time}").format(time=in_seconds(self.first_token_ms)))
        return tr(", ").join(parts)


def forecast(
    n_prompt: int,
    n_reused: int,
    costs: Costs,
    n_batch: int,
    *,
    restore_ms: float = 0.0,
    measuring_ms: float | None = 0.0,
    n_put: int = 0,
) -> Forecast:
    """Forecast for a prompt of `n_prompt` tokens of which the first `n_reused` are in the cache or in its saved state.

    restore_ms: to restore the saved state. measuring_ms: to find the tokens that leave; None: not known yet. n_put: as
    in `Forecast`. At least one token is decoded, because its logits are needed.
    """
    n_reused = max(0, min(n_reused, n_prompt - 1))
    n_prefill = n_prompt - n_reused - n_put
    ms = costs.reading_ms(n_prefill, n_reused, n_batch)
    total = None if ms is None or measuring_ms is None else ms + restore_ms + measuring_ms
    return Forecast(n_reused, n_prefill, total, restore_ms, measuring_ms or 0.0, n_put)


def put_words(n_put: int) -> str:
    """What is said of tokens of documents that are not read again."""
    return tr("{n:,} of documents read elsewhere, not exact").format(n=n_put)


def in_seconds(ms: float) -> str:
    """As precise as it is known: two digits."""
    if ms < 95:
        return tr("about 0.1 s") if ms >= 50 else tr("less than 0.1 s")
    return tr("about {seconds} s").format(seconds=f"{ms / 1e3:.1f}" if ms < 9_950 else f"{ms / 1e3:.0f}")
