"""Runs what may fail so that nothing after it is lost: one widget that raises costs what it shows and no more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def guarded(step: Callable[[], T]) -> T | None:
    """What `step` returns; None where it raises, which is reported as of a slot: by `sys.excepthook`."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - whatever it is: what comes after must not pay for it
        sys.excepthook(type(error), error, error.__traceback__)
        return None
