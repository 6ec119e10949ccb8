"""What one sees of the window and has typed into it, carried over while its parts are made anew (`MainWindow.remake`).

What is stored or known (chats, settings, the cache) is shown again by its owners; this is the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QShortcut
from PySide6.QtWidgets import QWidget

from kvdesk.chat import ConversationId
from kvdesk.conversations.parameters import Parameters
from kvdesk.protocol.chat import LogLine
from kvdesk.settings import WindowPlace
from kvdesk.ui.chat.chat_pane import Writing
from kvdesk.ui.shell.chat_parameters import ChatParameters
from kvdesk.ui.shell.rooms import Rooms
from kvdesk.ui.shell.window_help import WindowHelp
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.shell.window_place import WindowPlacement
from kvdesk.ui.shell.window_settings import WindowSettings
from kvdesk.values import dataclass

if TYPE_CHECKING:
    from kvdesk.ui.settings.page import Edits
    from kvdesk.ui.timeline.page import Journals


@dataclass(frozen=True, slots=True)
class Made:
    """All that is made anew, and where the window is."""

    parts: WindowParts
    settings: WindowSettings
    parameters: ChatParameters
    help: WindowHelp
    placement: WindowPlacement


@dataclass(frozen=True, slots=True)
class Carried:
    """place: of the window and its panes; room: "chats", "lab", "models", "downloads" or "settings"; page: of the
    inspector; search, scrolled: of the list of chats; unapplied: parameters of chats that were edited; settings: None
    unless shown; step: of the tour, -1 without it.
    """

    place: WindowPlace
    room: str
    page: str
    log: tuple[LogLine, ...]
    journals: Journals | None
    search: str
    scrolled: int
    writing: Writing
    unapplied: Mapping[ConversationId, Parameters]
    parameters: bool
    settings: Edits | None
    step: int

    @classmethod
    def of(cls, made: Made) -> Carried:
        """What is to be carried over. Drafts are told before."""
        parts, tour = made.parts, made.help.introduction
        page = parts.rooms.settings if parts.rooms.shows_settings else None
        timeline = parts.inspector.made_timeline
        parts.chat.tell_draft()
        return cls(
            place=made.placement.now(),
            room=_room(parts.rooms),
            page=parts.inspector.tab,
            log=parts.inspector.log.lines,
            journals=None if timeline is None else timeline.journals,
            search=parts.conversations.search.text(),
            scrolled=parts.conversations.view.verticalScrollBar().value(),
            writing=parts.chat.writing,
            unapplied=made.parameters.unapplied,
            parameters=parts.panes.shows_parameters,
            settings=page.edits if page is not None else None,
            step=tour.step if tour is not None and tour.isVisible() else -1,
        )

    def give_back(self, made: Made) -> None:
        """To new parts, which show what is known already."""
        inspector, conversations = made.parts.inspector, made.parts.conversations
        made.placement.give_widths(self.place)
        for line in self.log:
            inspector.log.append(line)
        if self.journals is not None:
            inspector.timeline.show_journals(self.journals)
        if inspector.shows_all:
            inspector.show_tab(self.page)
        conversations.search.setText(self.search)
        conversations.view.verticalScrollBar().setValue(self.scrolled)
        made.parts.chat.write_on(self.writing)
        made.parts.chat.composer.focus_edit()
        _show_room(made.parts.rooms, self.room)
        self._open_dialogs(made)

    def _open_dialogs(self, made: Made) -> None:
        if self.step >= 0:
            made.help.start_tour(step=self.step)
        made.parameters.keep_unapplied(self.unapplied)
        if self.parameters:
            made.parameters.open()
        if self.settings is not None:
            made.parts.rooms.show_settings().show_edits(self.settings)


def retire(part: QObject, window: QWidget) -> None:
    """It ends as soon as the event loop runs again, and takes no part in anything until then."""
    if isinstance(part, QWidget):
        part.hide()
    elif isinstance(part, QAction):
        window.removeAction(part)
    elif isinstance(part, QShortcut):
        part.setEnabled(False)
    window.removeEventFilter(part)
    part.deleteLater()


def _room(rooms: Rooms) -> str:
    if rooms.shows_models and rooms.models is not None:
        return "downloads" if rooms.models.shows_get else "models"
    return "lab" if rooms.shows_lab else "settings" if rooms.shows_settings else "chats"


def _show_room(rooms: Rooms, room: str) -> None:
    match room:
        case "lab":
            rooms.show_lab()
        case "models":
            rooms.show_models()
        case "downloads":
            rooms.show_get_models()
        case _:
            pass
