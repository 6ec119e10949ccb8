"""JSON of other programs, which may be damaged or have another form: nothing here raises."""

import json
from typing import Any


def json_value(text: object, otherwise: Any = None) -> Any:
    """The value of a JSON text; `otherwise` for anything else."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else otherwise
    except (ValueError, RecursionError):
        return otherwise


def obj(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def object_in(text: object) -> dict[str, Any]:
    """The object of a JSON text; empty for anything else, such as a text that was cut off."""
    return obj(json_value(text))


def text_in(value: object) -> str:
    """The value if it is a text, else "": anything else may be nested too deeply to be written."""
    return value if isinstance(value, str) else ""
