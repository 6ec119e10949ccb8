"""Which servers' tools a chat has: a popup with a line for each server, its price before it is switched on, and what
switching it off reads again. Where all of them take more than a tenth of the context, the largest is proposed.
"""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.protocol.features import Feature
from kvdesk.session import Changed
from kvdesk.translation import tr
from kvdesk.ui.tools.words import again_text, is_large, place_of, price_text, state_text
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, plain_tip, push_button, show_text
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.popup import Popup
from kvdesk.ui.widgets.style.sizes import BOX_PX
from kvdesk.ui.widgets.style.theme import Theme

_WIDTH: Final = 420
_LEFT: Final = Qt.AlignmentFlag.AlignLeft


class ToolsChoice(Popup):
    """A popup under `anchor`; filled when it is opened, and as long as it is open."""

    def __init__(self, kit: Kit, anchor: QWidget) -> None:
        super().__init__(kit.theme, anchor, _WIDTH)
        self._kit, self._store = kit, kit.store
        self.setAccessibleName(tr("Tools of this chat"))
        self._lines: dict[str, _Line] = {}
        self._missing, self._none, self._large = (
            label("", tone=tone, scale="small", wrap=True) for tone in ("secondary", "secondary", "warning")
        )
        self._list = boxes.column(spacing=4)
        boxes.column(
            label(tr("Tools of this chat"), weight="strong"),
            self._missing,
            self._none,
            self._list,
            self._large,
            (push_button(tr("Set up servers…"), quiet=True, clicked=self._on_setup_clicked), 0, _LEFT),
            on=self,
            margins=12,
            spacing=4,
        )
        self.destroyed.connect(
            kit.store.listen(self._on_changed, Changed.TOOLS | Changed.CONVERSATIONS | Changed.RUNNING)
        )

    @property
    def boxes(self) -> dict[str, QCheckBox]:
        """By the names of the servers."""
        return {name: line.box for name, line in self._lines.items()}

    def choose(self) -> None:
        """Show it."""
        self.show_servers()
        self.open_at(next(iter(self.boxes.values()), None))

    def _on_changed(self, *_heard: object) -> None:
        if self.isVisible():
            self.show_servers()

    def show_servers(self) -> None:
        """Everything as the store has it."""
        store = self._store
        servers = store.settings.current.tool_servers
        missing = store.missing(Feature.TOOLS)
        show_text(self._missing, missing or (tr("Wait until all answers have ended") if store.is_answering else ""))
        show_text(self._none, "" if servers else tr("No tool server is set up."))
        names = [server.name for server in servers]
        boxes.show_rows(self._list, self._lines, names, lambda name: _Line(self._kit.theme, name, self._switch))
        chosen = store.shown.tools if store.shown is not None else ()
        n_tokens = 0
        for server in servers:
            line, is_on = self._lines[server.name], server.name in chosen
            line.box.setChecked(is_on)
            line.box.setEnabled(not missing and store.idle is not None)
            line.box.setToolTip(plain_tip(place_of(server)))
            line.show_about(self._about(server.name, server.left_out, is_on=is_on))
            if is_on and (price := store.chat_prices.get(server.name)) is not None:
                n_tokens += price.n_tokens
        show_text(self._large, self._warning(n_tokens))
        self.fit()

    def _about(self, name: str, left_out: tuple[str, ...], *, is_on: bool) -> str:
        store = self._store
        tools = store.tool_lists.get(name)
        if tools is None:
            state = store.tool_states.get(name)
            unknown = tr("Not known yet: the server lists them when you switch it on.")
            return state_text(state) if state is not None else unknown
        prices = store.chat_prices if is_on else store.tool_prices
        price = prices.get(name)
        n = sum(tool.name not in left_out for tool in tools)
        text = price_text(n, price)
        return f"{text}\n{again_text(price)}" if is_on and price is not None else text

    def _warning(self, n_tokens: int) -> str:
        context, prices = self._store.context, self._store.chat_prices
        if context is None or not prices or not is_large(n_tokens, context.n_ctx_seq):
            return ""
        largest = max(prices.values(), key=lambda price: price.n_tokens)
        return tr("Their schemas take {share} of the context. Leave out {server}, or some of its tools.").format(
            share=f"{n_tokens / context.n_ctx_seq:.0%}", server=largest.server
        )

    def _switch(self, name: str, on: bool) -> None:
        if self._store.selected is not None:
            self._kit.commands.tools.switch(self._store.selected, name, on=on)

    def _on_setup_clicked(self) -> None:
        self.close()
        self._kit.actions.run("app.tools")


class _Line(QWidget):
    """One server, and what is known of it."""

    def __init__(self, theme: Theme, name: str, switch: Callable[[str, bool], None]) -> None:
        super().__init__()
        self._theme = theme
        self.box = QCheckBox(name)
        self.box.clicked.connect(lambda on: switch(name, on))
        self._about = label("", tone="secondary", scale="small", wrap=True)
        boxes.column(self.box, self._about, on=self, margins=0, spacing=4)

    def show_about(self, text: str) -> None:
        self._about.setText(text)
        self._about.setContentsMargins(self._theme.px(BOX_PX), 0, 0, 4)
        self.box.setAccessibleDescription(text)
