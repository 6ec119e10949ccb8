"""Editing a message in its place."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QTextOption
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import ModelLoading
from kvdesk.protocol.model import LocalFile
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.messages.test_message_actions import ANSWER, QUESTION, action, shown
from tests.ui.recording import record
from tests.ui.samples import ONE, append_message, message, remove_messages, show_messages, update_message


def test_an_answer_is_edited_in_its_place(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    widget = shown(window)
    action(window, ANSWER.id, "Edit the answer…").trigger()
    editor = widget.editor
    assert editor.edit.toPlainText() == "Because of"
    qtbot.keyClicks(editor.edit, " cells")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(editor.edit, "and time")
    asked = record(window.commands.conversations.turns.edit_answer)
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return)
    assert asked[-1] == (ONE, "a", "Because of cells\nand time", False)
    assert widget.editor is None


def test_no_break_spaces_stay_in_what_is_edited_and_typed(window: MainWindow, qtbot: QtBot) -> None:
    """Qt gives them as blanks: an answer in French would be another one, and what follows would be read again."""
    widget = shown(window, QUESTION, replace(ANSWER, text="Vraiment\u00a0? « Oui »."))
    asked = record(window.commands.conversations.turns.edit_answer)
    widget.start_edit()
    qtbot.keyClick(widget.editor.edit, Qt.Key.Key_Return)
    assert not asked, "nothing was changed"
    assert widget.editor is None
    window.chat.composer.set_text("Bien\u00a0!")
    assert window.chat.composer.text == "Bien\u00a0!"


def test_a_long_word_is_wrapped_anywhere_wherever_it_is_written(window: MainWindow) -> None:
    """Qt takes seconds for each key else."""
    run, anywhere = "x" * 2000, QTextOption.WrapMode.WrapAnywhere
    composer = window.chat.composer
    composer.set_text(run)
    assert composer.edit.wordWrapMode() is anywhere
    composer.set_text("words again")
    assert composer.edit.wordWrapMode() is not anywhere
    widget = shown(window, QUESTION, ANSWER)
    widget.start_edit()
    edit = widget.editor.edit
    assert edit.wordWrapMode() is not anywhere
    QGuiApplication.clipboard().setText(run)
    edit.paste()
    assert edit.wordWrapMode() is anywhere
    widget.end_edit()
    composer.edit.clear()


def test_an_edit_can_be_left_and_be_continued(window: MainWindow, qtbot: QtBot) -> None:
    window.show()
    widget = shown(window)
    widget.start_edit()
    assert widget.editor is not None
    cancel, go_on, save = widget.editor._cancel, widget.editor._go_on, widget.editor._save
    widget.editor.edit.setPlainText(" ")
    assert not save.isEnabled()
    assert not go_on.isEnabled()
    told = record(window.commands.conversations.turns.edit_answer)
    qtbot.keyClick(widget.editor.edit, Qt.Key.Key_Escape)
    assert told == []
    assert widget.editor is None
    assert cancel is not None
    widget.start_edit()
    go_on = widget.editor._go_on
    asked = record(window.commands.conversations.turns.edit_answer)
    qtbot.mouseClick(go_on, Qt.MouseButton.LeftButton)
    assert asked[-1] == (ONE, "a", "Because of", True)


@pytest.mark.usefixtures("fresh")
def test_an_edit_goes_and_comes_back_with_its_message(window: MainWindow) -> None:
    shown(window)
    view = window.chat.view
    for name in (QUESTION.id, ANSWER.id):
        view.start_edit(name)
        view.widget_of(name).editor.edit.setPlainText("Other")
    remove_messages(window, ONE, (ANSWER.id,), (QUESTION,))
    view.end_edit()
    show_messages(window, ONE, (QUESTION, ANSWER))  # undone
    assert view.edits == {ANSWER.id: "Other"}
    view.end_edit()


@pytest.mark.usefixtures("fresh")
def test_a_question_is_edited_in_its_place(window: MainWindow, qtbot: QtBot) -> None:
    """As an answer is: later messages are dimmed, and a draft stays where it is."""
    show_messages(window, ONE, (QUESTION, replace(ANSWER, state="complete"), message("q2", "user", "Go on")))
    widgets = list(window.chat.view.widgets)
    window.chat.composer.set_text("a draft")
    window.action_set.run("chat.edit")
    assert widgets[2].editor is not None, "the last question"
    qtbot.keyClick(widgets[2].editor.edit, Qt.Key.Key_Escape)
    assert widgets[2].editor is None
    action(window, QUESTION.id, "Edit…").trigger()
    editor = widgets[0].editor
    assert editor.edit.hasFocus()
    assert [widget.is_dim for widget in widgets] == [False, True, True]
    update_message(window, replace(QUESTION, pinned=True))
    assert widgets[0].editor is editor, "whatever else happens to it"
    asked = record(window.commands.conversations.turns.edit)
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return)
    assert asked == [], "an empty line after it is no other question"
    action(window, QUESTION.id, "Edit…").trigger()
    editor = widgets[0].editor
    qtbot.keyClicks(editor.edit, " at all?")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert asked[-1] == (ONE, QUESTION.id, f"{QUESTION.text} at all?")
    assert window.chat.composer.text == "a draft"
    assert not any(widget.is_dim for widget in widgets)


@pytest.mark.usefixtures("fresh", "styled")
@pytest.mark.parametrize("n_lines", [1, 6])
def test_a_text_that_is_in_sight_as_a_whole_has_no_scroll_bar(window: MainWindow, n_lines: int) -> None:
    window.show()
    shown(window, message("q", "user", "\n".join(f"Line {n}" for n in range(n_lines))), ANSWER)
    window.chat.view.start_edit(QUESTION.id)
    editor = window.chat.view.widgets[0].editor
    assert editor is not None
    assert editor.edit.verticalScrollBar().maximum() == 0


@pytest.mark.usefixtures("fresh", "styled")
@pytest.mark.parametrize("height", [600, pytest.param(800, marks=pytest.mark.matrix)])
def test_a_long_question_is_edited_with_its_buttons_in_sight(window: MainWindow, qtbot: QtBot, height: int) -> None:
    window.resize(1280, height)
    window.show()
    shown(window, message("q", "user", "\n".join(f"Line {n}" for n in range(60))), ANSWER)
    view = window.chat.view
    view.start_edit(QUESTION.id)
    editor = view.widgets[0].editor
    assert editor is not None
    seen = view.viewport().rect()

    def all_in_sight() -> bool:
        parts = editor.edit, *(one for one in (editor._cancel, editor._go_on, editor._save) if one.isVisible())
        return all(seen.contains(one.rect().translated(one.mapTo(view.viewport(), QPoint()))) for one in parts)

    qtbot.waitUntil(all_in_sight)
    assert editor.edit.height() > height / 5


def test_no_edit_is_saved_while_the_model_writes(window: MainWindow) -> None:
    widget = shown(window, QUESTION, replace(ANSWER, state="complete"))
    window.chat.view.start_edit(QUESTION.id)
    widget.start_edit()
    editors = [one.editor for one in window.chat.view.widgets if one.editor is not None]
    assert [editor._save.isEnabled() for editor in editors] == [True, True]
    window.store.apply(ModelLoading(LocalFile(Path("/m/another.gguf")), 0.5))
    assert [editor._save.isEnabled() for editor in editors] == [False, True]
    assert editors[0]._cost.text() == "It can be saved when the model is ready"
    append_message(window, message("next", "assistant", "", state="streaming"))
    assert [editor._save.isEnabled() for editor in editors] == [False, False]
