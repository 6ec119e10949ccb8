"""Each setting as an action of the command palette: it opens the settings there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pydantic.fields import FieldInfo

from kvdesk.settings import CachePolicy, ContextSettings, Sampling, ServeSettings, Settings, llama_name
from kvdesk.translation import tr
from kvdesk.ui.widgets.actions import Action, ActionGroup

_OWN = ("theme", "zoom", "font_px", "language", "safe_mode")


def setting_actions(show: Callable[[str], object]) -> ActionGroup:
    """`show`: opens the settings that have these words."""
    return ActionGroup(tr("Settings"), tuple(_actions(show)))


def _actions(show: Callable[[str], object]) -> Iterator[Action]:
    for info in _fields():
        title, theirs = tr(info.title or ""), llama_name(info)
        name = f"{title} ({theirs})" if theirs else title
        label = tr("Setting: {name}").format(name=name)
        yield Action("", label, partial(show, title), tip=tr(info.description or ""))


def _fields() -> Iterator[FieldInfo]:
    yield from (Settings.model_fields[name] for name in _OWN)
    for table in (Sampling, CachePolicy, ContextSettings, ServeSettings):
        yield from table.model_fields.values()
