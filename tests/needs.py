"""What a test needs of the computer that it runs on."""

import os
from pathlib import Path

import pytest

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")

FULL = Path("/dev/full")
"""A disk without room."""
needs_full_disk = pytest.mark.skipif(not FULL.exists(), reason=f"there is no {FULL}")
