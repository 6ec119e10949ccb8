"""What every table of settings is made of."""

import os

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.fields import FieldInfo

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""pydantic would read the metadata of every installed package for plug-ins before the first table: a twentieth of the
time until the window is there (pydantic/plugin/_loader.py). kvdesk has none."""


class Table(BaseModel):
    """Frozen values with defaults and ranges. What a file has beside them is ignored.

    What validates a table is built for its first value: most tables are only made as a part of `Settings`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True, allow_inf_nan=False, defer_build=True)


def llama(name: str) -> dict[str, JsonValue]:
    """Of a field: llama.cpp's name for it."""
    return {"llama.cpp": name}


def llama_name(info: FieldInfo) -> str:
    """What llama.cpp calls a setting; "" for a setting that is kvdesk's own."""
    extra = info.json_schema_extra
    return str(extra.get("llama.cpp", "")) if isinstance(extra, dict) else ""
