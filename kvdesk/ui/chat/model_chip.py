"""The model of the window as a chip with a chevron: it opens the menu of models."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu

from kvdesk.protocol.model import Endpoint, LocalFile, ModelInfo
from kvdesk.translation import tr
from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.controls import ElidedButton, below, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.readout import megabytes


class ModelChip(ElidedButton):
    """Shows the name of the model that is open, or what is being loaded."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(tr("Open a model"))
        theme = self._theme = kit.theme
        self._store = kit.store
        self.setObjectName("modelButton")
        self.setProperty("chip", True)
        self.setProperty("scale", "small")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleDescription(tr("Opens the menu of models"))
        self.setToolTip(tr("Open another model (Ctrl+O)"))
        self.menu_of_models = QMenu(self)
        menu = self.menu_of_models
        show_tips_of(menu)
        menu.addAction(tr("Models on this computer…"), kit.act("model.list"))
        self._better = menu.addAction(tr("Get models…"), kit.act("model.get"))
        menu.addAction(tr("Open a model file…"), kit.act("model.open"))
        menu.addAction(tr("Connect to a server…"), kit.act("model.server"))
        self._embedded = menu.addAction(tr("Open the embedded model"), kit.act("model.embedded"))
        self._embedded.setEnabled(False)
        self.clicked.connect(self._on_clicked)
        menu.addSeparator()
        self._stop = menu.addAction(tr("Stop loading"), kit.act("model.stop"))
        theme.changed.connect(self.updateGeometry)

    def set_model(self, model: ModelInfo | None) -> None:
        self.setText(model.name if model else tr("Open a model"))
        if model:
            self.setToolTip(plain_tip(_facts(model) + "\n\n" + tr("Open another model (Ctrl+O)")))

    def set_dead(self) -> None:
        self.setText(tr("Restart kvdesk"))
        self.setToolTip(tr("The engine has stopped"))
        self.setEnabled(False)

    def set_better(self, there: bool) -> None:
        """Whether the embedded model is open, which is the smallest."""
        self._better.setText(tr("Get a better model…") if there else tr("Get models…"))
        self._better.setToolTip(tr("The embedded model is very small: see which others run well here") if there else "")

    def set_embedded(self, available: bool) -> None:
        """Whether an embedded model exists."""
        self._embedded.setEnabled(available)
        self._embedded.setToolTip("" if available else tr("It is not installed"))

    def _hint(self, text: str) -> QSize:
        """With room for the chevron."""
        return super()._hint(text) + QSize(self._theme.px(16), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        icon = self._theme.icon("chevron-down", self._theme.colours.secondary)
        side, gap = self._theme.px(14), self._theme.px(6)
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left = gap if is_mirrored else self.width() - side - gap
        icon.paint(QPainter(self), left, (self.height() - side) // 2, side, side)

    def _on_clicked(self) -> None:
        self._stop.setVisible(isinstance(self._store.loading, LocalFile))
        self.menu_of_models.popup(below(self))


def _facts(model: ModelInfo) -> str:
    """What is known of a model, and where it is."""
    known = (
        model.description,
        f"{megabytes(model.size_bytes)} MB" if model.size_bytes else "",
        tr("{n} M parameters").format(n=f"{model.n_params / 1e6:,.0f}") if model.n_params else "",
        tr("trained for {n} tokens").format(n=f"{model.n_ctx_train:,}") if model.n_ctx_train else "",
    )
    match model.source:
        case LocalFile(path):
            where = str(path)
        case Endpoint(url):
            where = url
    return f"{', '.join(fact for fact in known if fact)}\n{where}".strip()
