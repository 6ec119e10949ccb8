"""Which servers' tools a chat has: a popup with a line for each server, its price before it is switched on, and what
switching it off reads again. Where all of them take more than a tenth of the context, the largest is proposed.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.protocol.features import Feature
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.tools.words import again_text, is_large, place_of, price_text, state_text
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, plain_tip, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.popup import Popup
from kvdesk.ui.widgets.sizes import BOX_PX

_WIDTH: Final = 420


class ToolsChoice(Popup):
    """A popup under `anchor`; filled when it is opened, and as long as it is open."""

    def __init__(self, kit: Kit, anchor: QWidget) -> None:
        super().__init__(anchor, kit.theme.px(_WIDTH))
        self._kit, self._store = kit, kit.store
        self.setAccessibleName(tr("Tools of this chat"))
        self.boxes: dict[str, QCheckBox] = {}
        self.warning = ""
        self._column = boxes.column(on=self, margins=12, spacing=4)
        self.destroyed.connect(kit.store.listen(self._on_changed))

    @Slot()
    def choose(self) -> None:
        """Show it."""
        self.show_servers()
        self.open_at(next(iter(self.boxes.values()), None))

    def _on_changed(self, changed: Changed, _update: Update | None) -> None:
        if self.isVisible() and changed & (Changed.TOOLS | Changed.CONVERSATIONS):
            focus = next((name for name, box in self.boxes.items() if box.hasFocus()), None)
            self.show_servers()
            if focus in self.boxes:
                self.boxes[focus].setFocus()

    def show_servers(self) -> None:
        """Everything as the store has it."""
        boxes.clear(self._column)
        self.boxes = {}
        store = self._store
        self._column.addWidget(label(tr("Tools of this chat"), weight="strong"))
        servers = store.settings.current.tool_servers
        if missing := store.missing(Feature.TOOLS):
            self._add_sentence(missing)
        if not servers:
            self._add_sentence(tr("No tool server is set up."))
        chosen = store.shown.tools if store.shown is not None else ()
        n_tokens = 0
        for server in servers:
            box = self.boxes[server.name] = QCheckBox(server.name)
            box.setChecked(server.name in chosen)
            box.setEnabled(not missing and store.idle is not None)
            box.setToolTip(plain_tip(place_of(server)))
            box.clicked.connect(partial(self._switch, server.name))
            self._column.addWidget(box)
            about = self._about(server.name, server.left_out, is_on=server.name in chosen)
            box.setAccessibleDescription(about)
            self._add_sentence(about, indent=True)
            if server.name in chosen and (price := store.chat_prices.get(server.name)) is not None:
                n_tokens += price.n_tokens
        self.warning = self._warning(n_tokens)
        if self.warning:
            self._add_sentence(self.warning, tone="warning")
        setup = push_button(tr("Set up servers…"), quiet=True, clicked=self._on_setup_clicked)
        self._column.addWidget(setup, 0, Qt.AlignmentFlag.AlignLeft)
        self.adjustSize()

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

    def _add_sentence(self, text: str, *, indent: bool = False, tone: str = "secondary") -> None:
        shown = label(text, tone=tone, scale="small", wrap=True)
        shown.setContentsMargins(self._kit.theme.px(BOX_PX) if indent else 0, 0, 0, 4)
        self._column.addWidget(shown)

    def _switch(self, name: str, on: bool) -> None:
        if self._store.selected is not None:
            self._kit.commands.tools.switch(self._store.selected, name, on=on)

    @Slot()
    def _on_setup_clicked(self) -> None:
        self.close()
        self._kit.actions.run("app.tools")
