"""Tool servers, a section of the settings: what there is and what it costs, starting, ending, adding, importing,
and what was allowed for good.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.tools.servers import bound_to, good_name
from kvdesk.translation import marked, tr
from kvdesk.ui.tools.tool_list import ToolList
from kvdesk.ui.tools.words import is_large, place_of, price_text, state_text
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel, label, set_tone
from kvdesk.ui.widgets.input_method import composes
from kvdesk.ui.widgets.kit import Kit

EXAMPLE: Final = "uvx mcp-server-git"
_TONES: Final = {"on": "good", "failed": "danger"}
_GRANTED: Final = {
    "start": marked("{server} may start"),
    "server": marked("All tools of {server} may be called"),
    "tool": marked("{tool} of {server} may be called"),
}


class ServersSection(QWidget):
    """Follows the settings and the store."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, self._store = kit, kit.store
        self.rows: dict[str, ServerRow] = {}
        self._about = label(
            tr(
                "Servers of the Model Context Protocol give the model tools. A chat has none until you switch them on; "
                "nothing is started or called without a question, unless you allowed it for good."
            ),
            tone="secondary",
        )
        self._about.setWordWrap(True)
        self._list, self._grants = QVBoxLayout(), QVBoxLayout()
        self._list.setSpacing(8)
        self._grants.setSpacing(4)
        self.importing = QPushButton(tr("Import a list of servers…"))
        self.importing.setToolTip(tr("mcp.json of Cursor or VS Code, or Claude's configuration; nothing is started"))
        self.importing.clicked.connect(self._on_import)
        self._allowed = label(tr("Always allowed"), weight="strong")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(12)
        column.addWidget(self._about)
        column.addLayout(self._list)
        self.form = Collapsible(kit.theme, tr("Add a server"), self._make_form())
        column.addWidget(self.form)
        column.addWidget(self.importing, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._allowed)
        column.addLayout(self._grants)
        self.destroyed.connect(kit.store.listen(self._on_changed))
        self.destroyed.connect(kit.store.settings.listen(self._on_settings_changed))
        self._show_servers()
        self._show_grants()

    @property
    def words(self) -> str:
        """By which a search finds it."""
        return " ".join((tr("Tools"), "MCP", self._about.text(), tr("Add a server"), tr("Always allowed")))

    def _make_form(self) -> QWidget:
        self.name, self.place = QLineEdit(), QLineEdit()
        self.name.setMaxLength(60)
        self.place.setPlaceholderText(tr("Such as {command}").format(command=EXAMPLE))
        self.values = QPlainTextEdit()
        self.values.setProperty("boxed", True)
        self.values.setTabChangesFocus(True)
        self.values.setPlaceholderText(tr("NAME=value, one per line"))
        composes(self.values)
        self.values.setFixedHeight(self._kit.theme.text.pixelSize() * 4)
        box = QWidget()
        form = QFormLayout(box)
        form.setContentsMargins(20, 4, 0, 4)
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        for text, field in (
            (tr("Command or address"), self.place),
            (tr("Name"), self.name),
            (tr("Variables or headers"), self.values),
        ):
            caption = label(text)
            caption.setBuddy(field)
            field.setAccessibleName(text)
            form.addRow(caption, field)
        self.problem = label("", tone="danger", scale="small")
        self.problem.setWordWrap(True)
        self.problem.hide()
        self.adding = QPushButton(tr("Add"))
        self.adding.clicked.connect(self._on_add)
        form.addRow(self.problem)
        form.addRow("", self.adding)
        return box

    # --- what there is ------------------------------------------------------------------------------------------------

    def _on_changed(self, changed: Changed, _update: Update | None) -> None:
        if changed & (Changed.TOOLS | Changed.CONTEXT):
            for row in self.rows.values():
                row.show_state()

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "tool_servers" in changed:
            self._show_servers()
        if changed & {"tool_servers", "tool_grants"}:
            self._show_grants()

    def _show_servers(self) -> None:
        servers = {server.name: server for server in self._store.settings.current.tool_servers}
        for name in [name for name, row in self.rows.items() if servers.get(name) != row.server]:
            row = self.rows.pop(name)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        for i, (name, server) in enumerate(servers.items()):
            if name not in self.rows:
                self.rows[name] = ServerRow(self._kit, server)
                self._list.insertWidget(i, self.rows[name])

    def _show_grants(self) -> None:
        while (item := self._grants.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        now = self._store.settings.current
        names = {bound_to(server): server.name for server in now.tool_servers}
        for grant in now.tool_grants:
            self._grants.addWidget(_GrantRow(self._kit, grant, names.get(grant.bound, tr("a removed server"))))
        self._allowed.setVisible(bool(now.tool_grants))

    # --- adding -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_import(self) -> None:
        path = ask_for_file(self, tr("Import a list of servers"), "JSON (*.json)")
        if path is not None:
            self._kit.commands.tools.import_file(path)

    @Slot()
    def _on_add(self) -> None:
        place, values = self.place.text().strip(), _values(self.values.toPlainText())
        try:
            parts = [] if "://" in place else shlex.split(place, posix=sys.platform != "win32")
        except ValueError:
            parts = []
        if values is None or not (parts or place.startswith(("http://", "https://"))):
            self._complain(
                tr("Write each variable as NAME=value.")
                if values is None
                else tr("Write a command, or an address that begins with https:// or http://.")
            )
            return
        self._complain("")
        taken = {server.name for server in self._store.settings.current.tool_servers}
        name = good_name(self.name.text().strip() or _name_of(parts, place), taken)
        if parts:
            server = ToolServer(name=name, command=parts[0], args=tuple(parts[1:]), env=tuple(values))
        else:
            server = ToolServer(name=name, url=place, headers=tuple(values))
        self._kit.commands.tools.add(server, values)
        for field in (self.name, self.place):
            field.clear()
        self.values.clear()

    def _complain(self, sentence: str) -> None:
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))


