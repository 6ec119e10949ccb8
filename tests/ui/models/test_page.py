"""The page of models, by real clicks and keys."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolTip
from pytestqt.qtbot import QtBot

from kvdesk.library.catalogue import Fit, ModelFacts
from kvdesk.library.find import FoundModel
from kvdesk.settings import CacheType, ThemeChoice, UsedModel
from kvdesk.ui.models.page import ModelsPage
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.downloads import Offer
from kvdesk.viewmodel.models import Machine, ModelRow, in_order, row_of

MACHINE = Machine(20e9, measured=True, available=8_000_000_000, layer_s=0.0)
Recorder = Callable[[object], list[tuple[object, ...]]]


def row(name: str, size: int, *, problem: str = "", favourite: bool = False) -> ModelRow:
    found = FoundModel(name, Path(f"/models/{name}.gguf"), size, "Jan")
    facts = ModelFacts(found, name, "llama", "Q4_K", 2 * size, 8192, 16, size, problem=problem)
    fit = None if problem else Fit(8192, CacheType.F16, 2 * size)
    return row_of(facts, fit, UsedModel(path=str(found.path), favourite=favourite), MACHINE)


@pytest.fixture
def page(kit: Kit, qtbot: QtBot) -> ModelsPage:
    page = ModelsPage(kit)
    qtbot.addWidget(page)
    page.resize(1280, 760)
    rows = [row("big", 9 * 10**9), row("small", 10**8), row("broken", 10, problem="Cut off.")]
    page.show_rows(in_order(rows), MACHINE)
    page.show()
    page.view.setFocus()
    return page


def names(page: ModelsPage) -> list[str]:
    return [row.title for row in page.rows]


def button(page: ModelsPage, text: str) -> QPushButton:
    return next(found for found in page.findChildren(QPushButton) if found.text() == text)


def test_enter_opens_the_chosen_model(page: ModelsPage, qtbot: QtBot, record: Recorder) -> None:
    opened = record(page._kit.commands.open_model)
    assert names(page) == ["big", "small", "broken"]
    qtbot.keyClick(page.view, Qt.Key.Key_Down)
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert opened == [(Path("/models/small.gguf"),)]
    qtbot.keyClick(page.view, Qt.Key.Key_Down)
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert len(opened) == 1  # it cannot be opened
    assert not button(page, "Open").isEnabled()
    assert button(page, "Open").toolTip() == "Cut off."


def test_a_column_sorts_by_its_values(page: ModelsPage, qtbot: QtBot) -> None:
    page.view.sortByColumn(4, Qt.SortOrder.AscendingOrder)
    assert names(page) == ["broken", "small", "big"]
    qtbot.keyClicks(page.filter, "sm")
    assert names(page) == ["small"]
    assert page.chosen.title == "small"


def test_a_favourite_is_marked(page: ModelsPage, qtbot: QtBot, record: Recorder) -> None:
    changed = record(page._kit.commands.models.mark)
    qtbot.mouseClick(button(page, "Favourite"), Qt.MouseButton.LeftButton)
    assert changed == [(Path("/models/big.gguf"), True)]
    page.show_rows(in_order([row("big", 9 * 10**9), row("small", 10**8, favourite=True)]), MACHINE)
    assert names(page) == ["small", "big"]
    assert page.chosen.title == "big"  # the choice stays
    index = page.view.model().index(0, 0)
    assert index.data() == "★ small"
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Model: small, a favourite"


def test_deleting_asks_and_esc_is_no(page: ModelsPage, qtbot: QtBot, record: Recorder) -> None:
    deleted = record(page._kit.commands.models.delete)
    qtbot.keyClick(page.view, Qt.Key.Key_Delete)
    assert page._question.text().startswith("Delete big.gguf (9.0 GB) from the disk?")
    assert page.leave()
    assert page._asked is None
    assert not page.leave()
    qtbot.mouseClick(button(page, "Delete…"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(button(page, "Keep it"), Qt.MouseButton.LeftButton)
    assert deleted == []
    qtbot.mouseClick(button(page, "Delete…"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(button(page, "Delete the file"), Qt.MouseButton.LeftButton)
    assert deleted == [(Path("/models/big.gguf"),)]


def test_a_question_stays_when_the_list_is_read_again(page: ModelsPage, qtbot: QtBot, record: Recorder) -> None:
    deleted = record(page._kit.commands.models.delete)
    qtbot.keyClick(page.view, Qt.Key.Key_Delete)
    page.show_rows(in_order([row("big", 9 * 10**9), row("small", 10**8), row("new", 10)]), MACHINE)
    qtbot.mouseClick(button(page, "Delete the file"), Qt.MouseButton.LeftButton)
    assert deleted == [(Path("/models/big.gguf"),)]
    qtbot.keyClick(page.view, Qt.Key.Key_Delete)
    qtbot.keyClick(page.view, Qt.Key.Key_Down)
    assert page._asked is None, "of another file nothing was asked"


@pytest.mark.usefixtures("styled")
def test_rows_grow_with_the_text(page: ModelsPage, theme: Theme) -> None:
    before = page.view.rowHeight(0)
    theme.set_size(200)
    assert page.view.rowHeight(0) >= 1.9 * before


def test_the_menu_has_the_same(page: ModelsPage) -> None:
    menu = page.menu()
    assert [action.text() for action in menu.actions()] == ["Open", "Favourite", "Delete…"]
    menu.deleteLater()


def test_no_column_is_cut_in_a_window_of_1280(page: ModelsPage) -> None:
    """But for a name that leaves no room."""
    found = FoundModel("x", Path("/models/a-model.gguf"), 18_600_000_000, "comes with kvdesk")
    facts = ModelFacts(found, "a-model", "qwen3moe", "Q4_K", 30 * 10**9, 262_144, 16, 10**9, licence="apache-2.0")
    used = UsedModel(path=str(found.path), used_ms=1_795_366_099_427)
    page.show_rows([row_of(facts, Fit(262_144, CacheType.Q8_0, 10**9), used, MACHINE)], MACHINE)
    model, metrics = page.view.model(), page.view.fontMetrics()
    assert sum(page.view.columnWidth(n) for n in range(model.columnCount())) <= page.view.viewport().width()
    for n in range(model.columnCount()):
        assert metrics.horizontalAdvance(model.index(0, n).data()) + 10 <= page.view.columnWidth(n)


@pytest.mark.usefixtures("styled")
def test_a_narrow_window_leaves_columns_out(page: ModelsPage, qtbot: QtBot) -> None:
    view = page.view
    assert not any(map(view.isColumnHidden, range(view.model().columnCount())))
    page.resize(900, 560)
    qtbot.waitUntil(lambda: view.isColumnHidden(1))
    assert not view.isColumnHidden(6), "whether it fits is what one looks for"
    page.show_part(get=True)
    for table in (view, page.get_models.tree):
        assert table.horizontalScrollBar().maximum() == 0
    page.resize(1280, 760)
    page.show_part(get=False)
    qtbot.waitUntil(lambda: not view.isColumnHidden(1))


def test_it_says_that_it_looks(page: ModelsPage) -> None:
    page.show_searching()
    assert page._said.text().startswith("Looking through the folders")


def test_models_to_download_follow_the_theme(page: ModelsPage) -> None:
    theme, tree = page._kit.theme, page.get_models.tree
    page.get_models.show_recommended((Offer("one/model", "m.gguf", "m", 1_000, "Short answers"),))
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT, ThemeChoice.DARK):
        theme.set_theme(choice)
        about = tree.topLevelItem(0).child(0).foreground(5).color().name()
        assert about == theme.colours.secondary


@pytest.mark.usefixtures("styled")
def test_what_a_narrow_window_cuts_of_a_model_is_shown_by_key(page: ModelsPage, qtbot: QtBot) -> None:
    about = "Everyday questions in many languages, and long texts; it can reason"
    offers = (Offer("one/model", "m.gguf", "m", 1_000, "Short"), Offer("two/model", "n.gguf", "n", 1_000, about))
    page.get_models.show_recommended(offers)
    page.show_part(get=True)
    tree = page.get_models.tree
    assert not tree.isColumnHidden(1)
    page.resize(900, 560)
    qtbot.waitUntil(lambda: tree.isColumnHidden(1))
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    assert about in QToolTip.text()
    qtbot.keyClick(tree, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: not QToolTip.isVisible() or about not in QToolTip.text())
