"""The empty chat: three starters by pointer and keyboard, what is said of a toy, and the model that is offered."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import ModelLoaded
from kvdesk.settings import ThemeChoice
from kvdesk.ui.chat.empty_pane import EmptyPane
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.chat.starters import STARTERS
from kvdesk.viewmodel.downloads import Offer
from kvdesk.viewmodel.palette import contrast
from tests.ui.samples import MODEL, ONE, append_message, message, show_messages
from tests.ui.seen import seen

OFFER = Offer("Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q8_0.gguf", "Qwen3-1.7B-Q8_0", 1_834_000_000, "", licence="mit")


@pytest.fixture
def pane(window: MainWindow) -> EmptyPane:
    """Of a window with an empty chat."""
    window.activateWindow()
    return window.chat.empty


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return, None])
def test_a_starter_is_asked_by_pointer_and_keys(
    window: MainWindow,
    pane: EmptyPane,
    qtbot: QtBot,
    record: Callable[[object], list[tuple[object, ...]]],
    key: Qt.Key | None,
) -> None:
    asked = record(window.commands.ask_starter)
    for card in pane.cards:
        assert card.isVisible()
        if key is None:
            qtbot.mouseClick(card, Qt.MouseButton.LeftButton)
        else:
            card.setFocus()
            qtbot.keyClick(card, key)
    assert asked == [(starter.name,) for starter in STARTERS]
    assert window.chat.composer.edit.hasFocus(), "one goes on typing"


def test_tab_reaches_every_card(window: MainWindow, pane: EmptyPane, qtbot: QtBot) -> None:
    window.chat.composer.edit.setFocus()
    seen = set()
    for _ in range(60):
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        seen.add(window.focusWidget())
    assert set(pane.cards) <= seen


def test_the_cards_go_with_the_first_message(window: MainWindow, pane: EmptyPane) -> None:
    append_message(window, message("q", "user", "Hello"))
    assert not any(card.isVisible() for card in pane.cards)
    show_messages(window, ONE, ())
    assert all(card.isVisible() for card in pane.cards)


@pytest.mark.usefixtures("fresh")
def test_only_of_the_embedded_model_it_is_said_that_it_is_a_toy(window: MainWindow, pane: EmptyPane) -> None:
    assert not pane.toy.isVisible()
    window.store.show_embedded(is_open=True)
    window.store.apply(ModelLoaded(replace(MODEL, n_params=135_000_000)))
    assert pane.toy.isVisible()
    assert "toy of 135 M parameters" in pane.toy.text()
    assert "only English" in pane.toy.text()
    window.store.show_embedded(is_open=False)
    assert not pane.toy.isVisible()


def test_one_model_is_offered_in_place_of_a_toy(
    window: MainWindow, pane: EmptyPane, qtbot: QtBot, record: Callable[[object], list[tuple[object, ...]]]
) -> None:
    wanted, opened = record(window.commands.download), record(window.commands.open_model)
    pane.offer.show_offer(OFFER, "1.83 GB", None)
    assert not pane.offer.isVisible(), "a real model is open"
    window.store.show_embedded(is_open=True)
    assert pane.offer.isVisible()
    assert "Qwen3-1.7B-Q8_0" in seen(pane.offer)
    assert "1.83 GB" in seen(pane.offer)
    qtbot.mouseClick(pane.offer.button, Qt.MouseButton.LeftButton)
    assert wanted == [(OFFER,)]
    pane.offer.show_offer(OFFER, "1.83 GB", Path("/models/there.gguf"))
    assert pane.offer.button.text() == "Open"
    qtbot.mouseClick(pane.offer.button, Qt.MouseButton.LeftButton)
    assert opened == [(Path("/models/there.gguf"),)]


@pytest.mark.usefixtures("styled")
def test_the_offer_is_in_sight_in_a_low_window(window: MainWindow, pane: EmptyPane, qtbot: QtBot) -> None:
    window.store.settings.change(tour_seen=True)
    window.store.show_embedded(is_open=True)
    pane.offer.show_offer(OFFER, "1,834 MB", None)
    assert pane.cards[0].toolTip() == ""
    window.resize(900, 600)
    qtbot.waitUntil(lambda: pane.cards[0].toolTip() != "")
    assert pane.offer.button.isVisible()
    qtbot.waitUntil(lambda: pane.verticalScrollBar().maximum() == 0)


def test_the_tour_is_offered_until_it_was_taken(window: MainWindow, pane: EmptyPane, qtbot: QtBot) -> None:
    assert pane.tour.isVisible()
    qtbot.mouseClick(pane.tour, Qt.MouseButton.LeftButton)
    assert window.help.introduction.isVisible()
    assert not pane.tour.isVisible()


def test_the_bubble_of_the_icon_is_seen_on_both_grounds(window: MainWindow, pane: EmptyPane) -> None:
    for theme in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        window.theme.set_theme(theme)
        picture = pane.icon.pixmap().toImage()
        bubble = picture.pixelColor(picture.width() // 2, round(picture.height() * 0.12))
        assert contrast(bubble.name(), window.theme.colours.window) > 1.25


def test_without_a_model_there_is_nothing_to_ask(empty_window: MainWindow) -> None:
    pane = empty_window.chat.empty
    assert not any(card.isVisible() for card in pane.cards)
    assert pane._first.text() == "No model is open"
