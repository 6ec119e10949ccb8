"""The parameters of a chat with nothing scripted: window, engine, database, tiny model; and after a restart."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.conversations.parameters import Parameters
from kvdesk.protocol.prompt import PromptPreview
from kvdesk.settings import Sampling
from kvdesk.store.settings_file import save_settings
from kvdesk.ui.parameters.panel import ParametersPanel
from tests.app.whole import SETTINGS, App

BARE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"


class Editor:
    """A person with the dialog, who waits for what is said of the cost."""

    def __init__(self, app: App, qtbot: QtBot) -> None:
        self._app, self._qtbot = app, qtbot
        qtbot.keyClick(app.parts.window, Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
        found = app.parts.window.chat_parameters.panel
        assert found is not None
        self.dialog: ParametersPanel = found
        self.preview()

    def preview(self) -> PromptPreview:
        """The answer to what is edited now."""
        panel = self.dialog
        self._app.wait(lambda: panel._preview is not None and panel._asked is None and not panel._asking.isActive())
        assert panel._preview is not None
        return panel._preview

    def set_prompt(self, text: str) -> PromptPreview:
        """Type another system prompt, and apply it once its cost was said."""
        self._qtbot.mouseClick(self.dialog.tab(0), Qt.MouseButton.LeftButton)
        self.dialog.prompt_edit.selectAll()
        self._qtbot.keyClick(self.dialog.prompt_edit, Qt.Key.Key_Delete)
        self._qtbot.keyClicks(self.dialog.prompt_edit, text)
        said = self.preview()
        self.apply()
        return said

    def set_template(self, text: str) -> PromptPreview:
        """Paste a template."""
        page = self.dialog.template_page
        self._qtbot.mouseClick(self.dialog.tab(2), Qt.MouseButton.LeftButton)
        if not page.own_box.isChecked():
            self._qtbot.mouseClick(page.own_box, Qt.MouseButton.LeftButton, pos=QPoint(8, page.own_box.height() // 2))
        page.edit.selectAll()
        page.edit.insertPlainText(text)
        return self.preview()

    def apply(self) -> None:
        self._qtbot.mouseClick(self.dialog.apply_button, Qt.MouseButton.LeftButton)


def test_what_is_said_before_is_what_the_next_answer_costs(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, talking_file: Path
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "embedded_model", lambda: talking_file)
    save_settings(SETTINGS, paths.settings_file())
    app = App(qtbot)
    window = app.parts.window
    first = app.ask("What is the sea? Tell me about its tides and its winds.").stats
    editor = Editor(app, qtbot)
    held = editor.preview()
    assert held.n_cached == first.cells_used

    said = editor.set_prompt("You are a pirate.")
    assert said.n_again > 20
    assert editor.dialog._cost.text().startswith("The prompt of this chat has"), "applied"
    assert window.chat.header.parameters.accessibleName() == "Parameters: system prompt"
    second = app.ask("And a lake?").stats
    assert second.reused_tokens == said.n_cached
    assert second.prefilled_tokens >= said.n_tokens - said.n_cached

    back = editor.set_prompt("")
    assert back.n_cached == held.n_cached, "the branch of before is still in the cache"
    third = app.ask("And a lake?").stats
    assert third.reused_tokens == back.n_cached

    broken = editor.set_template("{% for m in messages %}\n{{ m.role }")
    assert broken.problem.startswith("This chat's own template is broken in line 2: ")
    assert not editor.dialog.apply_button.isEnabled()
    assert app.ask("And a river?").state == "complete", "the old one stays in force"
    own = editor.set_template(BARE)
    assert own.problem == ""
    assert editor.dialog.template_page.prompt.text_edit.toPlainText().startswith("[user] What is the sea?")
    editor.apply()
    fourth = app.ask("And a brook?").stats
    assert fourth.reused_tokens == own.n_cached
    sampling = Sampling(temperature=0.0, max_tokens=3)
    conversation = app.parts.controller.selected
    assert conversation is not None
    window.commands.conversations.set_parameters(conversation, Parameters("Be brief.", sampling, BARE))
    assert app.ask("And?").stats.generated_tokens == 3
    window.close()

    again = App(qtbot)
    again.parts.window.commands.select(conversation)
    again.wait(lambda: again.parts.controller.conversations.branch(conversation) != [])
    known = again.parts.controller.conversations.get(conversation)
    assert known is not None
    assert Parameters.of(known) == Parameters("Be brief.", sampling, BARE)
    assert again.parts.window.chat.header.parameters.accessibleName().startswith("Parameters: system prompt, ")
    fifth = again.ask("Once more?").stats
    assert fifth.generated_tokens == 3
    again.parts.window.close()
