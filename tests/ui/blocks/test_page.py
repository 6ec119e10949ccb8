"""The page of blocks: numbers, map, tooltips, keys."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QToolTip
from pytestqt.qtbot import QtBot

from kvdesk.blocks.events import Batch, BlockStored
from kvdesk.blocks.tree import BlockTree
from kvdesk.protocol.blocks import BlockMapView, ServerMetrics
from kvdesk.protocol.chat import BackendReady
from kvdesk.protocol.features import Feature
from kvdesk.ui.blocks.page import BlocksPage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.block_readout import BlockColour


def view(n_missed: int = 0) -> BlockMapView:
    """A prompt of four blocks of 16 tokens, from whose second another goes on with two."""
    tree = BlockTree()
    tree.apply(0, Batch(1.0, (BlockStored(tuple("abcd"), None, tuple(range(64)), 16),)))
    fork = BlockStored(tuple("xy"), "b", tuple(range(100, 132)), 16, "CPU")
    tree.apply(1 + n_missed, Batch(2.0, (fork,)))
    tree.use(tree.match(range(48)))
    return BlockMapView(tree.layout(), ServerMetrics(usage=0.25, hit_rate=0.5, running=2.0), "tcp://h:5557")


@pytest.fixture
def page(theme: Theme, qtbot: QtBot) -> BlocksPage:
    page = BlocksPage(theme)
    qtbot.addWidget(page)
    page.resize(420, 500)
    page.show()
    page.take(view())
    return page


def numbers(page: BlocksPage) -> dict[str, str]:
    return {caption.text(): value.text() for caption, value in page._cells if not caption.isHidden()}


def test_numbers_and_what_is_known(page: BlocksPage) -> None:
    assert numbers(page) == {
        "Blocks": "6",
        "Tokens": "96",
        "Forks": "1",
        "Removed": "0",
        "Cache taken": "25%",
        "From cache": "50%",
        "Requests": "2 + 0",
    }
    assert page._heard.text() == "Known since message 0; 2 messages heard."
    page.take(view(n_missed=3))
    assert "3 were missed" in page._heard.text()
    page.take(BlockMapView(address="tcp://h:5557"))
    assert "Nothing has arrived so far at tcp://h:5557" in page._heard.text()
    assert "From cache" not in numbers(page)


def test_each_block_is_drawn_where_it_lies_in_the_colour_of_its_meaning(page: BlocksPage, theme: Theme) -> None:
    blocks = page.map
    colours = {}
    for by in BlockColour:
        page.colour.setCurrentIndex(page.colour.findData(by))
        image = blocks.grab().toImage()
        colours[by] = [image.pixelColor(blocks.rect_of(i).center()).name() for i in range(6)]
    chain, fork = slice(0, 4), slice(4, 6)
    assert len(set(colours[BlockColour.TIER][chain])) == 1
    assert colours[BlockColour.TIER][0] != colours[BlockColour.TIER][4], "another tier"
    assert colours[BlockColour.AGE][0] != colours[BlockColour.AGE][5]
    free = QColor(theme.colours.cell_span).name()
    assert colours[BlockColour.USED][3:] == [free] * 3, "in no prompt of this window"
    assert free not in colours[BlockColour.USED][:3]
    shared = colours[BlockColour.SHARED]
    assert len({shared[0], shared[1], shared[3]}) == 3, "one, several and none go on"
    assert shared[fork] == [shared[0], shared[3]]


def test_a_fork_is_a_line_to_its_row(page: BlocksPage, theme: Theme) -> None:
    blocks = page.map
    parent, child = blocks.rect_of(1), blocks.rect_of(4)
    assert (child.left(), child.top()) == (blocks.rect_of(2).left(), blocks.rect_of(0).top() + 11)
    image = blocks.grab().toImage()
    corner = image.pixelColor(parent.left() + 5, child.top() + 5).name()
    assert corner == QColor(theme.colours.secondary).name()


def test_a_block_is_described_by_mouse_and_keys(page: BlocksPage, qtbot: QtBot) -> None:
    blocks = page.map
    qtbot.mouseClick(blocks, Qt.MouseButton.LeftButton, pos=blocks.rect_of(4).center())
    assert blocks.chosen == 4
    said = blocks.accessibleDescription()
    assert said.startswith("Block x, 16 tokens, on CPU\nTokens 32 to 47 of its prompts\n")
    qtbot.keyClick(blocks, Qt.Key.Key_Up)
    assert blocks.chosen == 0
    assert "Begins a prompt" in blocks.accessibleDescription()
    assert "In 1 request of this window" in blocks.accessibleDescription()
    qtbot.keyClick(blocks, Qt.Key.Key_End)
    qtbot.keyClick(blocks, Qt.Key.Key_Right)
    assert blocks.chosen == 5
    page.take(view())
    assert blocks.chosen == 5, "the same block"
    page.take(BlockMapView())
    assert blocks.chosen == -1


def test_a_block_that_a_key_reaches_is_in_sight_and_tells_itself(page: BlocksPage, qtbot: QtBot) -> None:
    tree, n, blocks = BlockTree(), 200, page.map
    tree.apply(0, Batch(1.0, (BlockStored(tuple(map(str, range(n))), None, tuple(range(16 * n)), 16),)))
    page.take(BlockMapView(tree.layout()))
    qtbot.keyClick(blocks, Qt.Key.Key_End)
    assert blocks.chosen == n - 1
    qtbot.waitUntil(lambda: blocks.visibleRegion().contains(blocks.rect_of(n - 1)))
    assert QToolTip.text().startswith(f"Block {n - 1}, 16 tokens")
    QToolTip.hideText()


def test_blocks_take_the_place_of_cells(window: MainWindow) -> None:
    inspector = window.inspector
    inspector.show_all(True)
    tabs = {tab.text(): tab for tab in inspector._tabs.buttons()}
    assert tabs["Blocks"].isHidden()
    window.store.apply(BackendReady(frozenset({Feature.CHAT, Feature.BLOCK_MAP})))
    assert not tabs["Blocks"].isHidden()
    assert tabs["Cache"].isHidden(), "it has no cells, and its place is taken"
    assert inspector.labels[inspector._tabs.checkedId()] == "Blocks"
    window.store.apply(view())
    inspector.show_tab("Blocks")
    assert inspector.labels[inspector._tabs.checkedId()] == "Blocks"
    assert not inspector.missing
    assert numbers(inspector._page(BlocksPage))["Blocks"] == "6"
    window.store.apply(BackendReady(frozenset({Feature.CHAT})))
    assert tabs["Blocks"].isHidden()
    assert not tabs["Cache"].isHidden()
    assert inspector.labels[inspector._tabs.checkedId()] == "Cache"
