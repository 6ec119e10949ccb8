"""Actions of the window: what each is called, its keys, when it can be done, and what it does.

`action_table` declares them. Their keys work everywhere in the window; menus, tooltips of buttons, the command palette
and the list of shortcuts are made from the same values.
"""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.controls import plain_tip
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    id       a name that stays, such as "chat.new"
    label    what it does, in a few words: verb first
    run      does it
    keys     Qt's portable text, such as "Ctrl+N"; several are parted by "; ". Empty for none
    tip      one sentence more, where the label does not say all
    refusal  why it cannot be done now, in one sentence; empty if it can
    everywhere   its keys work in the dialogs of the window too
    """

    id: str
    label: str
    run: Callable[[], object]
    keys: str = ""
    tip: str = ""
    refusal: Callable[[], str] = lambda: ""
    everywhere: bool = False

    @property
    def sequences(self) -> list[QKeySequence]:
        return QKeySequence.listFromString(self.keys) if self.keys else []

    @property
    def all_keys(self) -> str:
        """All of its keys as this system writes them."""
        return "  ".join(one.toString(QKeySequence.SequenceFormat.NativeText) for one in self.sequences)

    @property
    def shown_keys(self) -> str:
        """The first of its keys as this system writes them; empty if it has none."""
        return self.sequences[0].toString(QKeySequence.SequenceFormat.NativeText) if self.keys else ""


@dataclass(frozen=True, slots=True)
class ActionGroup:
    """Actions that belong together, under one heading."""

    title: str
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Submenu:
    """Ids of actions in a submenu."""

    label: str
    names: tuple[str, ...]


class ActionSet(QObject):
    """The actions of one window. `refused` gets the reason why an action cannot be done."""

    def __init__(self, window: QWidget, refused: Callable[[str], object]) -> None:
        super().__init__(window)
        self._window = window
        self.groups: tuple[ActionGroup, ...] = ()
        self.refuse = refused
        self.asked_at: QWidget | None = None
        """The button whose popup an action is to open, while it runs; None: it opens where it always does."""
        self._by_id: dict[str, Action] = {}

    def add(self, *groups: ActionGroup) -> None:
        """Once the parts are made that they work with; whatever runs one by its id can be made before."""
        self.groups += groups
        for action in (action for group in groups for action in group.actions):
            self._by_id[action.id] = action
            if action.keys:
                keys = QAction(action.label, self._window)
                keys.setShortcuts(action.sequences)
                if action.everywhere:
                    keys.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
                keys.triggered.connect(partial(self._run, action))
                self._window.addAction(keys)

    def __getitem__(self, name: str) -> Action:
        """The action with this id. Raises KeyError."""
        return self._by_id[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_id

    def run(self, name: str, _checked: bool = False, *, at: QWidget | None = None) -> None:
        """Do it, or say why not. `at`: as `asked_at`. Raises KeyError without an action of this id."""
        self.asked_at = at
        try:
            self._run(self._by_id[name])
        finally:
            self.asked_at = None

    def fill_menu(self, menu: QMenu, *names: str | Submenu) -> None:
        """Add actions as they are now; "" is a line between two."""
        show_tips_of(menu)
        for name in names:
            if isinstance(name, Submenu):
                self.fill_menu(menu.addMenu(name.label), *name.names)
                continue
            if not name:
                menu.addSeparator()
                continue
            if (action := self._by_id.get(name)) is None:
                continue  # of a slice that is left out
            why = action.refusal()
            line = menu.addAction(f"{action.label}\t{action.shown_keys}".rstrip(), partial(self._run, action))
            line.setEnabled(not why)
            line.setToolTip(plain_tip(why or action.tip or action.label))

    def name_button(self, button: QWidget, name: str) -> None:
        """Give a button the name of its action, and its keys in the tooltip."""
        action = self._by_id[name]
        button.setAccessibleName(action.label)
        said = action.tip or action.label
        button.setToolTip(f"{said} ({action.shown_keys})" if action.shown_keys else said)

    def _run(self, action: Action, _checked: bool = False) -> None:
        if why := action.refusal():
            self.refuse(why)
        else:
            action.run()
