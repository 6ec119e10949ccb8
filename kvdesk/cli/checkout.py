"""Commands for developers, whose modules are under `tests` and in no installation."""

import importlib
import sys
from pathlib import Path
from typing import Any

from kvdesk.errors import UserError
from kvdesk.translation import tr


def of_checkout(name: str) -> Any:
    """The module `name` of `tests`. Raises UserError in an installation, which has none."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "tests").joinpath(*name.split(".")[:-1]).is_dir():
        raise UserError(tr("This command is for developers: it runs in a checkout of kvdesk's source only."))
    sys.path.insert(0, str(checkout))  # `kvdesk` may have been started from any folder
    return importlib.import_module(f"tests.{name}")
