"""How the answers of one chat think, where its chat template lets one choose."""

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.thinking import OFF, Thinking, can_keep, levels_of
from kvdesk.translation import tr
from kvdesk.ui.parameters.words import LEVEL_NAMES
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.number_fields import WholeField

_MOST_BUDGET = 1_000_000


class ThinkingRow(QWidget):
    """Hidden if the template lets one choose nothing. What it cannot show of a chat stays as it is."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.thinking = Thinking()
        self.level = Choice(name=tr("Thinking"))
        self.level.setToolTip(tr("Whether the model reasons before it answers, as its chat template knows it"))
        self.budget = WholeField(-1, _MOST_BUDGET)
        self.budget.setSingleStep(64)
        self.budget.setSpecialValueText(tr("no limit"))
        self.budget.setAccessibleName(tr("Most tokens of thinking"))
        self.budget.setToolTip(tr("After this many tokens the reasoning is closed, and the answer begins"))
        self.keep = QCheckBox(tr("Keep earlier thinking in the prompt"))
        self.keep.setToolTip(
            tr("It takes room in the context. Else the template leaves it out, and what follows is read again")
        )
        self.level.activated.connect(self._on_edited)
        self.budget.valueChanged.connect(self._on_edited)
        self.keep.toggled.connect(self._on_edited)
        self._unit = label(tr("tokens"))
        head = boxes.row(label(tr("Thinking")), (self.level, 1), self.budget, self._unit, spacing=8)
        boxes.column(head, self.keep, on=self, margins=0, spacing=4)
        self.show_template("")

    def set_thinking(self, thinking: Thinking) -> None:
        """Show this."""
        self.thinking = thinking
        self._show()

    def show_template(self, template: str) -> None:
        """What this chat template (Jinja) lets one choose."""
        levels, keeps = levels_of(template), can_keep(template)
        if levels != self._levels():
            with QSignalBlocker(self.level):
                self.level.clear()
                for level in levels:
                    self.level.addItem(tr(LEVEL_NAMES[level]), level)
        self.setVisible(bool(levels) or keeps)
        self.level.setVisible(bool(levels))
        self.keep.setVisible(keeps)
        self._show()

    def _levels(self) -> tuple[str, ...]:
        return tuple(self.level.itemData(n) for n in range(self.level.count()))

    def _show(self) -> None:
        with QSignalBlocker(self.level), QSignalBlocker(self.budget), QSignalBlocker(self.keep):
            self.level.setCurrentIndex(self.level.findData(self.thinking.level))
            self.budget.setValue(self.thinking.budget)
            self.keep.setChecked(self.thinking.keep)
        self._show_budget()

    def _show_budget(self) -> None:
        self.budget.setEnabled(self.thinking.level != OFF)
        self._unit.setVisible(self.thinking.budget >= 0)

    def _on_edited(self) -> None:
        level = self.level.currentData()
        self.thinking = Thinking("" if level is None else level, self.keep.isChecked(), self.budget.value())
        self._show_budget()
        self.edited.emit()
