"""What a person sees of a widget, or hears of it: for tests, whatever the widget keeps."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QListView, QToolButton, QWidget

from kvdesk.translation import tr
from kvdesk.ui.cache.overview import _NUMBERS, Overview
from kvdesk.ui.composer.attachment_list import AttachmentList
from kvdesk.ui.composer.queue_view import QueueView
from kvdesk.ui.operations.context_ledger import ContextLedger
from kvdesk.ui.operations.effect_view import EffectView
from kvdesk.ui.shell.activity_strip import ActivityStrip
from kvdesk.ui.shell.command_palette import CommandPalette
from kvdesk.ui.shell.log_panel import LogPanel
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import ElidedLabel


def seen(widget: QWidget | None) -> str:
    """The texts of its labels, a line each."""
    assert widget is not None
    labels = [one for one in widget.findChildren(QLabel) if one.isVisibleTo(widget)]
    texts = [one.full_text if isinstance(one, ElidedLabel) else one.text() for one in labels]
    return "\n".join(filter(None, texts))


def texts(palette: CommandPalette) -> list[str]:
    """What each row of the palette says, headings too."""
    (view,) = palette.findChildren(QListView)
    model = view.model()
    return [model.index(i, 0).data(Qt.ItemDataRole.AccessibleTextRole) for i in range(model.rowCount())]


def stays(strip: ActivityStrip) -> bool:
    """Whether the newest notice waits to be dismissed."""
    return bool(strip._results) and not strip._results[-1].is_leaving


def encoding(attachments: AttachmentList, index: int) -> Choice | None:
    """The choice of an encoding in one row, if it has one."""
    return attachments._rows[index].findChild(Choice)


def row_button(attachments: AttachmentList, index: int, name: str) -> QToolButton:
    """A button of one row, by its accessible name without that of the file."""
    buttons = attachments._rows[index].findChildren(QToolButton)
    return next(one for one in buttons if one.accessibleName().startswith(name))


def figures(overview: Overview) -> dict[str, str]:
    """The value under each caption."""
    return {caption: figure.text for (caption, _), figure in zip(_NUMBERS, overview._figures, strict=True)}


def queued(queue: QueueView) -> tuple[str, ...]:
    """The messages that wait."""
    return tuple(message.text for message in queue._messages)


def log_text(panel: LogPanel) -> str:
    """The lines that are shown, once all are written."""
    if panel._filtering.isActive():
        panel._on_filter_changed()
    panel._on_timer()
    return panel._text.toPlainText()


def ledger_text(ledger: ContextLedger) -> str:
    """Captions with their values, and what it costs."""
    shown = [pair for pair in ledger._values.values() if not pair[1].isHidden()]
    return "\n".join((*(f"{caption.text()} {value.text()}" for caption, value in shown), ledger._cost.text()))


def effect_text(view: EffectView) -> str:
    """The call, numbers before and after, tokens, and remarks."""
    numbers = (f"{tr(name)} {b.text()} {a.text()}" for name, (b, a) in view._values.items() if a.text())
    rows = (" | ".join((row.title, row.cells, row.token, row.kl)) for row in view._rows)
    return "\n".join((view._call.text(), *numbers, *rows, view._words.text()))
