"""What a test needs of the computer that it runs on."""

import os

import pytest

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