class ServerRow(QFrame):
    """One server: its name, place, state and price, and what can be done with it."""

    def __init__(self, kit: Kit, server: ToolServer) -> None:
        super().__init__()
        self._kit, self._store, self.server = kit, kit.store, server
        self.setProperty("card", "ask")
        self._state = label("", tone="secondary", scale="small")
        self._price = label("", tone="secondary", scale="small")
        self._detail = label("", tone="secondary", scale="small")
        for one in (self._state, self._price, self._detail):
            one.setWordWrap(True)
        place = ElidedLabel(place_of(server))
        place.setProperty("tone", "secondary")
        place.setToolTip(place_of(server))
        kit.theme.give_font(place, "mono_small")
        commands = kit.commands.tools
        self.start = self._button(tr("Start") if server.command else tr("Connect"), lambda: commands.start(server.name))
        self.stop = self._button(tr("Stop"), lambda: commands.stop(server.name))
        self.remove = self._button(tr("Remove"), lambda: commands.forget(server.name))
        self.tools = ToolList(kit, server)
        self.fold = Collapsible(kit.theme, tr("Tools"), self.tools)
        head = QHBoxLayout()
        head.setSpacing(8)
        name = ElidedLabel(server.name)
        name.setProperty("weight", "strong")
        head.addWidget(name, 1)
        for button in (self.start, self.stop, self.remove):
            button.setAccessibleName(f"{button.text()}: {server.name}")
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addLayout(head)
        for widget in (self._state, place, self._detail, self._price, self.fold):
            column.addWidget(widget)
        self.show_state()

    @property
    def state(self) -> str:
        """Whether it runs, and what a person should know."""
        return self._state.text()

    @property
    def price(self) -> str:
        """What its schemas cost."""
        return self._price.text()

    @property
    def detail(self) -> str:
        """Its last words."""
        return self._detail.text()

    def show_state(self) -> None:
        store, name = self._store, self.server.name
        state, tools = store.tool_states.get(name), store.tool_lists.get(name)
        kind = state.state if state is not None else "off"
        self._state.setText(state_text(state))
        set_tone(self._state, _TONES.get(kind, "secondary"))
        version = state.version if state is not None else ""
        self._state.setToolTip(tr("Protocol {version}").format(version=version) if version else "")
        self.start.setVisible(kind in ("off", "failed"))
        self.stop.setVisible(kind in ("starting", "on"))
        self._detail.setText(state.detail.strip() if state is not None else "")
        self._detail.setVisible(bool(self._detail.text()))
        price = store.tool_prices.get(name)
        text = ""
        if tools is not None:
            text = price_text(sum(tool.name not in self.server.left_out for tool in tools), price)
        if price is not None and store.context is not None and is_large(price.n_tokens, store.context.n_ctx_seq):
            share = f"{price.n_tokens / store.context.n_ctx_seq:.0%}"
            text += "  ·  " + tr("{share} of the context: leave out tools that you do not need").format(share=share)
        self._price.setText(text)
        self._price.setVisible(bool(text))
        self.fold.setVisible(bool(tools))
        self.tools.show_tools(tools or ())

    def _button(self, text: str, act: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("scale", "small")
        button.clicked.connect(lambda _checked=False: act())
        return button


class _GrantRow(QWidget):
    def __init__(self, kit: Kit, grant: ToolGrant, server: str) -> None:
        super().__init__()
        said = tr(_GRANTED[grant.what]).format(server=server, tool=grant.tool)
        revoke = QPushButton(tr("Revoke"))
        revoke.setProperty("scale", "small")
        revoke.setAccessibleName(tr("Revoke: {what}").format(what=said))
        revoke.clicked.connect(lambda _checked=False: kit.commands.tools.revoke(grant))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(ElidedLabel(said), 1)
        row.addWidget(revoke)


def _values(text: str) -> dict[str, str] | None:
    """Of lines NAME=value or Name: value; None where one is neither."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        at = min((i for i in (line.find("="), line.find(":")) if i > 0), default=-1)
        if at < 0:
            return None
        found[line[:at].strip()] = line[at + 1 :].strip()
    return found


def _name_of(parts: list[str], place: str) -> str:
    """A name from a command or an address: the last part that says something."""
    if not parts:
        return place.split("://", 1)[1].split("/", 1)[0]
    words = [part for part in parts if not part.startswith("-")]
    return next((word for word in words if "mcp" in word or "server" in word), words[-1] if words else parts[0])
