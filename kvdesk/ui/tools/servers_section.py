"""Tool servers, a section of the settings: what there is and what it costs, starting, ending, adding, importing,
and what was allowed for good.
"""

import re
from typing import Final

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFormLayout, QFrame, QLineEdit, QWidget

from kvdesk.session import Changed
from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.tools.servers import bound_to, good_name, words_of
from kvdesk.translation import marked, tr
from kvdesk.ui.tools.tool_list import ToolList
from kvdesk.ui.tools.words import is_large, place_of, price_text, state_text
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel, has_focus, label, push_button, set_tone, show_text
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.written import text_box

EXAMPLE: Final = "uvx mcp-server-git"
_PROGRAM: Final = re.compile(r"\.(py|[cm]?js|ts|exe|sh)$")
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
        self.grants: dict[tuple[ToolGrant, str], _GrantRow] = {}
        self._about = label(
            tr(
                "Servers of the Model Context Protocol give the model tools. A chat has none until you switch them on; "
                "nothing is started or called without a question, unless you always allow it."
            ),
            tone="secondary",
            wrap=True,
        )
        self._list, self._grants = boxes.column(spacing=8), boxes.column(spacing=4)
        self.importing = push_button(
            tr("Import a list of servers…"),
            tip=tr("mcp.json of Cursor or VS Code, or Claude's configuration; nothing is started"),
            clicked=self._on_import,
        )
        self._allowed = label(tr("Always allowed"), weight="strong")
        self.form = Collapsible(kit.theme, tr("Add a server"), self._make_form())
        boxes.column(
            self._about,
            self._list,
            self.form,
            (self.importing, 0, Qt.AlignmentFlag.AlignLeft),
            self._allowed,
            self._grants,
            on=self,
            margins=(0, 0, 0, 8),
            spacing=12,
        )
        self.destroyed.connect(kit.store.listen(self._on_changed, Changed.TOOLS | Changed.CONTEXT))
        self.destroyed.connect(kit.store.settings.listen(self._on_settings_changed))
        self._show_servers()
        self._show_grants()

    @property
    def words(self) -> str:
        """By which a search finds it."""
        return " ".join((tr("Tools"), "MCP", self._about.text(), tr("Add a server"), tr("Always allowed")))

    def focus_first(self) -> None:
        """One starts a server, or adds the first."""
        first = next(iter(self.rows.values()), None)
        if first is None:
            self.form.button.setChecked(True)
        (self.place if first is None else first.main).setFocus()

    def _make_form(self) -> QWidget:
        self.name, self.place = QLineEdit(), QLineEdit()
        self.name.setMaxLength(60)
        self.place.setPlaceholderText(tr("For example {command}").format(command=EXAMPLE))
        self.values = text_box(placeholder=tr("NAME=value, one per line"))
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
        for line in (self.place, self.name):
            line.returnPressed.connect(self._on_add)
        self.problem = label("", tone="danger", scale="small", wrap=True)
        self.problem.hide()
        self.adding = push_button(tr("Add"), clicked=self._on_add)
        form.addRow(self.problem)
        form.addRow("", self.adding)
        return box

    # --- what there is ------------------------------------------------------------------------------------------------

    def _on_changed(self, *_heard: object) -> None:
        for row in self.rows.values():
            row.show_state()

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "tool_servers" in changed:
            self._show_servers()
        if changed & {"tool_servers", "tool_grants"}:
            self._show_grants()

    def _show_servers(self) -> None:
        servers = {server.name: server for server in self._store.settings.current.tool_servers}
        boxes.show_rows(self._list, self.rows, list(servers), lambda name: ServerRow(self._kit, name))
        for name, server in servers.items():
            self.rows[name].show_server(server)

    def _show_grants(self) -> None:
        now = self._store.settings.current
        names = {bound_to(server): server.name for server in now.tool_servers}
        shown = [(grant, names.get(grant.bound, tr("a removed server"))) for grant in now.tool_grants]
        boxes.show_rows(self._grants, self.grants, shown, lambda key: _GrantRow(self._kit, *key))
        self._allowed.setVisible(bool(now.tool_grants))

    # --- adding -------------------------------------------------------------------------------------------------------

    def _on_import(self) -> None:
        path = ask_for_file(self, tr("Import a list of servers"), "JSON (*.json)")
        if path is not None:
            self._kit.commands.tools.import_file(path)

    def _on_add(self) -> None:
        place, values = self.place.text().strip(), _values(self.values.toPlainText())
        try:
            parts = [] if "://" in place else words_of(place)
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
        if (row := self.rows.get(name)) is not None:
            self.form.button.setChecked(False)
            QTimer.singleShot(0, row.main, row.main.setFocus)  # another Enter starts it

    def _complain(self, sentence: str) -> None:
        show_text(self.problem, sentence)


