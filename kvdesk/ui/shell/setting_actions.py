"""Each setting as an action of the command palette: it opens the settings there."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kvdesk.settings import CachePolicy, ContextSettings, Sampling, Settings, llama_name
from kvdesk.settings.texts import texts_of
from kvdesk.translation import tr
from kvdesk.ui.widgets.actions import Action, ActionGroup
from kvdesk.ui.widgets.kit import Slice

_OWN = ("theme", "zoom", "font_px", "language", "token_probabilities", "safe_mode")


def setting_actions(show: Callable[[str], object], slices: Iterable[Slice]) -> ActionGroup:
    """`show`: opens the settings that have these words."""
    return ActionGroup(tr("Settings"), tuple(_actions(show, slices)))


def _actions(show: Callable[[str], object], slices: Iterable[Slice]) -> Iterator[Action]:
    for info in _fields(slices):
        (title, tip), theirs = texts_of(info), llama_name(info)
        name = f"{title} ({theirs})" if theirs else title
        label = tr("Setting: {name}").format(name=name)
        yield Action("", label, partial(show, title), tip=tip)


def _fields(slices: Iterable[Slice]) -> Iterator[FieldInfo]:
    yield from (Settings.model_fields[name] for name in _OWN)
    of_slices = (one.section.model for one in slices if one.section is not None)
    tables: tuple[type[BaseModel], ...] = (Sampling, CachePolicy, ContextSettings, *of_slices)
    for table in tables:
        yield from table.model_fields.values()
