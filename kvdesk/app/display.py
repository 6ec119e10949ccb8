"""Whether there is anything to draw on."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """Whether Qt can open a window here: always, except on a Unix without X11 and Wayland."""
    if sys.platform in ("win32", "darwin") or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
