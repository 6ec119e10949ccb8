"""What every part of the window is given, the `Kit`; and what one is declared with: a room, a page of the inspector, a
section of the settings, or a slice, which a build can do without and which brings any of these.

The slices are the lines of `ui.shell.slices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kvdesk.protocol.features import Feature
from kvdesk.session import Commands, Store
from kvdesk.ui.widgets.actions import Action, ActionSet
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Room:
    """Something in the place of the conversations.

    make    makes its widget, when it is first shown: importing the laboratory's plots takes 0.4 s
    first   the part of it where the keys go when it is shown
    leave   Esc: whether a question of the room was answered with no, so that it stays; None: Esc does nothing, since
            a result that one reads is not to be lost by a key that closes other things
    """

    make: Callable[[Kit], QWidget]
    first: Callable[[Any], QWidget]
    leave: Callable[[Any], bool] | None = lambda _: False


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the inspector.

    label       on its tab
    needs       the feature of the back end without which it has nothing to show; None: it always has
    make        makes its widget
    late        made, and its modules imported, when it is first shown or has something to take
    replaces    the page whose place it takes where the back end has what it needs; else it has no tab
    after       the page that it comes behind, of a slice that replaces none
    takes       events that are given to the method `take` of its widget, shown or not
    """

    label: str
    needs: Feature | None
    make: Callable[[Kit], QWidget]
    late: bool = False
    replaces: str = ""
    after: str = ""
    takes: type | None = None


class SectionWidget(QWidget):
    """What is above the settings of a section, and `below` them. `words`: by which a search finds both."""

    locked = Signal(str)
    """Why the settings cannot be changed now; "" if they can."""
    below: QWidget
    words: str

    def focus_first(self) -> None:
        """The keys go where one begins."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the settings.

    title   its heading
    table   the field of `Settings` with what is chosen there, and its type
    make    makes what is above that; it is given what applies all that is edited, and says which entry is invalid
    """

    title: str
    table: str
    model: type[BaseModel]
    make: Callable[[Kit, Callable[[], str]], SectionWidget]


class Shows(Protocol):
    """What shows the rooms of the window."""

    def toggle(self, name: str) -> None:
        """Show a room, or the conversations."""

    def show_section(self, table: str) -> None:
        """Show the section of the settings with this table."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part that a build can do without. What it asks of the application is a class of `session.features`, and is done
    by its controller in `app.slices.controllers`.

    name     of its controller
    rooms    by their names
    actions  each by the id of the one that it follows
    sidebar  makes its button over the chats
    status   makes its part of the status line
    colours  properties that can colour the map (`ColourBy`) of which it finds out what there is to show
    legend   makes what is over the messages while it colours their words
    """

    name: str
    rooms: Mapping[str, Room] = {}
    pages: tuple[Page, ...] = ()
    section: Section | None = None
    actions: Callable[[Shows], Mapping[str, Action]] = lambda _: {}
    sidebar: Callable[[Kit], QWidget] | None = None
    status: Callable[[Kit], QWidget] | None = None
    colours: tuple[str, ...] = ()
    legend: Callable[[Kit], QWidget] | None = None


@dataclass(frozen=True, slots=True)
class Kit:
    """A part reads `store`, listens to it, calls `commands`, and runs what other parts do as an action, by its id."""

    theme: Theme
    store: Store
    commands: Commands
    actions: ActionSet
    slices: tuple[Slice, ...] = ()

    def act(self, name: str) -> Callable[[], None]:
        """Runs an action, or shows why it cannot be done: for a button or a line of a menu."""
        return partial(self.actions.run, name)
