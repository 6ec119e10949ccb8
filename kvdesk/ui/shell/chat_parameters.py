"""The parameters of the chat that is shown: the button in its header, the dialog, and what a person wants of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from kvdesk.chat import ConversationId
from kvdesk.conversations.parameters import Parameters
from kvdesk.protocol.cache import ContextReady, OperationDone
from kvdesk.protocol.chat import BackendReady, EngineRestarted, ModelLoaded, TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.prompt import PreviewPrompt, PromptPreview
from kvdesk.session import SettingsStore
from kvdesk.translation import tr
from kvdesk.ui.parameters.words import button_text, changes, is_changed
from kvdesk.ui.shell.window_parts import WindowParts
from kvdesk.ui.shell.window_settings import WindowSettings

if TYPE_CHECKING:
    from kvdesk.ui.parameters.dialog import ParametersDialog


class ChatParameters(QObject):
    """Follows the selection. What is edited of a chat and not applied is kept until kvdesk ends."""

    def __init__(self, parts: WindowParts, shown: WindowSettings, settings: SettingsStore) -> None:
        super().__init__(parts.window)
        self._parts, self._settings, self._window = parts, settings, parts.window
        self._dialog: ParametersDialog | None = None
        self._shown: ConversationId | None = None  # in the dialog
        self._edited: dict[ConversationId, Parameters] = {}  # of chats that are not shown
        parts.chat.parameters_clicked.connect(self.open)
        parts.chat.draft_typed.connect(self._on_draft_typed)
        shown.shown.connect(self.refresh)

    @property
    def dialog(self) -> ParametersDialog | None:
        """None until it was opened."""
        return self._dialog

    @property
    def unapplied(self) -> dict[ConversationId, Parameters]:
        """What is edited of chats and not applied."""
        shown = self._dialog if self._shown is not None else None
        now = {self._shown: shown.parameters} if shown is not None and self._shown and shown.is_edited else {}
        return self._edited | now

    def keep_unapplied(self, edited: Mapping[ConversationId, Parameters]) -> None:
        """What was edited before: it is in the dialog when that is opened for its chat."""
        self._edited |= edited

    @Slot()
    def open(self) -> None:
        """Show the dialog."""
        if self._parts.state.selected is None:
            return
        if self._dialog is None:
            from kvdesk.ui.parameters.dialog import ParametersDialog

            self._dialog = ParametersDialog(self._parts.theme, self._settings, self._window)
            self._dialog.applied.connect(self._on_applied)
            self._dialog.preview_asked.connect(self._on_preview_asked)
            self._dialog.presets_changed.connect(lambda presets: self._settings.change(presets=presets))
            self._dialog.show_missing(self._parts.state.missing(Feature.PROMPT_VIEW))
        self._dialog.show()
        self.refresh()
        self._dialog.raise_()
        self._dialog.activateWindow()

    @Slot()
    def refresh(self) -> None:
        """The selection, its parameters or the settings may have changed."""
        state, settings = self._parts.state, self._settings.current
        known = state.conversations.get(state.selected) if state.selected is not None else None
        parameters = Parameters.of(known) if known is not None else Parameters.default(settings)
        text, lines = button_text(parameters, settings), changes(parameters, settings)
        self._parts.chat.show_parameters(text, lines, is_changed=is_changed(parameters, settings))
        if self._dialog is None or not self._dialog.isVisible():
            return
        self._dialog.show_settings()
        if known is None:
            self._dialog.close()
            return
        title = known.title or tr("New chat")
        if known.id == self._shown:
            self._dialog.show_applied(title, parameters)
            return
        if self._shown is not None and self._dialog.is_edited:
            self._edited[self._shown] = self._dialog.parameters
        self._shown = known.id
        self._dialog.show_chat(title, parameters, self._edited.pop(known.id, None))

    def apply_event(self, event: Event) -> None:
        """What the dialog shows of an event."""
        if self._dialog is None:
            return
        match event:
            case PromptPreview():
                if event.conversation == self._shown:
                    self._dialog.show_preview(event)
            case CommandFailed() if isinstance(event.command, PreviewPrompt):
                asked = event.command
                if asked.turn.conversation == self._shown:
                    problem = PromptPreview(asked.turn.conversation, asked.number, problem=event.sentence)
                    self._dialog.show_preview(problem)
            case BackendReady():
                self._dialog.show_missing(self._parts.state.missing(Feature.PROMPT_VIEW))
            case TurnEnded() | ModelLoaded() | ContextReady() | EngineRestarted():
                self._dialog.ask_again()
            case OperationDone():
                if event.emptied or event.effect is not None:
                    self._dialog.ask_again()

    def messages_shown(self) -> None:
        """The messages of the chat were read, or another branch is shown."""
        if self._dialog is not None:
            self._dialog.ask_again()

    @Slot(str, str)
    def _on_draft_typed(self, _conversation: str, _text: str) -> None:
        self.messages_shown()

    @Slot(object)
    def _on_applied(self, parameters: Parameters) -> None:
        if self._shown is not None:
            self._window.parameters_changed.emit(self._shown, parameters)
            self._parts.chat.composer.ask_again()

    @Slot(object, int)
    def _on_preview_asked(self, parameters: Parameters, number: int) -> None:
        if self._shown is not None and not self._parts.events.is_dead:
            self._window.prompt_preview_requested.emit(self._shown, parameters, number)
