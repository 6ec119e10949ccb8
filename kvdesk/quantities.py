"""Quantities as a person reads them: each has one form, wherever it is shown."""

from datetime import UTC, datetime
from typing import Final

from kvdesk.translation import plural, tr

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999 in Unix time: what is later, or before 1970, is no time."""


def size_text(n_bytes: float, digits: int = 1) -> str:
    """Bytes in GB, with `digits` after the point; below one in MB, without."""
    return f"{n_bytes / 1e9:.{digits}f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def tokens_text(n: int) -> str:
    """A number of tokens."""
    return plural("1 token", "%n tokens", n)


def cells_text(n: int) -> str:
    """A number of cells."""
    return plural("1 cell", "%n cells", n)


def operations_text(n: int) -> str:
    """A number of operations."""
    return plural("1 operation", "%n operations", n)


def rate_text(tok_s: float) -> str:
    """Tokens a second, without the unit."""
    return f"{tok_s:,.0f}" if tok_s >= 9.95 else f"{tok_s:.1f}"


def seconds_text(seconds: float) -> str:
    """A time that was measured, or foreseen, with two digits."""
    return tr("{seconds} s").format(seconds=f"{seconds:,.{2 if seconds < 0.995 else 1 if seconds < 9.95 else 0}f}")


def valid_ms(ms: int) -> int:
    """Milliseconds of Unix time or of a duration; 0 for what is below 0 or above `LAST_MS`."""
    return ms if 0 <= ms <= LAST_MS else 0


def day_text(ms: int) -> str:
    """The day of a time in milliseconds, in UTC: the same wherever a file is read."""
    return str(datetime.fromtimestamp(ms / 1000, UTC).date())
