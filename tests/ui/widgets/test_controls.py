"""Small controls: what they show where there is little room."""

import sys

import pytest
from PySide6.QtWidgets import QLineEdit, QStyleOptionComboBox, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice, small_choice
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel, has_focus

LONG = "Tell me about tides in three sentences, and then about the Moon"


def shown_by(choice: Choice) -> str:
    style = QStyleOptionComboBox()
    choice.initStyleOption(style)
    return style.currentText


def test_a_choice_ends_in_an_ellipsis_where_there_is_no_room(qtbot: QtBot) -> None:
    choice = Choice()
    qtbot.addWidget(choice)
    choice.addItem(LONG)
    choice.resize(200, 28)
    assert shown_by(choice).endswith("…")
    assert choice.currentText() == LONG
    choice.resize(1000, 28)
    assert shown_by(choice) == LONG


@pytest.mark.usefixtures("theme")
def test_a_list_that_scrolls_has_room_for_its_texts(qtbot: QtBot) -> None:
    choice = small_choice("Layers")
    qtbot.addWidget(choice)
    choice.addItems(["All layers", *(f"Layer {i}" for i in range(24))])
    choice.show()
    choice.showPopup()
    view = choice.view()
    qtbot.waitUntil(view.isVisible)
    assert view.verticalScrollBar().isVisible()
    assert view.viewport().width() >= view.sizeHintForColumn(0)
    choice.hidePopup()


@pytest.mark.usefixtures("theme")
def test_a_button_that_gets_a_longer_text_shows_all_of_it_at_once(qtbot: QtBot) -> None:
    button, whole = ElidedButton("Loading a model  5%"), QWidget()
    boxes.row(button, boxes.Stretch(1), on=whole)
    qtbot.addWidget(whole)
    whole.resize(600, 60)
    whole.show()
    button.setText("Loading a model  57%")
    assert button.text() == "Loading a model  57%"
    whole.setFixedWidth(100)
    button.setText("Loading a model  100%")
    qtbot.waitUntil(lambda: button.text().endswith("…"))


@pytest.mark.parametrize(("n_lines", "is_elided"), [(1, True), (2, False)])
@pytest.mark.usefixtures("theme")
def test_a_label_of_two_lines_elides_less(qtbot: QtBot, n_lines: int, is_elided: bool) -> None:
    one = ElidedLabel(LONG, n_lines)
    qtbot.addWidget(one)
    one.show()
    one.resize(one.fontMetrics().horizontalAdvance(LONG) * 2 // 3, one.sizeHint().height())
    assert one.is_elided == is_elided
    assert bool(one.toolTip()) == is_elided
    assert one.height() >= n_lines * one.fontMetrics().height()


@pytest.mark.usefixtures("theme")
def test_a_label_keeps_its_own_tip(qtbot: QtBot) -> None:
    one = ElidedLabel()
    qtbot.addWidget(one)
    one.show()
    one.resize(1_000, 20)
    one.setToolTip("What it cost < 1 s")
    one.setText("Short")
    assert one.toolTip() == "<qt>What it cost &lt; 1 s</qt>"
    assert one.accessibleDescription() == "What it cost < 1 s"
    one.setText(LONG)
    one.resize(60, 20)
    assert one.toolTip() == f"<qt>{LONG}<br>What it cost &lt; 1 s</qt>"


def test_the_keyboard_stays_in_a_widget_while_another_window_is_in_front(qtbot: QtBot) -> None:
    window, other = QWidget(), QLineEdit()
    here, elsewhere = QWidget(), QLineEdit()
    field = QLineEdit()
    boxes.column(field, on=here)
    boxes.column(elsewhere, here, on=window)
    for shown in (window, other):
        qtbot.addWidget(shown)
        shown.show()
    window.activateWindow()
    field.setFocus()
    assert has_focus(here)
    assert not has_focus(elsewhere)
    other.activateWindow()
    qtbot.waitUntil(other.isActiveWindow)
    assert has_focus(here)
    assert not has_focus(elsewhere)


@pytest.mark.skipif(sys.platform == "win32", reason="there Qt tells the accessible name")
def test_a_choice_without_a_label_is_described_by_its_name_and_its_tooltip(qtbot: QtBot) -> None:
    choice = Choice(name="Colour by")
    qtbot.addWidget(choice)
    choice.setToolTip("One colour a chat")
    choice.show()
    assert choice.accessibleDescription() == "Colour by. One colour a chat"
    choice.setToolTip("<qt>One &lt;colour&gt;<br>a page")
    assert choice.accessibleDescription() == "Colour by. One <colour>\na page"
