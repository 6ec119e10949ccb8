"""Presets: sampling, and a system prompt where one belongs to it, under a name. Import and export as JSON.

The user's own are kept in `Settings.presets`; the built-in ones are made here.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationError

from kvdesk.errors import UserError
from kvdesk.graphemes import cut
from kvdesk.settings.sampling import MOST_TEXT, Sampling
from kvdesk.settings.table import Table
from kvdesk.translation import tr

MOST_PRESETS: Final = 100
MOST_NAME: Final = 60
MOST_BYTES: Final = 4 * (3 * MOST_TEXT + 100_000)
"""Of a file with one preset: far above any that is exported."""
_KIND: Final = "kvdesk preset"


def _stripped(name: str) -> str:
    if not name.strip():
        raise ValueError("a preset needs a name")
    return " ".join(name.split())


class Preset(Table):
    """A name for a set of sampling. system_prompt: None leaves the one there is."""

    name: Annotated[str, AfterValidator(_stripped)] = Field(max_length=MOST_NAME)
    system_prompt: str | None = Field(None, max_length=MOST_TEXT)
    sampling: Sampling = Field(default_factory=Sampling)


def built_in() -> tuple[Preset, ...]:
    """Those that are always there; they cannot be changed. Names in the user's language."""
    return (
        Preset(name=tr("Default")),
        Preset(name=tr("Precise"), sampling=Sampling(temperature=0.2, top_p=0.9)),
        Preset(name=tr("Creative"), sampling=Sampling(temperature=1.2, top_k=0, top_p=1.0, min_p=0.1)),
        Preset(name=tr("Same answer every time"), sampling=Sampling(temperature=0.0)),
    )


def with_preset(own: Iterable[Preset], preset: Preset) -> tuple[Preset, ...]:
    """The user's presets with this one: in the place of the one with its name, else at the end.

    Raises UserError: the name of a built-in preset, or too many.
    """
    presets = tuple(own)
    if preset.name in {known.name for known in built_in()}:
        raise UserError(tr("“{name}” is a built-in preset: choose another name.").format(name=preset.name))
    if preset.name in {known.name for known in presets}:
        return tuple(preset if known.name == preset.name else known for known in presets)
    if len(presets) >= MOST_PRESETS:
        raise UserError(tr("There are already {n} presets; delete one first.").format(n=MOST_PRESETS))
    return (*presets, preset)


def without_preset(own: Iterable[Preset], name: str) -> tuple[Preset, ...]:
    """The user's presets without the one of this name."""
    return tuple(preset for preset in own if preset.name != name)


def renamed(own: Iterable[Preset], name: str, new: str) -> tuple[Preset, ...]:
    """The user's presets, the one called `name` under another. Raises UserError: no name, or one that is taken."""
    presets = tuple(own)
    new = checked_name(new)
    taken = {preset.name for preset in (*built_in(), *presets)} - {name}
    if new in taken:
        raise UserError(tr("There is already a preset called “{name}”.").format(name=new))
    return tuple(p.model_copy(update={"name": new}) if p.name == name else p for p in presets)


def checked_name(name: str) -> str:
    """A name without blanks around it. Raises UserError."""
    name = " ".join(name.split())
    if not 0 < len(name) <= MOST_NAME:
        raise UserError(tr("The name of a preset has 1 to {n} characters.").format(n=MOST_NAME))
    return name


def free_name(own: Iterable[Preset], name: str) -> str:
    """`name`, with a number if there is a preset of that name."""
    taken = {preset.name for preset in (*built_in(), *own)}
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{cut(name, MOST_NAME - 6, '')} ({number})"
    return free


def exported(preset: Preset) -> str:
    """The preset as JSON that a user can read. Only what differs from llama.cpp's defaults is written."""
    values = preset.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"kind": _KIND, "version": 1} | values, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode() + "\n"


def imported(data: bytes) -> Preset:
    """The preset in a file that was exported. Raises UserError with a sentence: it is something else, or damaged."""
    if len(data) > MOST_BYTES:
        raise UserError(tr("This file is too large for a preset."))
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise UserError(tr("This file is not a preset: it is not JSON.")) from None
    if not isinstance(found, dict) or found.get("kind") != _KIND:
        raise UserError(tr("This file is not a preset of kvdesk."))
    if found.get("version") != 1:
        raise UserError(tr("This preset was made by a newer version of kvdesk."))
    try:
        return Preset.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(
            tr("The preset cannot be used: {where}: {problem}.").format(where=where, problem=first["msg"])
        ) from None