class ServerRow(QFrame):
    """One server: its name, place, state and price, and what can be done with it."""

    def __init__(self, kit: Kit, name: str) -> None:
        super().__init__()
        self._store, self._name, self._commands = kit.store, name, kit.commands.tools
        self._server, self._runs = ToolServer(name=name), False
        self.setProperty("card", "ask")
        self._state, self._price, self._detail = (
            label("", tone="secondary", scale="small", wrap=True) for _ in range(3)
        )
        self._place = ElidedLabel(tone="secondary")
        kit.theme.give_font(self._place, "mono_small")
        self.main = push_button("", scale="small", clicked=self._on_main_clicked)
        self.sign_out = push_button(tr("Sign out"), scale="small", clicked=lambda: self._commands.sign_out(name))
        self.remove = push_button(tr("Remove"), scale="small", clicked=lambda: self._commands.forget(name))
        for button in (self.sign_out, self.remove):
            button.setAccessibleName(f"{button.text()}: {name}")
        self.tools = ToolList(kit, name)
        self.fold = Collapsible(kit.theme, tr("Tools"), self.tools)
        title = ElidedLabel(name, weight="strong")
        boxes.column(
            boxes.row((title, 1), self.main, self.sign_out, self.remove, spacing=8),
            self._state,
            self._place,
            self._detail,
            self._price,
            self.fold,
            on=self,
            margins=(12, 8, 12, 8),
            spacing=4,
        )

    def show_server(self, server: ToolServer) -> None:
        """As it is configured now."""
        self._server = server
        self._place.setText(place_of(server))
        self._place.setToolTip(place_of(server))
        self.show_state()

    def show_state(self) -> None:
        store, name, server = self._store, self._name, self._server
        state, tools = store.tool_states.get(name), store.tool_lists.get(name)
        kind = state.state if state is not None else "off"
        self._state.setText(state_text(state))
        set_tone(self._state, _TONES.get(kind, "secondary"))
        version = state.version if state is not None else ""
        self._state.setToolTip(tr("Protocol {version}").format(version=version) if version else "")
        self._runs = kind in ("starting", "on")
        self.main.setText(tr("Stop") if self._runs else tr("Start") if server.command else tr("Connect"))
        self.main.setAccessibleName(f"{self.main.text()}: {name}")
        if not server.signed_in and has_focus(self.sign_out):
            self.main.setFocus()
        self.sign_out.setVisible(server.signed_in)
        show_text(self._detail, state.detail.strip() if state is not None else "")
        text, price, context = "", store.tool_prices.get(name), store.context
        if tools is not None:
            text = price_text(sum(tool.name not in server.left_out for tool in tools), price)
        tone = "secondary"
        if price is not None and context is not None and is_large(price.n_tokens, context.n_ctx_seq):
            share, tone = f"{price.n_tokens / context.n_ctx_seq:.0%}", "warning"
            text += "  ·  " + tr("{share} of the context: leave out tools that you do not need").format(share=share)
        show_text(self._price, text, tone)
        self.fold.setVisible(bool(tools))
        self.tools.show_tools(tools or (), server.left_out)

    def _on_main_clicked(self) -> None:
        (self._commands.stop if self._runs else self._commands.start)(self._name)


class _GrantRow(QWidget):
    def __init__(self, kit: Kit, grant: ToolGrant, server: str) -> None:
        super().__init__()
        self.said = said = tr(_GRANTED[grant.what]).format(server=server, tool=grant.tool)
        revoke = push_button(
            tr("Revoke"),
            scale="small",
            name=tr("Revoke: {what}").format(what=said),
            clicked=lambda: kit.commands.tools.revoke(grant),
        )
        boxes.row((ElidedLabel(said), 1), revoke, on=self, margins=0)


def _values(text: str) -> dict[str, str] | None:
    """Of lines NAME=value or Name: value; None if one is neither."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        at = min((i for i in (line.find("="), line.find(":")) if i > 0), default=-1)
        if at < 0:
            return None
        found[line[:at].strip()] = line[at + 1 :].strip()
    return found


def _name_of(parts: list[str], place: str) -> str:
    """A name from a command or an address: the last part that says something, without its folder."""
    if not parts:
        return place.split("://", 1)[1].split("/", 1)[0]
    words = [_PROGRAM.sub("", re.split(r"[\\/]", part)[-1]) for part in parts if not part.startswith("-")]
    return next((word for word in words if "mcp" in word or "server" in word), words[-1] if words else parts[0])
