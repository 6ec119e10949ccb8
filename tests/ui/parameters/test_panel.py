"""The parameters of a chat in the window, by mouse and keys; the engine's answers are given by hand."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QHelpEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDoubleSpinBox, QToolTip
from pytestqt.qtbot import QtBot

from kvdesk.conversations.parameters import Parameters
from kvdesk.message import ConversationId
from kvdesk.protocol.chat import BackendReady, ModelLoaded, PreviewTurn, TurnEnded
from kvdesk.protocol.features import MISSING, Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.prompt import PreviewPrompt, PromptPreview, PromptToken
from kvdesk.settings import Preset, Sampling, Settings
from kvdesk.settings.preset import built_in
from kvdesk.thinking import Thinking
from kvdesk.ui.parameters.panel import ParametersPanel
from kvdesk.ui.settings.text_field import TextField
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from tests.ui.recording import Record
from tests.ui.samples import CONVERSATIONS, ONE, STATS, TWO, show_messages

TOKENS = (
    PromptToken(1, "<|im_start|>", is_special=True),
    PromptToken(20, "user"),
    PromptToken(198, "\n"),
    PromptToken(21, " sea"),
    PromptToken(22, ""),
    PromptToken(23, "é"),
)
MODELS = "{% for m in messages %}{{ m.content }}{% endfor %}"


def preview(number: int, conversation: ConversationId = ONE, **values: object) -> PromptPreview:
    known: dict[str, object] = {"n_tokens": 6, "n_cached": 3, "n_head": 6, "model_template": MODELS, "tokens": TOKENS}
    return PromptPreview(conversation, number, **(known | values))  # type: ignore[arg-type]


@pytest.fixture
def asked(window: MainWindow, record: Record) -> list[tuple[object, ...]]:
    return record(window.commands.conversations.preview_prompt)


@pytest.fixture
def applied(window: MainWindow, record: Record) -> list[tuple[object, ...]]:
    return record(window.commands.conversations.set_parameters)


@pytest.fixture
def dialog(window: MainWindow, asked: list[tuple[object, ...]], qtbot: QtBot) -> ParametersPanel:
    """Open, by a click on the header; the first question is answered."""
    QTest.mouseClick(window.chat.header.parameters, Qt.MouseButton.LeftButton)
    dialog = window.chat_parameters.panel
    assert dialog is not None
    qtbot.waitUntil(lambda: bool(asked))
    window.store.apply(preview(1))
    asked.clear()
    return dialog


def test_keys_open_it_on_the_chat_that_is_shown(window: MainWindow, qtbot: QtBot) -> None:
    own = replace(CONVERSATIONS[0], system_prompt="Be brief.", sampling=Sampling(temperature=0.3), template="{{ 1 }}")
    window.store.show_conversations((own, CONVERSATIONS[1]), ONE)
    assert window.chat.header.parameters.accessibleName() == "Parameters: system prompt, Temperature 0.3, template"
    assert "Temperature 0.3" in window.chat.header.parameters.toolTip()
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    dialog = window.chat_parameters.panel
    assert dialog.isVisible()
    assert dialog.parameters == Parameters.of(own)
    assert not dialog.apply_button.isEnabled()
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert window.chat.header.parameters.accessibleName() == "Parameters"
    assert dialog.parameters == Parameters(), "what was not edited follows"


def test_the_cost_is_asked_after_a_pause_and_said_before_apply(
    dialog: ParametersPanel,
    window: MainWindow,
    asked: list[tuple[object, ...]],
    applied: list[tuple[object, ...]],
    qtbot: QtBot,
) -> None:
    assert dialog._cost.text() == "The prompt of this chat has 6 tokens, 3 of them in the cache."
    qtbot.keyClicks(dialog.prompt_edit, "Be brief.")
    assert dialog._cost.text() == "Counting the tokens …"
    qtbot.waitUntil(lambda: bool(asked))
    assert asked == [(ONE, Parameters("Be brief."), 2)], "once, not for every key"
    window.store.apply(preview(2, n_again=5, again_ms=1200.0))
    assert dialog._cost.text() == "Prefilled again with the next answer: 5 tokens, about 1.2 s."
    assert applied == []
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    assert applied == [(ONE, Parameters("Be brief."))]


def test_one_question_at_a_time_and_old_answers_say_nothing(
    dialog: ParametersPanel, window: MainWindow, asked: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    qtbot.keyClicks(dialog.prompt_edit, "Be")
    qtbot.waitUntil(lambda: bool(asked))
    qtbot.keyClicks(dialog.prompt_edit, " brief.")
    window.store.apply(preview(1, n_again=99))
    assert dialog._cost.text() == "Counting the tokens …"
    window.store.apply(preview(2, n_again=99))
    assert dialog._cost.text() == "Counting the tokens …", "of what is not edited any more"
    assert asked[-1] == (ONE, Parameters("Be brief."), 3)
    window.store.apply(preview(3, n_again=7))
    assert dialog._cost.text().endswith(": 7 tokens.")


def test_a_prompt_with_no_break_spaces_is_not_edited_by_being_shown(dialog: ParametersPanel) -> None:
    dialog.show_chat("Mer", Parameters("Réponds en français\u00a0!"))
    assert not dialog.is_edited


def test_sampling_of_its_own_costs_nothing(
    dialog: ParametersPanel, window: MainWindow, applied: list[tuple[object, ...]]
) -> None:
    window.store.settings.change(**dict(Settings(sampling=Sampling(temperature=0.5))))
    QTest.mouseClick(dialog.tab(1), Qt.MouseButton.LeftButton)
    field = dialog.sampling_page.rows.field("sampling", "temperature")
    assert isinstance(field, QDoubleSpinBox)
    assert (field.value(), field.isEnabled()) == (0.5, False)
    QTest.keyClick(dialog.sampling_page.own_box, Qt.Key.Key_Space)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "0.9")
    assert dialog._cost.text() == "Sampling is no part of the prompt: changing it costs nothing in the cache."
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    assert applied == [(ONE, Parameters("", Sampling(temperature=0.9)))]
    QTest.mouseClick(dialog.defaults_button, Qt.MouseButton.LeftButton)
    assert (dialog.parameters, field.value()) == (Parameters(), 0.5)


def test_a_preset_is_chosen_or_kept_with_its_system_prompt(
    dialog: ParametersPanel, window: MainWindow, applied: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    bar = dialog.presets
    assert bar.choice.currentText() == "Default"
    bar.choice.setFocus()
    qtbot.keyClick(bar.choice, Qt.Key.Key_Down)  # as with the mouse, `activated` is sent
    precise = next(preset for preset in built_in() if preset.name == "Precise")
    assert dialog.parameters == Parameters("", precise.sampling)
    assert dialog._cost.text() == "Sampling is no part of the prompt: changing it costs nothing in the cache."
    qtbot.keyClicks(dialog.prompt_edit, "Be brief.")
    bar.save("Mine")
    (kept,) = window.store.settings.current.presets
    assert kept == Preset(name="Mine", system_prompt="Be brief.", sampling=precise.sampling)
    assert bar.choice.findText("Mine") > 0
    QTest.mouseClick(dialog.defaults_button, Qt.MouseButton.LeftButton)
    assert dialog.parameters == Parameters()
    bar.choice.setCurrentIndex(bar.choice.findText("Mine"))
    bar.choice.activated.emit(bar.choice.currentIndex())
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    assert applied == [(ONE, Parameters("Be brief.", precise.sampling))]


def test_a_text_of_sampling_that_cannot_be_used_is_not_applied(dialog: ParametersPanel, qtbot: QtBot) -> None:
    QTest.mouseClick(dialog.tab(1), Qt.MouseButton.LeftButton)
    QTest.keyClick(dialog.sampling_page.own_box, Qt.Key.Key_Space)
    field = dialog.sampling_page.rows.field("sampling", "logit_bias")
    assert isinstance(field, TextField)
    qtbot.keyClicks(field.edit, "no bias at all")
    assert field.problem
    assert dialog._cost.text() == field.problem
    assert not dialog.apply_button.isEnabled()


def test_a_template_counts_once_it_was_checked_on_this_chat(
    dialog: ParametersPanel,
    window: MainWindow,
    asked: list[tuple[object, ...]],
    applied: list[tuple[object, ...]],
    qtbot: QtBot,
) -> None:
    QTest.mouseClick(dialog.tab(2), Qt.MouseButton.LeftButton)
    page = dialog.template_page
    assert page.edit.toPlainText() == MODELS
    assert page.edit.isReadOnly()
    QTest.mouseClick(page.own_box, Qt.MouseButton.LeftButton, pos=QPoint(8, page.own_box.height() // 2))
    assert dialog.parameters == Parameters(), "that of the model, in its own words"
    page.edit.moveCursor(QTextCursor.MoveOperation.End)
    qtbot.keyClicks(page.edit, "{{")
    assert not dialog.apply_button.isEnabled()
    qtbot.waitUntil(lambda: bool(asked) and asked[-1][1] == Parameters(template=MODELS + "{{"))
    window.store.apply(PromptPreview(ONE, int(str(asked[-1][2])), MODELS, problem="It is broken in line 1: so."))
    assert page._problem.text() == "It is broken in line 1: so."
    assert dialog._cost.text() == "This template cannot be used; the one before stays in force."
    assert not dialog.apply_button.isEnabled(), "the old one stays in force"
    qtbot.keyClicks(page.edit, "1 }}")
    qtbot.waitUntil(lambda: asked[-1][1] == Parameters(template=MODELS + "{{1 }}"))
    window.store.apply(preview(int(str(asked[-1][2])), n_again=2))
    assert page._problem.text() == ""
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    assert applied == [(ONE, Parameters(template=MODELS + "{{1 }}"))]


def test_every_token_is_told_apart_and_described(dialog: ParametersPanel) -> None:
    QTest.mouseClick(dialog.tab(2), Qt.MouseButton.LeftButton)
    view = dialog.template_page.prompt
    edit = view.text_edit
    assert edit.toPlainText() == "<|im_start|>user↵\n sea·é"
    assert view._counts.text() == "6 tokens: 3 in the cache, 3 to be computed."
    formats = []
    for token in range(len(TOKENS)):
        cursor = QTextCursor(edit.document())
        cursor.setPosition(view._starts[token] + 1)
        formats.append((cursor.charFormat().background().color().name(), cursor.charFormat().fontItalic()))
    grounds = [ground for ground, _ in formats]
    assert all(one != other for one, other in pairwise(grounds)), "neighbours"
    assert grounds[1] != grounds[5], "cached and to be computed, of the same shade"
    assert [italic for _, italic in formats] == [True, False, False, False, False, False]

    edit.setFocus()
    for _ in range(14):
        QTest.keyClick(edit, Qt.Key.Key_Right)
    assert view._under_caret.full_text == "token 20 “user” at position 1, in the cache"
    assert view.text_edit.accessibleDescription() == view._under_caret.full_text
    assert view.describe(5) == "token 23 “é” at position 5, to be computed"
    assert view.describe(0) == "special token 1 “<|im_start|>” at position 0, in the cache"

    cursor = QTextCursor(edit.document())
    cursor.setPosition(view._starts[3] + 2)
    at = edit.cursorRect(cursor).center() + QPoint(2, 0)
    QApplication.sendEvent(edit.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, edit.viewport().mapToGlobal(at)))
    assert QToolTip.text() == "token 21 “ sea” at position 3, to be computed"


def test_what_is_left_out_of_a_long_prompt_is_said(dialog: ParametersPanel) -> None:
    view = dialog.template_page.prompt
    view.show_preview(preview(1, n_tokens=5_006, n_head=3, n_left_out=5_000))
    assert "… 5,000 tokens in the middle are not shown …" in view.text_edit.toPlainText()
    assert view.describe(3) == "token 21 “ sea” at position 5,003, to be computed"


def test_what_is_edited_is_kept_while_another_chat_is_shown(
    dialog: ParametersPanel, window: MainWindow, applied: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    qtbot.keyClicks(dialog.prompt_edit, "Half a")
    window.store.show_conversations(CONVERSATIONS, TWO)
    assert dialog.parameters == Parameters()
    window.store.apply(preview(2, ONE, n_again=99))
    assert "99" not in dialog._cost.text()
    window.store.show_conversations(CONVERSATIONS, ONE)
    assert dialog.parameters == Parameters("Half a")
    assert applied == []


@pytest.mark.usefixtures("dialog")
def test_the_prompt_is_asked_for_again_when_it_has_changed(
    window: MainWindow, asked: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    window.chat.composer.edit.insertPlainText("And then")
    qtbot.waitUntil(lambda: len(asked) == 1)
    window.store.apply(preview(2))
    window.store.apply(TurnEnded(ONE, "a", "complete", STATS))  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: len(asked) == 2)
    show_messages(window, ONE, ())  # another branch; the last question had no answer
    qtbot.waitUntil(lambda: len(asked) == 3)


def test_an_empty_system_prompt_shows_that_of_the_template(
    dialog: ParametersPanel, window: MainWindow, asked: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    assert dialog.prompt_edit.placeholderText().startswith("No system prompt.")
    dialog.ask_again()
    qtbot.waitUntil(lambda: bool(asked))
    texts = ("<|im_start|>", "system\nBe kind.", "<|im_end|>", "\n", "<|im_start|>", "user\nHi")
    tokens = tuple(PromptToken(n, text, text.startswith("<|")) for n, text in enumerate(texts))
    window.store.apply(preview(2, tokens=tokens))
    assert dialog.prompt_edit.placeholderText().endswith("\n\nBe kind.")


def test_an_engine_that_fails_on_it_is_a_sentence(
    dialog: ParametersPanel, window: MainWindow, asked: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    qtbot.keyClicks(dialog.prompt_edit, "Be brief.")
    qtbot.waitUntil(lambda: bool(asked))
    nothing = PreviewTurn(ONE, ())
    window.store.apply(CommandFailed(PreviewPrompt(nothing, nothing, 2), "Something unexpected went wrong."))
    assert dialog._cost.text() == "Something unexpected went wrong."


def test_an_engine_without_prompts_says_so_and_is_asked_nothing(
    window: MainWindow, asked: list[tuple[object, ...]], applied: list[tuple[object, ...]], qtbot: QtBot
) -> None:
    window.store.apply(BackendReady(frozenset({Feature.CHAT})))
    qtbot.keyClick(window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
    dialog = window.chat_parameters.panel
    assert dialog.template_page._missing.text() == MISSING[Feature.PROMPT_VIEW]
    assert not dialog.template_page.own_box.isEnabled()
    qtbot.keyClicks(dialog.prompt_edit, "Be brief.")
    assert dialog._cost.text() == "This engine does not say what that costs."
    assert not dialog._asking.isActive()
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    assert applied == [(ONE, Parameters("Be brief."))]
    assert asked == []


def test_it_is_beside_the_chat_where_the_inspector_is(dialog: ParametersPanel, window: MainWindow) -> None:
    assert dialog.window() is window
    assert (dialog.isVisible(), window.inspector.isVisible(), window.chat.isVisible()) == (True, False, True)
    assert window.chat.header.parameters.isChecked()
    window.action_set.run("view.inspector")
    assert (dialog.isVisible(), window.inspector.isVisible()) == (False, True), "one of them at a time"
    assert not window.chat.header.parameters.isChecked()
    window.action_set.run("chat.parameters")
    window.action_set.run("chat.parameters")
    assert (dialog.isVisible(), window.inspector.isVisible()) == (False, True), "as before"
    window.store.settings.change(inspector_visible=False)
    window.action_set.run("chat.parameters")
    assert (dialog.isVisible(), window.inspector.isVisible()) == (True, False)
    window.action_set.run("chat.parameters")
    assert (dialog.isVisible(), window.inspector.isVisible()) == (False, False)


def test_esc_closes_it_and_keeps_what_is_edited(dialog: ParametersPanel, window: MainWindow, qtbot: QtBot) -> None:
    qtbot.keyClicks(dialog.prompt_edit, "Half a")
    dialog.prompt_edit.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    assert window.focusWidget() is window.chat.composer.edit
    window.action_set.run("chat.parameters")
    assert dialog.parameters == Parameters("Half a")


def test_it_fits_a_small_window_beside_the_chat(dialog: ParametersPanel, window: MainWindow) -> None:
    window.resize(900, 600)
    QApplication.processEvents()
    assert (window.width(), window.height()) == (900, 600)
    assert dialog.isVisible()
    assert window.chat.isVisible()
    assert dialog.width() >= dialog.minimumSizeHint().width()
    for page in range(3):
        dialog.tab(page).click()
        QApplication.processEvents()
        assert window.rect().contains(QRect(dialog.mapTo(window, QPoint()), dialog.size()))


def test_every_control_has_a_name(dialog: ParametersPanel) -> None:
    names = [
        dialog.prompt_edit.accessibleName(),
        dialog.template_page.edit.accessibleName(),
        dialog.template_page.prompt.text_edit.accessibleName(),
        *(dialog.tab(i).accessibleName() for i in range(3)),
    ]
    assert all(names)
    assert len(set(names)) == len(names)


THINKING = (
    MODELS + "{% if enable_thinking is defined and not enable_thinking or clear_thinking %}<think></think>{% endif %}"
)


def test_thinking_is_chosen_where_the_template_has_a_switch(
    window: MainWindow, dialog: ParametersPanel, applied: list[tuple[object, ...]]
) -> None:
    row = dialog.thinking_row
    assert row.isHidden(), "the model's template has no switch"
    model = window.store.model
    assert model is not None
    window.store.apply(ModelLoaded(replace(model, template=THINKING)))
    dialog.show_settings()
    assert not row.isHidden()
    assert [row.level.itemText(n) for n in range(row.level.count())] == ["as the template does", "off", "on"]
    row.level.setFocus()
    QTest.keyClick(row.level, Qt.Key.Key_Down)
    assert dialog.parameters.thinking == Thinking("off")
    assert not row.budget.isEnabled(), "there is none to limit"
    row.level.setCurrentIndex(2)
    row.level.activated.emit(2)
    row.budget.setValue(256)
    row.keep.click()
    QTest.mouseClick(dialog.apply_button, Qt.MouseButton.LeftButton)
    (_, parameters), *_rest = applied
    assert isinstance(parameters, Parameters)
    assert parameters.thinking == Thinking("on", keep=True, budget=256)
