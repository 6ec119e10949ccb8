"""Where the focus goes when what has it goes away: to the composer, so that keys do there what one expects."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QMenu, QSpinBox, QToolButton, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.settings import ContextSettings, Settings
from kvdesk.ui.settings.page import SettingsPage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access import key_tips
from kvdesk.ui.widgets.controls import ElidedButton, push_button
from kvdesk.ui.widgets.dialog import Dialog
from kvdesk.ui.widgets.popup import Popup
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.recording import hear, record
from tests.ui.samples import ONE, cache_view, message, show_messages
from tests.ui.wheel import turned

BRANCH = (message("q", "user", "Hello"), message("a", "assistant", "Hello to you."))
OTHER = (BRANCH[0], message("b", "assistant", "Good day."))
BOTH = {MessageId("a"): (MessageId("a"), MessageId("b")), MessageId("b"): (MessageId("a"), MessageId("b"))}


def settings_page(window: MainWindow) -> SettingsPage:
    page = window.rooms.settings
    assert page is not None
    return page


def test_what_tab_reaches_shows_its_tooltip(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_tips, "TIP_MS", 0)
    menu = next(b for b in window.chat.findChildren(QToolButton) if b.accessibleName() == "Menu")
    menu.setFocus()
    qtbot.keyClick(menu, Qt.Key.Key_Backtab)
    reached = window.focusWidget()
    assert "Ctrl+I" in reached.toolTip()
    qtbot.waitUntil(lambda: QToolTip.text() == reached.toolTip())
    dialog = Dialog(window.theme, window, "A dialog")
    first, second = push_button("One"), push_button("Two", tip="What it does")
    third = ElidedButton("A long name of a model")
    third.setToolTip("Open another model")
    third.setFixedWidth(60)
    boxes.row(first, second, third, on=(row := QWidget()))
    dialog.column.addWidget(row)
    dialog.bring_up()
    first.setFocus()
    qtbot.waitUntil(first.hasFocus)
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: QToolTip.text() == "What it does")
    qtbot.keyClick(second, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: QToolTip.text() == "A long name of a model\nOpen another model")
    dialog.close()


def test_what_tab_reaches_in_a_popup_shows_its_tooltip(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_tips, "TIP_MS", 0)
    anchor = QWidget()
    qtbot.addWidget(anchor)
    anchor.show()
    popup = Popup(theme, anchor, 200)
    first, second = push_button("One"), push_button("Two", tip="What this one does")
    boxes.column(first, second, on=popup)
    with qtbot.waitExposed(popup):
        popup.open_at(first)
    qtbot.waitUntil(first.hasFocus)
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: QToolTip.text() == "What this one does")
    popup.close()


def test_a_line_of_a_menu_that_a_key_reaches_tells_its_tooltip(
    window: MainWindow, qtbot: QtBot, said: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_tips, "TIP_MS", 0)
    menu = QMenu(window)
    key_tips.show_tips_of(menu)
    for caption, tip in (("Copy\tCtrl+C", ""), ("Remove", "<qt>seq_rm(0, 1 &lt; 2)</qt>"), ("Fork", "A copy")):
        action = menu.addAction(caption)
        if tip:
            action.setToolTip(tip)
    with qtbot.waitExposed(menu):
        menu.popup(window.mapToGlobal(QPoint(100, 10)))
    for _ in range(3):
        qtbot.keyClick(menu, Qt.Key.Key_Down)
    assert said == [("seq_rm(0, 1 < 2)", False), ("A copy", False)], "a line without more to say says nothing"
    qtbot.waitUntil(lambda: QToolTip.text() == "A copy")
    tips = [one for one in QApplication.topLevelWidgets() if one.objectName() == "qtooltip_label" and one.isVisible()]
    assert [one.geometry().intersects(menu.geometry()) for one in tips] == [False], "it hides no line"
    menu.close()


@pytest.mark.usefixtures("fresh")
def test_after_a_branch_arrow_one_types_in_the_composer(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, BRANCH)
    window.store.show_forks(BOTH)

    def show_other(_conversation: str, _message: str) -> None:
        show_messages(window, ONE, OTHER)
        window.store.show_forks(BOTH)

    hear(window.commands.conversations.turns.show_branch, show_other)
    arrow = (window.chat.view.widgets[1].switch._before, window.chat.view.widgets[1].switch._after)[1]
    arrow.setFocus()
    qtbot.mouseClick(arrow, Qt.MouseButton.LeftButton)
    assert window.chat.composer.edit.hasFocus()
    qtbot.keyClicks(QApplication.focusWidget(), "two words")
    assert window.chat.composer.text == "two words"
    assert window.rooms.settings is None


def test_after_a_menu_one_types_in_the_composer(window: MainWindow, qtbot: QtBot) -> None:
    show_messages(window, ONE, BRANCH)
    window.chat.composer.focus_edit()
    for name in ("Menu", "Show or hide the cache inspector", "More about this message"):
        button = next(b for b in window.chat.findChildren(QToolButton) if b.accessibleName() == name)
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        if isinstance(menu := QApplication.activePopupWidget(), QMenu):
            menu.close()
        assert window.focusWidget() is window.chat.composer.edit


def test_after_a_rebuild_one_types_in_the_composer(window: MainWindow, qtbot: QtBot) -> None:
    window.store.apply(cache_view())
    rebuild = window.inspector.cache.rebuild
    rebuild.setFocus()
    qtbot.mouseClick(rebuild, Qt.MouseButton.LeftButton)
    question = window.inspector.cache.instruments.question
    hear(window.commands.rebuild, lambda *_: window.store.begin_rebuild())
    for answer in ("", "nothing"):
        question.ask(ContextSettings(), 12, [("A chat", 12)])
        assert question._buttons["tokens"].hasFocus()
        qtbot.mouseClick(question._buttons[answer], Qt.MouseButton.LeftButton)
        assert window.chat.composer.edit.hasFocus()
    assert not rebuild.isEnabled()


def test_escape_refuses_a_rebuild(window: MainWindow, qtbot: QtBot) -> None:
    window.store.apply(cache_view())
    asked = record(window.commands.rebuild)
    question = window.inspector.cache.instruments.question
    question.ask(ContextSettings(), 12, [("A chat", 12)])
    qtbot.keyClick(question._buttons["tokens"], Qt.Key.Key_Escape)
    assert question.isHidden()
    assert asked == []
    assert window.chat.composer.edit.hasFocus()


def test_settings_opened_for_a_rebuild_take_no_stray_keys(window: MainWindow, qtbot: QtBot) -> None:
    window.rooms.show_settings().show_context()
    page = settings_page(window)
    before = page.field("context", "n_ctx").property("value")
    rebuilt = record(window.commands.rebuild)
    for key in (Qt.Key.Key_7, Qt.Key.Key_Backspace, Qt.Key.Key_Space, Qt.Key.Key_Return):
        qtbot.keyClick(window.focusWidget(), key)
    assert page.field("context", "n_ctx").property("value") == before
    assert rebuilt == []
    qtbot.mouseClick(page.bar.apply, Qt.MouseButton.LeftButton)
    assert len(rebuilt) == 1
    assert page.isHidden(), "what came of it is said in the window"
    assert window.focusWidget() is window.chat.composer.edit


def test_after_a_revert_no_field_has_the_focus(window: MainWindow, qtbot: QtBot) -> None:
    window.rooms.show_settings()
    page = settings_page(window)
    page.field("context", "n_ctx").setProperty("value", 512)
    page.bar.revert.setFocus()
    qtbot.mouseClick(page.bar.revert, Qt.MouseButton.LeftButton)
    assert page.bar.isHidden()
    assert page.sections.hasFocus()


def test_what_is_disabled_in_another_room_leaves_the_focus_where_one_began(window: MainWindow, qtbot: QtBot) -> None:
    window.action_set.run("model.server")
    page = settings_page(window)
    qtbot.keyClicks(page.connecting.url, "bigbox")
    page.connecting.connect_button.setFocus()
    page.connecting.connect_button.setEnabled(False)
    assert page.sections.hasFocus()


def test_the_wheel_scrolls_the_settings_and_changes_none(window: MainWindow, qtbot: QtBot) -> None:
    window.rooms.show_settings()
    page = settings_page(window)
    page.sections.setCurrentRow(2)
    box = page.field("sampling", "top_k")
    assert isinstance(box, QSpinBox)

    def turn() -> None:
        QApplication.sendEvent(box, turned(box))

    turn()
    assert box.value() == Settings().sampling.top_k
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    turn()
    assert box.value() == Settings().sampling.top_k + 1


def test_no_field_of_the_window_takes_the_wheel_or_the_focus_with_it(window: MainWindow) -> None:
    window.inspector.show_all(True)
    window.rooms.show_settings()
    fields = [*window.findChildren(QComboBox), *window.findChildren(QAbstractSpinBox)]
    assert len(fields) > 20
    for field in fields:
        turn = turned(field, at=QPointF(2, 2))
        QApplication.sendEvent(field, turn)
        assert not turn.isAccepted(), field.accessibleName()
        assert field.focusPolicy() != Qt.FocusPolicy.WheelFocus, field.accessibleName()


def test_after_a_look_at_a_tab_or_a_new_chat_one_types_in_the_composer(window: MainWindow, qtbot: QtBot) -> None:
    window.chat.composer.focus_edit()
    log = next(b for b in window.inspector.findChildren(QToolButton) if b.text() == "Log")
    qtbot.mouseClick(log, Qt.MouseButton.LeftButton)
    assert window.chat.composer.edit.hasFocus()
    made = record(window.commands.new_chat)
    new = next(b for b in window.conversations.findChildren(QToolButton) if b.accessibleName() == "New chat")
    new.setFocus()
    qtbot.mouseClick(new, Qt.MouseButton.LeftButton)
    assert window.chat.composer.edit.hasFocus()
    qtbot.keyClicks(QApplication.focusWidget(), "two words")
    assert (window.chat.composer.text, len(made)) == ("two words", 1)
