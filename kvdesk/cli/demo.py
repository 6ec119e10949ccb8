"""`kvdesk demo`: a guided tour of the window with the real model; it needs a checkout of the source."""

from collections.abc import Sequence

from kvdesk.cli.checkout import of_checkout


def main(argv: Sequence[str]) -> int:
    """As `tests.tour.command`. Raises UserError in an installation."""
    return int(of_checkout("tour.command").main(argv))
