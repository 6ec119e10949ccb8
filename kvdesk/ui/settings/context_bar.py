"""What a change of the context costs: what is changed, what is read again, and the buttons that apply or revert it."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtWidgets import QFrame

from kvdesk.session.commands import Commands
from kvdesk.settings import ContextSettings
from kvdesk.settings.texts import texts_of
from kvdesk.translation import tr
from kvdesk.ui.operations.context_ledger import ContextLedger
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button


class ContextBar(QFrame):
    """Shown while settings of the context are edited and not applied, or a rebuild was asked for."""

    def __init__(self, commands: Commands, apply: Callable[[], None], revert: Callable[[], None]) -> None:
        super().__init__()
        self.setAccessibleName(tr("The context is made again with these settings"))
        self._what = label("", weight="strong", wrap=True)
        self._problem = label("", tone="danger", scale="small", wrap=True)
        self.ledger = ContextLedger(commands)
        self.revert = push_button(tr("Revert"), clicked=revert)
        self.apply = push_button(tr("Apply and rebuild"), primary=True, clicked=apply)
        buttons = boxes.row((self._problem, 1), self.revert, self.apply, spacing=8)
        boxes.column(self._what, self.ledger, buttons, on=self, margins=0, spacing=8)
        self.hide()

    def show_changes(self, now: ContextSettings, changes: Mapping[str, Any], problem: str) -> None:
        """`changes`: the fields that are edited, none if a rebuild was asked for; `problem`: an invalid entry."""
        self.revert.setVisible(bool(changes))
        said = [_change(name, getattr(now, name), value) for name, value in changes.items()]
        self._what.setText(tr(", ").join(said) if said else tr("Rebuild the context with the same settings"))
        self._problem.setText(problem)
        self.apply.setEnabled(not problem and not self.ledger.refused)


def _change(name: str, before: Any, after: Any) -> str:
    title, _about = texts_of(ContextSettings.model_fields[name])
    return tr("{setting}: {before} → {after}").format(setting=title, before=_shown(before), after=_shown(after))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    return f"{value:,}" if isinstance(value, int) else str(value)
