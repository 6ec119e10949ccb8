"""Before a server is started: the whole command or address, what it gets, what it may do, and the choice. Before a
person signs in at one: where.
"""

from urllib.parse import urlsplit

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QFrame, QLabel, QWidget

from kvdesk.settings import ToolServer
from kvdesk.tools.servers import visible
from kvdesk.translation import tr
from kvdesk.ui.tools.words import place_of
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.dialog import Dialog, facts, sentence
from kvdesk.ui.widgets.style.theme import Theme


class _Question(Dialog):
    """The default is no."""

    def _ask(self, yes: str) -> None:
        """Below all that is in the column."""
        self.column.addStretch(1)
        self.yes = self.add_primary(yes)
        self.no = self.buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.no.setDefault(True)
        self.buttons.accepted.connect(self.accept)
        self.no.setFocus()


class ConsentDialog(_Question):
    """Nothing is started while it is open. Esc and closing it mean no."""

    answered = Signal(bool, bool)
    """(yes, for good): sent once."""

    def __init__(self, theme: Theme, parent: QWidget | None, server: ToolServer) -> None:
        title = (tr("Start the server “{name}”?") if server.command else tr("Connect to the server “{name}”?")).format(
            name=server.name
        )
        super().__init__(theme, parent, title)
        self._done = False
        self.column.addWidget(label(title, scale="large", wrap=True))
        lead = tr("This command runs on your computer:") if server.command else tr("kvdesk connects to this address:")
        self.column.addWidget(sentence(lead))
        self.place = label(place_of(server), wrap=True, selectable=True)
        self.place.setAccessibleName(tr("Command") if server.command else tr("Address"))
        self.column.addWidget(_card(theme, self.place))
        rows = []
        if server.command:
            rows.append((tr("Folder"), server.folder or tr("Your home folder")))
            rows.append((tr("Variables"), ", ".join(server.env) or tr("Only those that every program needs")))
        else:
            rows.append((tr("Headers"), ", ".join(server.headers) or tr("None")))
        self.column.addLayout(facts(rows))
        may = (
            tr(
                "It runs as you: it can read, change and send whatever you can. kvdesk does not limit it. "
                "It ends with kvdesk."
            )
            if server.command
            else tr(
                "It gets what the model writes into the arguments of a call. Your chats are not sent to it otherwise."
            )
        )
        self.column.addWidget(sentence(may))
        self.column.addWidget(sentence(tr("kvdesk asks before each call of its tools, unless you always allow it.")))
        self.for_good = QCheckBox(
            tr("Do not ask again for this command") if server.command else tr("Do not ask again for this address")
        )
        self.column.addWidget(self.for_good)
        self._ask(tr("Start") if server.command else tr("Connect"))
        self.finished.connect(self._on_finished)

    def _on_finished(self, result: int) -> None:
        if not self._done:
            self._done = True
            self.answered.emit(result == self.DialogCode.Accepted, self.for_good.isChecked())
        self.deleteLater()


class SignInDialog(_Question):
    """No page is opened while it is open. Esc and closing it mean no."""

    answered = Signal(bool)
    """Sent once."""

    def __init__(self, theme: Theme, parent: QWidget | None, server: str, address: str) -> None:
        title = tr("Sign in at {host}?").format(host=visible(urlsplit(address).netloc))
        super().__init__(theme, parent, title)
        self.column.addWidget(label(title, scale="large", wrap=True))
        asks = tr("The server {name} wants you to sign in. Your browser opens this page, and returns to kvdesk:")
        self.column.addWidget(sentence(asks.format(name=server)))
        self.place = label(visible(address.partition("?")[0]), wrap=True, selectable=True)
        self.place.setAccessibleName(tr("Address"))
        self.column.addWidget(_card(theme, self.place))
        kept = tr("What you allow there is kept in the system's keyring until you sign out or remove the server.")
        self.column.addWidget(sentence(kept))
        self._ask(tr("Open the page"))
        self.finished.connect(self._on_finished)

    def _on_finished(self, result: int) -> None:
        self.answered.emit(result == self.DialogCode.Accepted)
        self.deleteLater()


def _card(theme: Theme, place: QLabel) -> QFrame:
    """All of it: what does not fit in a line is broken, never cut."""
    theme.give_font(place, "mono_small")
    card = QFrame()
    card.setProperty("card", "code")
    boxes.column(place, on=card, margins=(12, 8, 12, 8))
    return card
