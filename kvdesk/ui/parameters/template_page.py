"""The chat template of one chat, the model's or its own, and the prompt it makes of the chat."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QSplitter, QWidget

from kvdesk.protocol.prompt import PromptPreview
from kvdesk.translation import tr
from kvdesk.ui.parameters.prompt_view import PromptView
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, show_text
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.written import text_box


class TemplatePage(QWidget):
    """The Jinja text above, the prompt below."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._models = ""  # the model's own template
        self._kept = ""  # what was written, while the model's is shown
        self._missing = label("", tone="secondary", wrap=True)
        self.own_box = QCheckBox(tr("Own template for this chat"))
        self.own_box.setAccessibleDescription(tr("A Jinja text in the place of the model's chat template"))
        self.own_box.toggled.connect(self._on_own_toggled)
        self._problem = label("", tone="danger", wrap=True)
        self.edit = text_box(placeholder=tr("The template of the model appears here once one is open."))
        theme.give_font(self.edit, "mono_small")
        self.edit.textChanged.connect(self._on_text_changed)
        self.prompt = PromptView(theme)
        upper, lower = QWidget(), QWidget()
        boxes.column(
            self._missing, self.own_box, (self.edit, 1), self._problem, on=upper, margins=(0, 0, 0, 4), spacing=8
        )
        boxes.column(
            label(tr("The prompt of this chat"), weight="strong"),
            (self.prompt, 1),
            on=lower,
            margins=(0, 8, 0, 0),
            spacing=4,
        )
        halves = QSplitter(Qt.Orientation.Vertical, childrenCollapsible=False)
        halves.addWidget(upper)
        halves.addWidget(lower)
        halves.setSizes([200, 300])
        scroll = ScrollColumn(halves, tr("Template and prompt"))  # where the window is too low for both
        boxes.column(scroll, on=self, margins=0)
        self._show_text()
        self.show_missing("")

    @property
    def template(self) -> str:
        """The chat's own; "": the model's."""
        text = self.edit.toPlainText()
        return text if self.own_box.isChecked() and text.strip() and text != self._models else ""

    def set_template(self, template: str) -> None:
        """Show this one; "": the model's."""
        self._kept = template
        with QSignalBlocker(self.own_box):
            self.own_box.setChecked(bool(template))
        self._show_text()

    def show_preview(self, preview: PromptPreview | None) -> None:
        """Show what the engine made of the template."""
        if preview is not None and preview.model_template not in ("", self._models):
            self._models = preview.model_template
            if not self.own_box.isChecked():
                self._show_text()
        problem = preview.problem if preview is not None and self.template else ""
        show_text(self._problem, problem)
        self.prompt.show_preview(preview, problem_is_told=bool(problem))

    def show_missing(self, sentence: str) -> None:
        """Why the engine has no template that can be seen or changed; "" if it has."""
        show_text(self._missing, sentence)
        for widget in (self.own_box, self.edit, self.prompt):
            widget.setEnabled(not sentence)

    def _show_text(self) -> None:
        own = self.own_box.isChecked()
        with QSignalBlocker(self.edit):
            self.edit.setPlainText((self._kept or self._models) if own else self._models)
        self.edit.setReadOnly(not own)
        name = tr("Own template of this chat (Jinja)") if own else tr("Template of the model (Jinja)")
        self.edit.setAccessibleName(name)
        self._problem.hide()

    def _on_own_toggled(self) -> None:
        self._show_text()
        if self.own_box.isChecked():
            self.edit.setFocus()
        self.edited.emit()

    def _on_text_changed(self) -> None:
        self._kept = self.edit.toPlainText()
        self.edited.emit()
