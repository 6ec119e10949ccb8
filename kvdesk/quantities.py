"""Quantities as a person reads them: each has one form, wherever it is shown."""

from datetime import UTC, datetime


def size_text(n_bytes: float, digits: int = 1) -> str:
    """Bytes in GB, with `digits` after the point; below one in MB, without."""
    return f"{n_bytes / 1e9:.{digits}f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def rate_text(tok_s: float) -> str:
    """Tokens a second, without the unit."""
    return f"{tok_s:,.0f}" if tok_s >= 9.95 else f"{tok_s:.1f}"


def seconds_text(seconds: float) -> str:
    """A time that was measured, or foreseen, with two digits."""
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:,.0f} s"


def day_text(ms: int) -> str:
    """The day of a time in milliseconds, in UTC: the same wherever a file is read."""
    return str(datetime.fromtimestamp(ms / 1000, UTC).date())
