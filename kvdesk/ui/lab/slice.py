"""The laboratory, as a slice of the window."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kvdesk.translation import tr
from kvdesk.ui.widgets.actions import Action
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.ui.widgets.kit import Kit, Room, Shows, Slice

if TYPE_CHECKING:
    from kvdesk.ui.lab.page import LabPage


def _page(kit: Kit) -> LabPage:
    from kvdesk.ui.lab.page import LabPage

    return LabPage(kit)


def _button(kit: Kit) -> IconButton:
    tip = tr("Lab: questions about the cache, answered by experiments (Ctrl+Shift+L)")
    button = IconButton(kit.theme, "lab", tr("Lab"), tip, clicked=kit.act("view.lab"))
    button.setObjectName("labButton")
    return button


def _actions(shows: Shows) -> Mapping[str, Action]:
    show = Action(
        "view.lab",
        tr("Show the laboratory, or the chats"),
        partial(shows.toggle, "lab"),
        "Ctrl+Shift+L",
        tr("Questions about the cache, answered by experiments"),
    )
    return {"view.theme_system": show}


LAB: Final = Slice(
    "lab", rooms={"lab": Room(_page, lambda page: page.list, leave=None)}, actions=_actions, sidebar=_button
)
