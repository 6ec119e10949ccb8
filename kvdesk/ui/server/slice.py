"""Serving other programs, as a slice of the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kvdesk.settings import ServeSettings
from kvdesk.translation import marked, tr
from kvdesk.ui.server.serving_chip import ServingChip
from kvdesk.ui.widgets.actions import Action
from kvdesk.ui.widgets.kit import Kit, Section, Shows, Slice

if TYPE_CHECKING:
    from kvdesk.ui.server.serve_section import ServeSection


def _section(kit: Kit, apply: Callable[[], str]) -> ServeSection:
    from kvdesk.ui.server.serve_section import ServeSection

    return ServeSection(kit.theme, kit.commands, apply)


def _actions(shows: Shows) -> Mapping[str, Action]:
    show = Action(
        "app.serve",
        tr("Serve on this computer…"),
        partial(shows.show_section, "serve"),
        "Ctrl+Shift+S",
        tr("Other programs ask this model over HTTP, on this cache; you see what they reuse, and why"),
    )
    return {"model.embedded": show}


SERVE: Final = Slice(
    "serve",
    section=Section(marked("Serve on this computer"), "serve", ServeSettings, _section),
    actions=_actions,
    status=ServingChip,
)
