"""Connecting to a server, a section of the settings: its address, key and name, what a test found there, and the known
servers.
"""

from collections.abc import Sequence

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFormLayout, QLineEdit, QWidget

from kvdesk.errors import UserError
from kvdesk.protocol.servers import ServerFound, is_readable_on_the_way, server_url
from kvdesk.session import Commands
from kvdesk.settings import KnownServer
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import label, push_button, show_text


class ConnectSection(QWidget):
    """Passive: shows what its methods get."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._servers: tuple[KnownServer, ...] = ()
        self._asked = ""  # the server whose key was asked for
        self._is_alone = False
        self._is_key_read = True  # or there is none to be read
        self._is_typed = False  # something, since a server was chosen
        self._about = label(
            tr(
                "Chats are answered there: by llama-server, Ollama, LM Studio, vLLM, SGLang, another kvdesk, or any "
                "server that speaks OpenAI's protocol. Your messages are sent to it."
            ),
            tone="secondary",
            wrap=True,
        )
        self.known = Choice(name=tr("Known servers"))
        self.url = QLineEdit(placeholderText=tr("Such as {address}").format(address="192.168.1.5:8080"))
        self.key = QLineEdit(echoMode=QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText(tr("None, if the server asks for none"))
        self.name = QLineEdit(maxLength=60, placeholderText=tr("As its address"))
        self.model = Choice()
        self.model.setEditable(True)
        self._form = QFormLayout(horizontalSpacing=16, verticalSpacing=8)
        self._form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for text, field in (
            (tr("Known servers"), self.known),
            (tr("Address"), self.url),
            (tr("Key"), self.key),
            (tr("Name"), self.name),
            (tr("Model"), self.model),
        ):
            field.setAccessibleName(text)
            caption = label(text)
            caption.setBuddy(field)
            self._form.addRow(caption, field)
        line = self.model.lineEdit()
        if line is not None:
            line.setPlaceholderText(tr("The first one"))
            line.setAccessibleName(tr("Model"))
            line.returnPressed.connect(self._on_connect_clicked)
            line.textEdited.connect(self._on_typed)
        for field in (self.url, self.key, self.name):
            field.returnPressed.connect(self._on_connect_clicked)
            field.textEdited.connect(self._on_typed)
        self._sentence = label("", wrap=True, selectable=True)
        self.forget_button = push_button(tr("Remove from the list"), clicked=self._on_forget_clicked)
        self.test_button = push_button(tr("Test"), clicked=self._on_test_clicked)
        self.connect_button = push_button(tr("Connect"), primary=True, clicked=self._on_connect_clicked)
        buttons = boxes.row(self.forget_button, boxes.Stretch(1), self.test_button, self.connect_button, spacing=8)
        boxes.column(self._about, self._form, buttons, self._sentence, on=self, margins=(0, 0, 0, 8), spacing=12)
        self.known.activated.connect(self._on_chosen)
        self.url.textEdited.connect(self._on_edited)
        self._on_edited()

    @property
    def words(self) -> str:
        """By which a search finds it."""
        return " ".join((tr("Connect to a server"), self._about.text(), tr("Address"), tr("Key"), tr("Known servers")))

    def focus_first(self) -> None:
        """One types an address, or connects to the server that is shown."""
        (self.connect_button if self.url.text() else self.url).setFocus()

    def set_alone(self, is_alone: bool) -> None:
        """Whether one came for it; not where it is one of the sections that a search found."""
        self._is_alone = is_alone
        self._ask_key()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask_key()

    def show_servers(self, servers: Sequence[KnownServer]) -> None:
        """The servers that are known, the last one first, of which that is chosen; what was typed stays."""
        self._servers = tuple(servers)
        chosen = self.known.currentData()
        self.known.clear()
        for server in self._servers:
            self.known.addItem(server.name or server.url, server.url)
        self.known.addItem(tr("A new server"), "")
        self._form.setRowVisible(self.known, bool(self._servers))
        if not self._is_typed:
            self.known.setCurrentIndex(0)
            self._on_chosen(0)
            return
        index = self.known.findData(chosen)
        self.known.setCurrentIndex(index if index >= 0 else self.known.count() - 1)
        self._on_edited()

    def show_key(self, url: str, key: str) -> None:
        """The key that is known for a server, where it is still the chosen one and nothing is typed."""
        if self.known.currentData() == url == self.url.text():
            self._is_key_read = True
            if not self.key.text():
                self.key.setText(key)

    def show_asking(self) -> None:
        self._say(tr("Asking the server…"))

    def show_found(self, found: ServerFound) -> None:
        """What a test found: the kind, what it shows and what it does not, and its models to choose from."""
        chosen = self.model.currentText()
        self.model.clear()
        self.model.addItems(list(found.models))
        self.model.setCurrentText(chosen if (self._is_typed and chosen) or chosen in found.models else found.models[0])
        n = tr("{n} models.").format(n=len(found.models)) if len(found.models) > 1 else ""
        lines = (*found.facts, n, found.limit, *self._warning())
        shows_less = bool(found.limit) and found.kind != "llama-server"  # none of those shows more
        self._say("\n".join(filter(None, lines)), "warning" if shows_less else "good")

    def show_problem(self, sentence: str, detail: str = "") -> None:
        """What is wrong with the server, or with what was typed."""
        self._say(sentence, "danger")
        self._sentence.setToolTip(detail)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _on_chosen(self, index: int) -> None:
        server = self._servers[index] if 0 <= index < len(self._servers) else KnownServer()
        self.url.setText(server.url)
        self.name.setText(server.name)
        self.key.clear()
        self.model.clear()
        self.model.setEditText(server.model)
        self._say("")
        self._asked = ""
        self._is_key_read, self._is_typed = not server.url, False
        self._on_edited()
        self._ask_key()

    def _ask_key(self) -> None:
        """Only once one came to see it: a keyring may ask the person for a password."""
        url = self.known.currentData() or ""
        if self._is_alone and self.isVisible() and url != self._asked:
            self._asked = url
            if url:
                self._commands.servers.read_key(url)

    def _on_typed(self) -> None:
        self._is_typed = True

    def _on_edited(self) -> None:
        there = bool(self.url.text().strip())
        self.test_button.setEnabled(there)
        self.connect_button.setEnabled(there)
        self.forget_button.setVisible(bool(self.known.currentData()))

    def _on_test_clicked(self) -> None:
        if (url := self._address()) is not None:
            self.show_asking()
            self._commands.servers.test(url, self._key(url))

    def _on_connect_clicked(self) -> None:
        if (url := self._address()) is not None:
            server = KnownServer(url=url, name=self.name.text().strip(), model=self.model.currentText().strip()[:500])
            key, self._is_typed = self._key(url), False
            self._commands.servers.connect_to(server, key)

    def _on_forget_clicked(self) -> None:
        self._is_typed = False
        self._commands.servers.forget(self.known.currentData())

    def _key(self, url: str) -> str | None:
        """The key that is shown; None if that of this server was not read yet, and none is typed."""
        key = self.key.text().strip()
        return None if not key and not self._is_key_read and url == self.known.currentData() else key

    def _address(self) -> str | None:
        """What is typed as an address; None, and said, where it is none."""
        try:
            return server_url(self.url.text())
        except UserError as error:
            self.show_problem(str(error), error.detail)
            self.url.setFocus()
            return None

    def _warning(self) -> tuple[str, ...]:
        try:
            readable = is_readable_on_the_way(server_url(self.url.text()))
        except UserError:
            return ()
        said = tr("This connection is not encrypted: anyone on the network can read your chats and API key.")
        return (said,) if readable else ()

    def _say(self, sentence: str, tone: str = "secondary") -> None:
        show_text(self._sentence, sentence, tone)
        self._sentence.setAccessibleName(sentence)
        self._sentence.setToolTip("")
