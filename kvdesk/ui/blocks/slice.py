"""The blocks of vLLM and SGLang, as a slice of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.features import Feature
from kvdesk.translation import marked
from kvdesk.ui.widgets.kit import Kit, Page, Slice

if TYPE_CHECKING:
    from kvdesk.ui.blocks.page import BlocksPage


def _page(kit: Kit) -> BlocksPage:
    from kvdesk.ui.blocks.page import BlocksPage

    return BlocksPage(kit.theme)


BLOCKS: Final = Slice(
    "blocks", pages=(Page(marked("Blocks"), Feature.BLOCK_MAP, _page, late=True, replaces="Cache", takes=BlockMapView),)
)
