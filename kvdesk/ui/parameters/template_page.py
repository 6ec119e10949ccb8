"""The chat template of one chat, the model's or its own, and the prompt it makes of the chat."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPlainTextEdit, QSplitter, QVBoxLayout, QWidget

from kvdesk.protocol.prompt import PromptPreview
from kvdesk.translation import tr
from kvdesk.ui.parameters.prompt_view import PromptView
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.input_method import composes
from kvdesk.ui.widgets.theme import Theme


class TemplatePage(QWidget):
    """The Jinja text above, the prompt below."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._models = ""  # the model's own template
        self._kept = ""  # what was written, while the model's is shown
        self._missing = label("", tone="secondary")
        self._missing.setWordWrap(True)
        self._own = QCheckBox(tr("Own template for this chat"))
        self._own.setAccessibleDescription(tr("A Jinja text in the place of the model's chat template"))
        self._own.toggled.connect(self._on_own_toggled)
        self._problem = label("", tone="danger")
        self._problem.setWordWrap(True)
        self._edit = QPlainTextEdit()
        self._edit.setProperty("boxed", True)
        theme.give_font(self._edit, "mono_small")
        self._edit.setTabChangesFocus(True)
        self._edit.setPlaceholderText(tr("The template of the model appears here once one is open."))
        self._edit.textChanged.connect(self._on_text_changed)
        composes(self._edit)
        self.prompt = PromptView(theme)
        head = QHBoxLayout()
        head.addWidget(self._own, 1)
        upper, lower = QWidget(), QWidget()
        above = QVBoxLayout(upper)
        above.setContentsMargins(0, 0, 0, 4)
        above.setSpacing(8)
        above.addWidget(self._missing)
        above.addLayout(head)
        above.addWidget(self._edit, 1)
        above.addWidget(self._problem)
        below = QVBoxLayout(lower)
        below.setContentsMargins(0, 8, 0, 0)
        below.setSpacing(4)
        below.addWidget(label(tr("The prompt of this chat"), weight="strong"))
        below.addWidget(self.prompt, 1)
        halves = QSplitter(Qt.Orientation.Vertical)
        halves.setChildrenCollapsible(False)
        halves.addWidget(upper)
        halves.addWidget(lower)
        halves.setSizes([200, 300])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(halves)
        self._show_text()
        self.show_missing("")

    @property
    def own_box(self) -> QCheckBox:
        return self._own

    @property
    def edit(self) -> QPlainTextEdit:
        return self._edit

    @property
    def problem(self) -> str:
        """What is said of a template that cannot be used."""
        return self._problem.text()

    @property
    def template(self) -> str:
        """The chat's own; "": the model's."""
        text = self._edit.toPlainText()
        return text if self._own.isChecked() and text.strip() and text != self._models else ""

    def set_template(self, template: str) -> None:
        """Show this one; "": the model's."""
        self._kept = template
        self._own.blockSignals(True)
        self._own.setChecked(bool(template))
        self._own.blockSignals(False)
        self._show_text()

    def show_preview(self, preview: PromptPreview | None) -> None:
        """Show what the engine made of the template."""
        if preview is not None and preview.model_template not in ("", self._models):
            self._models = preview.model_template
            if not self._own.isChecked():
                self._show_text()
        problem = preview.problem if preview is not None and self.template else ""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self.prompt.show_preview(preview, problem_is_told=bool(problem))

    def show_missing(self, sentence: str) -> None:
        """Why the engine has no template that can be seen or changed; "" where it has."""
        self._missing.setText(sentence)
        self._missing.setVisible(bool(sentence))
        for widget in (self._own, self._edit, self.prompt):
            widget.setEnabled(not sentence)

    def _show_text(self) -> None:
        own = self._own.isChecked()
        self._edit.blockSignals(True)
        self._edit.setPlainText((self._kept or self._models) if own else self._models)
        self._edit.blockSignals(False)
        self._edit.setReadOnly(not own)
        name = tr("Own template of this chat (Jinja)") if own else tr("Template of the model (Jinja)")
        self._edit.setAccessibleName(name)
        self._problem.hide()

    @Slot()
    def _on_own_toggled(self) -> None:
        self._show_text()
        if self._own.isChecked():
            self._edit.setFocus()
        self.edited.emit()

    @Slot()
    def _on_text_changed(self) -> None:
        self._kept = self._edit.toPlainText()
        self.edited.emit()
