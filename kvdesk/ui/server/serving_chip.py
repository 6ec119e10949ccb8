"""In the status line: where other programs are served, and how many of their requests run."""

from PySide6.QtCore import Qt

from kvdesk.session import Changed
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedButton
from kvdesk.ui.widgets.kit import Kit


class ServingChip(ElidedButton):
    """Hidden while nobody is served."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(tr("Serve on this computer"), scale="tiny")
        self._store = kit.store
        self.setObjectName("servingChip")
        self.setProperty("chip", True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleDescription(tr("Opens “Serve on this computer”"))
        self.clicked.connect(kit.act("app.serve"))
        self.destroyed.connect(kit.store.listen(self._show, Changed.SERVED))
        self._show()

    def _show(self, *_heard: object) -> None:
        address, n_running = self._store.served
        self.setVisible(bool(address))
        if not address:
            return
        where = address.removeprefix("http://").removesuffix("/v1")
        said = tr("Serving {address} · {n} running") if n_running else tr("Serving {address}")
        self.setText(said.format(address=where, n=f"{n_running:,}"))
        tip = tr("Other programs use this model at {address}. Click for their requests.")
        self.setToolTip(tip.format(address=address))
