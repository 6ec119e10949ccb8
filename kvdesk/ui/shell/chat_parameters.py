"""The parameters of the chat that is shown: the button in its header, the panel, and what a person wants of them."""

from __future__ import annotations

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
    from kvdesk.ui.parameters.panel import ParametersPanel


class ChatParameters(QObject):
    """Follows the selection. What is edited of a chat and not applied is kept until kvdesk ends."""

    def __init__(self, parts: WindowParts, shown: WindowSettings, settings: SettingsStore) -> None:
        super().__init__(parts.window)
        self._parts, self._settings, self._window = parts, settings, parts.window
        self._panel: ParametersPanel | None = None
        self._shown: ConversationId | None = None  # in the panel
        self._edited: dict[ConversationId, Parameters] = {}  # of chats that are not shown
        parts.chat.parameters_clicked.connect(self.toggle)
        parts.panes.parameters_shown.connect(self._on_panel_shown)
        parts.chat.draft_typed.connect(self._on_draft_typed)
        shown.shown.connect(self.refresh)

    @property
    def panel(self) -> ParametersPanel | None:
        """None until it was opened."""
        return self._panel

    @Slot()
    def toggle(self) -> None:
        """Show the panel beside the chat, or hide it."""
        if self._parts.panes.shows_parameters:
            self.close()
        else:
            self.open()

    @Slot()
    def close(self) -> None:
        """Hide the panel; what is edited of the chat and not applied is in it when it is opened again."""
        self._parts.panes.hide_parameters()

    @Slot(bool)
    def _on_panel_shown(self, shown: bool) -> None:
        self._parts.chat.parameters.setChecked(shown)
        if not shown and self._parts.chat.isVisible():
            self._parts.chat.focus_composer()

    @Slot()
    def open(self) -> None:
        """Show the panel."""
        if self._parts.state.selected is None:
            return
        if self._panel is None:
            from kvdesk.ui.parameters.panel import ParametersPanel

            self._panel = ParametersPanel(self._parts.theme, self._settings)
            self._panel.close_clicked.connect(self.close)
            self._panel.applied.connect(self._on_applied)
            self._panel.preview_asked.connect(self._on_preview_asked)
            self._panel.presets_changed.connect(lambda presets: self._settings.change(presets=presets))
            self._panel.show_missing(self._parts.state.missing(Feature.PROMPT_VIEW))
        self._parts.panes.show_parameters(self._panel)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """The selection, its parameters or the settings may have changed."""
        state, settings = self._parts.state, self._settings.current
        known = state.conversations.get(state.selected) if state.selected is not None else None
        parameters = Parameters.of(known) if known is not None else Parameters.default(settings)
        text, lines = button_text(parameters, settings), changes(parameters, settings)
        self._parts.chat.show_parameters(text, lines, is_changed=is_changed(parameters, settings))
        if self._panel is None or not self._parts.panes.shows_parameters:
            return
        self._panel.show_settings()
        if known is None:
            self.close()
            return
        title = known.title or tr("New chat")
        if known.id == self._shown:
            self._panel.show_applied(title, parameters)
            return
        if self._shown is not None and self._panel.is_edited:
            self._edited[self._shown] = self._panel.parameters
        self._shown = known.id
        self._panel.show_chat(title, parameters, self._edited.pop(known.id, None))

    def apply_event(self, event: Event) -> None:
        """What the panel shows of an event."""
        if self._panel is None:
            return
        match event:
            case PromptPreview():
                if event.conversation == self._shown:
                    self._panel.show_preview(event)
            case CommandFailed() if isinstance(event.command, PreviewPrompt):
                asked = event.command
                if asked.turn.conversation == self._shown:
                    problem = PromptPreview(asked.turn.conversation, asked.number, problem=event.sentence)
                    self._panel.show_preview(problem)
            case BackendReady():
                self._panel.show_missing(self._parts.state.missing(Feature.PROMPT_VIEW))
            case TurnEnded() | ModelLoaded() | ContextReady() | EngineRestarted():
                self._panel.ask_again()
            case OperationDone():
                if event.emptied or event.effect is not None:
                    self._panel.ask_again()

    def messages_shown(self) -> None:
        """The messages of the chat were read, or another branch is shown."""
        if self._panel is not None:
            self._panel.ask_again()

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
