"""Where the project is, the models and small inputs beside it that tests also run over where they are, and ports."""

import socket
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED_CASES = ROOT.parent / "shared" / "cases"
SHARED_MODELS = ROOT.parent / "shared" / "models"


def free_port() -> int:
    """One that nobody listens at now, on this computer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
