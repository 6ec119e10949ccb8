"""The parameters of the chat that is shown: the button in its header, the panel, and what a person wants of them."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from kvdesk.conversations.changes import BranchChanged
from kvdesk.conversations.parameters import Parameters
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import ContextReady, OperationDone
from kvdesk.protocol.chat import BackendReady, EngineRestarted, ModelLoaded, TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.protocol.prompt import PreviewPrompt, PromptPreview
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.parameters.words import button_text, changes, is_changed
from kvdesk.ui.shell.window import Window

if TYPE_CHECKING:
    from kvdesk.ui.parameters.panel import ParametersPanel


class ChatParameters(QObject):
    """Follows the selection. What is edited of a chat and not applied is kept until kvdesk ends."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window, self._store, self._settings = window, window.store, window.store.settings
        self.panel: ParametersPanel | None = None
        """None until it was opened."""
        self._for: ConversationId | None = None  # whose parameters are in the panel, edited or not
        self._edited: dict[ConversationId, Parameters] = {}  # of chats that are not shown
        window.panes.parameters_shown.connect(self._on_panel_shown)
        window.chat.composer.text_changed.connect(self._ask_again)
        self.destroyed.connect(window.store.listen(self._on_changed, often=()))
        self.destroyed.connect(self._settings.listen(lambda _changed: self.refresh()))
        self.refresh()

    def toggle(self) -> None:
        """Show the panel beside the chat, or hide it."""
        if self._window.panes.shows_parameters:
            self.close()
        else:
            self.open()

    def close(self) -> None:
        """Hide the panel; what is edited of the chat and not applied is in it when it is opened again."""
        self._window.panes.hide_parameters()

    def _on_panel_shown(self, shown: bool) -> None:
        self._window.chat.header.parameters.setChecked(shown)
        if not shown and self._window.chat.isVisible():
            self._window.chat.composer.focus_edit()

    def open(self) -> None:
        """Show the panel."""
        if self._store.selected is None:
            return
        if self.panel is None:
            from kvdesk.ui.parameters.panel import ParametersPanel

            self.panel = ParametersPanel(self._window.kit, self._apply, self._ask)
            self.panel.show_missing(self._store.missing(Feature.PROMPT_VIEW))
        self._window.panes.show_parameters(self.panel)
        self.refresh()

    def refresh(self) -> None:
        """The selection, its parameters or the settings may have changed."""
        state, settings = self._store, self._settings.current
        known = state.conversations.get(state.selected) if state.selected is not None else None
        parameters = Parameters.of(known) if known is not None else Parameters.default(settings)
        text, lines = button_text(parameters, settings), changes(parameters, settings)
        self._window.chat.header.parameters.show_changes(text, lines, is_changed=is_changed(parameters, settings))
        if self.panel is None or not self._window.panes.shows_parameters:
            return
        self.panel.show_settings()
        if known is None:
            self.close()
            return
        title = known.title or tr("New chat")
        if known.id == self._for:
            self.panel.show_applied(title, parameters)
            return
        if self._for is not None and self.panel.is_edited:
            self._edited[self._for] = self.panel.parameters
        self._for = known.id
        self.panel.show_chat(title, parameters, self._edited.pop(known.id, None))

    def _ask_again(self) -> None:
        if self.panel is not None:
            self.panel.ask_again()

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        if changed & (Changed.CONVERSATIONS | Changed.SELECTED):
            self.refresh()
        if self.panel is None:
            return
        match update:
            case PromptPreview() if update.conversation == self._for:
                self.panel.show_preview(update)
            case CommandFailed(command=PreviewPrompt() as asked) if asked.turn.conversation == self._for:
                problem = PromptPreview(asked.turn.conversation, asked.number, problem=update.sentence)
                self.panel.show_preview(problem)
            case BackendReady():
                self.panel.show_missing(self._store.missing(Feature.PROMPT_VIEW))
            case TurnEnded() | ModelLoaded() | ContextReady() | EngineRestarted() | BranchChanged():
                self.panel.ask_again()
            case OperationDone() if update.changes_use:
                self.panel.ask_again()

    def _apply(self, parameters: Parameters) -> None:
        if self._for is not None:
            self._window.commands.conversations.set_parameters(self._for, parameters)
            self._window.chat.composer.ask_again()

    def _ask(self, parameters: Parameters, number: int) -> None:
        if self._for is not None and not self._store.dead:
            self._window.commands.conversations.preview_prompt(self._for, parameters, number)
