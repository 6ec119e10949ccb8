"""What the model looked at, as a slice of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QWidget

from kvdesk.protocol.features import Feature
from kvdesk.translation import marked
from kvdesk.ui.widgets.kit import Kit, Page, Slice

if TYPE_CHECKING:
    from kvdesk.ui.attention.page import AttentionPage


def _page(kit: Kit) -> AttentionPage:
    from kvdesk.ui.attention.page import AttentionPage

    return AttentionPage(kit)


def _legend(kit: Kit) -> QWidget:
    from kvdesk.ui.attention.legend import AttentionLegend

    return AttentionLegend(kit)


ATTENTION: Final = Slice(
    "attention",
    pages=(Page(marked("Attention"), Feature.ATTENTION, _page, late=True, after="Cache"),),
    colours=("Attention",),
    legend=_legend,
)
