"""What reading a saved KV cache may take."""

from typing import Final

ADDRESS_SPACE: Final = 4 << 30
"""Bytes besides the files themselves: Python, numpy, the engine's vocabulary, and a file that is packed."""
MEMORY: Final = 3 << 30
"""Bytes of resident memory besides the files."""
TIME_S: Final = 60.0
SECONDS_PER_GB: Final = 20.0
MOST_ANSWER: Final = 256 << 20
"""Bytes of the child's answer."""
