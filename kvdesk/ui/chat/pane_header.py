"""Over the messages: the title, the model, how full the context is, and what happens when it is full."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QMenu, QVBoxLayout, QWidget

from kvdesk.protocol.chat import ContextUse, Endpoint, LocalFile, ModelInfo
from kvdesk.translation import tr
from kvdesk.ui.chat.overflow_choice import OverflowButton
from kvdesk.ui.chat.parameters_button import ParametersButton
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel, IconButton, NumberLabel, plain_tip, set_tone
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.readout import megabytes

ONE_LINE_PX: Final = 720  # from here on it has one line
ALL_PX: Final = 560
"""From here on there is room for the way to better models, which is in the model's menu too, and for how full the
context is, which the message box shows too: names come first."""


class PaneHeader(QWidget):
    """One line where there is room for it, else the title above the rest."""

    open_model_clicked = Signal()
    models_clicked = Signal()
    server_clicked = Signal()
    better_clicked = Signal()
    embedded_clicked = Signal()
    sidebar_clicked = Signal()
    inspector_clicked = Signal()
    branches_clicked = Signal()
    menu_clicked = Signal(QPoint)  # where the main menu comes to lie

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        sidebar = IconButton(theme, "sidebar", tr("Show or hide the chats"), tr("Chats (Ctrl+B)"))
        sidebar.setObjectName("sidebarButton")
        sidebar.clicked.connect(self.sidebar_clicked)
        tip = tr("Cache inspector (Ctrl+I)")
        inspector = IconButton(theme, "inspector", tr("Show or hide the cache inspector"), tip)
        inspector.setObjectName("inspectorButton")
        inspector.clicked.connect(self.inspector_clicked)
        self._more = IconButton(theme, "more", tr("Menu"))
        self._more.clicked.connect(self._on_more_clicked)
        self._branches = IconButton(theme, "branches", tr("Branches of this chat"), tr("Branches (Ctrl+Shift+B)"))
        self._branches.clicked.connect(self.branches_clicked)
        self._branches.hide()
        self._title = ElidedLabel()
        self._title.setProperty("weight", "strong")
        self._title.setMinimumWidth(64)
        self._model = ElidedButton(tr("Open a model"))
        self._model.setProperty("quiet", True)
        self._model.setProperty("scale", "small")
        self._model.setObjectName("modelButton")
        self._model.setToolTip(tr("Open another model (Ctrl+O)"))
        self._menu = QMenu(self)
        self._menu.addAction(tr("Models on this computer…"), self.models_clicked.emit)
        self._menu.addAction(tr("Get models…"), self.better_clicked.emit)
        self._menu.addAction(tr("Open a model file…"), self.open_model_clicked.emit)
        self._menu.addAction(tr("Connect to a server…"), self.server_clicked.emit)
        self._embedded = self._menu.addAction(tr("Open the embedded model"), self.embedded_clicked.emit)
        self._embedded.setEnabled(False)
        self._model.clicked.connect(self._on_model_clicked)
        self._better = ElidedButton(tr("Get a better model"))
        self._better.setProperty("quiet", True)
        self._better.setProperty("scale", "small")
        self._better.setToolTip(tr("The embedded model is very small: see which others run well here"))
        self._better.clicked.connect(self.better_clicked)
        self._better.hide()
        self._has_better = False
        self._meter = NumberLabel()
        self._meter.setProperty("tone", "secondary")
        self._meter.setProperty("scale", "small")
        self._meter.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.overflow = OverflowButton()
        self.parameters = ParametersButton()
        self._facts = QWidget()
        facts = QHBoxLayout(self._facts)
        facts.setContentsMargins(0, 0, 0, 0)
        facts.setSpacing(0)  # buttons bring their own
        for fact in (self._model, self._better, self._meter, self.overflow, self.parameters):
            facts.addWidget(fact)
        facts.addStretch(1)
        self._first = QHBoxLayout()
        self._first.setContentsMargins(4, 0, 4, 0)
        self._first.setSpacing(8)
        for widget in (sidebar, self._title, self._facts, self._branches, inspector, self._more):
            self._first.addWidget(widget)
        self._first.setStretchFactor(self._title, 1)
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(8, 8, 8, 8)
        self._lines.setSpacing(0)
        self._lines.addLayout(self._first)
        for button in self.findChildren(QAbstractButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # after a click one goes on in the message box

    def minimumSizeHint(self) -> QSize:
        """As wide as two lines need."""
        size = super().minimumSizeHint()
        one_line = self._lines.count() == 1
        return size - QSize(self._title.minimumWidth() + self._first.spacing(), 0) if one_line else size

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The title stands above the rest where one line is too short for both."""
        super().resizeEvent(event)
        self._show_less()
        is_narrow = self.width() < self._theme.px(ONE_LINE_PX)
        if is_narrow and self._lines.count() == 1:
            self._lines.addWidget(self._facts)
        elif not is_narrow and self._lines.count() == 2:
            self._first.insertWidget(2, self._facts)

    def set_branches(self, there: bool) -> None:
        """Whether the chat has several branches."""
        self._branches.setVisible(there)

    def set_better(self, there: bool) -> None:
        """Whether the embedded model is open, which is the smallest there is."""
        self._has_better = there
        self._show_less()

    def _show_less(self) -> None:
        """What there is room for."""
        has_room = self.width() >= self._theme.px(ALL_PX)
        self._better.setVisible(self._has_better and has_room)
        self._meter.setVisible(has_room)

    @property
    def meter_text(self) -> str:
        return self._meter.toolTip()

    def set_embedded(self, available: bool) -> None:
        """Whether there is an embedded model to open."""
        self._embedded.setEnabled(available)
        self._embedded.setToolTip("" if available else tr("It is not installed"))

    @Slot()
    def _on_more_clicked(self) -> None:
        self.menu_clicked.emit(self._more.mapToGlobal(QPoint(0, self._more.height())))

    @Slot()
    def _on_model_clicked(self) -> None:
        self._menu.popup(self._model.mapToGlobal(QPoint(0, self._model.height())))

    def set_title(self, title: str, is_new: bool) -> None:
        self._title.setText(title or (tr("New chat") if is_new else ""))
        set_tone(self._title, "" if title else "secondary")

    def set_model(self, model: ModelInfo | None) -> None:
        self.set_model_text(model.name if model else tr("Open a model"))
        if model:
            self._model.setToolTip(plain_tip(_facts(model) + "\n\n" + tr("Open another model (Ctrl+O)")))

    def set_dead(self) -> None:
        self._model.setText(tr("Restart kvdesk"))
        self._model.setToolTip(tr("The engine has stopped"))
        self._model.setEnabled(False)

    def set_model_text(self, text: str) -> None:
        self._model.setText(text)

    def set_use(self, use: ContextUse | None) -> None:
        if use is None:
            self._meter.setText("")
            self._meter.setToolTip("")
            return
        text = tr("{share} of {n}")
        self._meter.reserve(text.format(share="100%", n=f"{use.n_ctx:,}"))
        self._meter.setText(text.format(share=f"{use.n_tokens / use.n_ctx:.0%}", n=f"{use.n_ctx:,}"))
        set_tone(self._meter, "danger" if use.n_tokens >= use.n_ctx else "secondary")
        self._meter.setToolTip(_use_text(use))


def _use_text(use: ContextUse) -> str:
    """How full the context is, and how much of that is in the cache."""
    if not use.n_tokens:
        text = tr("This chat takes {n} of {n_ctx} tokens of context")
    elif use.n_cached >= use.n_tokens:
        text = tr("This chat takes {n} of {n_ctx} tokens of context; all of them in the cache")
    elif use.n_cached:
        text = tr("This chat takes {n} of {n_ctx} tokens of context; {cached} in the cache")
    else:
        text = tr("This chat takes {n} of {n_ctx} tokens of context; none in the cache")
    return text.format(n=f"{use.n_tokens:,}", n_ctx=f"{use.n_ctx:,}", cached=f"{use.n_cached:,}")


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
